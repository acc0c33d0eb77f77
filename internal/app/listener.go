package app

import (
	"net/netip"
	"time"

	"seckill/internal/clientaddr"
	"seckill/internal/socket"
)

// listenShop takes the public address. Connections of this machine and of
// trusted proxies are many people's, and are bounded only in all.
func (a *App) listenShop() (*socket.Listener, error) {
	shop := a.cfg.Shop
	proxies, err := clientaddr.New(shop.TrustedProxies)
	if err != nil {
		return nil, err
	}
	opt := socket.Options{
		MaxConns: shop.MaxConns, MaxPerAddr: shop.MaxConnsPerAddr,
		Exempt:    func(addr netip.Addr) bool { return addr.IsLoopback() || proxies.Trusts(addr) },
		OnRefused: func(why string) { a.parts.metrics.ConnsRefused.WithLabelValues(why).Inc() },
	}
	if shop.TLS() {
		certificate, err := socket.LoadCertificate(shop.TLSCert, shop.TLSKey, time.Now, a.log)
		if err != nil {
			return nil, err
		}
		opt.TLS = certificate.Config()
	}
	return socket.Listen(shop.Listen, opt)
}
