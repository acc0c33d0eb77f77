package app

import (
	"log/slog"
	"net/netip"
	"time"

	"seckill/internal/admission"
	"seckill/internal/alert"
	"seckill/internal/api"
)

// Bounds of answers that clients do not read. The largest answer that is not
// shared is a list of a hundred orders. It fits into the kernel's buffer, so only
// clients that ask again without reading hold any.
const (
	maxUnread        = 64 << 20
	maxUnreadPerAddr = 4 << 20
	writeBufferBytes = 64 << 10
)

// listenShop takes the public address. Connections of this machine and of
// trusted proxies are many people's, and are bounded only in all.
func (a *App) listenShop() (*api.Listener, error) {
	shop := a.cfg.Shop
	proxies, err := admission.NewProxies(shop.TrustedProxies)
	if err != nil {
		return nil, err
	}
	opt := api.ListenOptions{
		MaxConns: a.maxConns(api.Handles()), MaxPerAddr: shop.MaxConnsPerAddr,
		MaxUnread: maxUnread, MaxUnreadPerAddr: maxUnreadPerAddr, WriteBuffer: writeBufferBytes,
		Exempt:    func(addr netip.Addr) bool { return addr.IsLoopback() || proxies.Trusts(addr) },
		OnRefused: func(why string) { a.parts.metrics.ConnsRefused.WithLabelValues(why).Inc() },
	}
	if shop.TLS() {
		certificate, err := api.LoadCertificate(shop.TLSCert, shop.TLSKey, time.Now, a.log)
		if err != nil {
			return nil, err
		}
		opt.TLS = certificate.Config()
	}
	return api.Listen(shop.Listen, opt)
}

// Bounds of connections to the operator's port. Operators, their dashboards,
// Prometheus and probes need some tens. No address is exempt from the bound of
// one address: if a proxy or this machine were, its users could take all
// connections. One proxy with all operators behind it has room in it too.
const (
	adminMaxConns        = 1024
	adminMaxConnsPerAddr = 256
	// adminHandles is the part of the kept handles that the operator's port may
	// take: the other half is for the ledger and the store.
	adminHandles = 2
)

// listenAdmin takes the operators' address.
func (a *App) listenAdmin() (*api.Listener, error) {
	conns, perAddr := adminConns(api.Handles())
	refused := alert.NewThrottledLog(a.log, time.Now)
	return api.Listen(a.cfg.Admin.Listen, api.ListenOptions{
		MaxConns: conns, MaxPerAddr: perAddr, WriteBuffer: writeBufferBytes,
		OnRefused: func(why string) {
			refused.Say(slog.LevelWarn, why, "operator's port: too many connections, one was refused", "bound", why, "in_all", conns, "per_address", perAddr)
		},
	})
}

// adminConns is how many connections the operator's port takes with so many
// handles, in all and from one address, which gets half of them at most.
func adminConns(handles int) (all, perAddr int) {
	all = adminMaxConns
	if handles > 0 {
		all = min(all, max(2, handles/keptHandles/adminHandles))
	}
	return all, min(adminMaxConnsPerAddr, all/2)
}

// keptHandles is the part of the process's file handles that shoppers cannot
// take: the ledger, the store and the operator need some, a flood or not.
const keptHandles = 10

// maxConns is how many connections the shop takes with so many handles.
func (a *App) maxConns(handles int) int {
	wanted, room := a.cfg.Shop.MaxConns, handles-handles/keptHandles
	if handles == 0 || wanted <= room {
		return wanted
	}
	a.log.Info("fewer connections than shop.max_conns: raise the limit of open files", "max_conns", wanted, "open_files", handles, "connections", room)
	return room
}
