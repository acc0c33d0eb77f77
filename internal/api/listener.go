// This file has the listener for untrusted clients. It bounds the connections in
// total and per address, survives a lack of file handles, serves TLS, and knows
// which connections never sent a byte.

package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	// lastWords is how long a stopping server waits for the first byte of a silent
	// connection. Its request may be on the way.
	lastWords = 200 * time.Millisecond
	// breather is the pause in accepting when no file handle is free.
	breather = 50 * time.Millisecond
	// networkBits is the prefix length of one IPv6 customer, who can choose the rest.
	networkBits = 64
)

// The reasons to refuse a connection, for the metrics.
const (
	RefusedTotal = "total"
	RefusedAddr  = "address"
)

// Refusals lists the reasons.
var Refusals = []string{RefusedTotal, RefusedAddr}

// ListenOptions configure a listener. The zero value has no bounds.
type ListenOptions struct {
	// MaxConns bounds all connections, MaxPerAddr those from one address, or one
	// /64 of IPv6; 0 is off.
	MaxConns, MaxPerAddr int
	// Exempt reports addresses without the bound MaxPerAddr, such as proxies; nil for
	// none.
	Exempt func(addr netip.Addr) bool
	// MaxUnread bounds the bytes of answers that clients have not read yet, as counted
	// by Conn.Hold. MaxUnreadPerAddr bounds those of one address. 0 is off.
	MaxUnread, MaxUnreadPerAddr int
	// WriteBuffer is the size of the kernel's send buffer of each connection. With 0
	// the kernel decides, and the buffer may grow to megabytes.
	WriteBuffer int
	// TLS, if set, is used on every connection.
	TLS *tls.Config
	// OnRefused is called for each refused connection; may be nil.
	OnRefused func(why string)
}

// Listener accepts connections within its bounds. It knows the silent ones, on which
// nothing was read yet. Browsers, proxies and HTTP clients open them in advance. A
// graceful stop does not count them as idle, so each would delay it by a whole read
// timeout.
type Listener struct {
	net.Listener
	opt    ListenOptions
	closed chan struct{}
	close  func() error // once

	mu     sync.Mutex
	open   int
	unread int
	from   map[netip.Addr]peer // counts by address, if a bound per address is set
	silent map[*Conn]struct{}
	until  time.Time // set by Hurry: the deadline of silent connections
}

// peer has the counts of one address.
type peer struct{ conns, unread int }

// Listen listens on an address.
func Listen(address string, opt ListenOptions) (*Listener, error) {
	l, err := net.Listen(network(address), address)
	if err != nil {
		return nil, err
	}
	closed := make(chan struct{})
	return &Listener{
		Listener: l, opt: opt, closed: closed,
		close: sync.OnceValue(func() error {
			close(closed)
			return l.Close()
		}),
		from: make(map[netip.Addr]peer), silent: make(map[*Conn]struct{}),
	}, nil
}

// network returns tcp4 for an IPv4 address. With tcp, 0.0.0.0 would listen on IPv6
// too, where a firewall may have no rules.
func network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip, bad := netip.ParseAddr(host); err == nil && bad == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// Accept accepts a connection within the bounds. It closes others at once: an
// answer would cost more than the client spends.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if isShortage(err) && l.rest() {
			continue
		}
		if err != nil {
			return nil, err
		}
		addr := l.counted(accepted.RemoteAddr())
		if why := l.enter(addr); why != "" {
			refuse(accepted)
			if l.opt.OnRefused != nil {
				l.opt.OnRefused(why)
			}
			continue
		}
		return l.welcome(accepted, addr), nil
	}
}

// welcome wraps an accepted connection.
func (l *Listener) welcome(accepted net.Conn, addr netip.Addr) *Conn {
	if tcp, ok := accepted.(interface{ SetWriteBuffer(int) error }); ok && l.opt.WriteBuffer > 0 {
		_ = tcp.SetWriteBuffer(l.opt.WriteBuffer) // on failure the kernel's default stays
	}
	bare := &bare{Conn: accepted, from: l, addr: addr}
	c := &Conn{Conn: bare, bare: bare}
	if l.opt.TLS != nil {
		c.Conn = tls.Server(bare, l.opt.TLS)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent[c] = struct{}{}
	return c
}

// refuse closes a connection with a reset, so that no port stays in TIME_WAIT.
func refuse(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // on failure the port stays for a minute
	}
	c.Close()
}

// isShortage reports a temporary error: no handle, no memory, or a client that left
// before it was accepted.
func isShortage(err error) bool {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// rest waits for breather. It returns false if the listener is closed meanwhile.
func (l *Listener) rest() bool {
	timer := time.NewTimer(breather)
	defer timer.Stop()
	select {
	case <-l.closed:
		return false
	case <-timer.C:
		return true
	}
}

// counted returns the address under which a peer is counted, or the zero address if
// it is not counted.
func (l *Listener) counted(peer net.Addr) netip.Addr {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok || l.opt.MaxPerAddr == 0 && l.opt.MaxUnreadPerAddr == 0 {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	if l.opt.Exempt != nil && l.opt.Exempt(addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		addr = netip.PrefixFrom(addr, networkBits).Masked().Addr()
	}
	return addr
}

// enter counts a new connection, or returns the reason of the refusal.
func (l *Listener) enter(addr netip.Addr) (refused string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.opt.MaxConns > 0 && l.open >= l.opt.MaxConns:
		return RefusedTotal
	case addr.IsValid() && l.opt.MaxPerAddr > 0 && l.from[addr].conns >= l.opt.MaxPerAddr:
		return RefusedAddr
	}
	l.open++
	l.add(addr, peer{conns: 1})
	return ""
}

// leave ends the count of a connection and of its held bytes.
func (l *Listener) leave(b *bare) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.add(b.addr, peer{conns: -1})
	l.release(b)
}

// add changes the counts of an address. The caller holds the lock.
func (l *Listener) add(addr netip.Addr, change peer) {
	if !addr.IsValid() {
		return
	}
	p := l.from[addr]
	p.conns += change.conns
	p.unread += change.unread
	if l.from[addr] = p; p == (peer{}) {
		delete(l.from, addr)
	}
}

// hold counts the bytes that a connection is about to write. It returns false if
// they are too many.
func (l *Listener) hold(b *bare, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(b) // the previous answer is written
	switch {
	case b.closed.Load():
		return true // the write fails at once
	case l.opt.MaxUnread > 0 && l.unread+n > l.opt.MaxUnread:
		return false
	case b.addr.IsValid() && l.opt.MaxUnreadPerAddr > 0 && l.from[b.addr].unread+n > l.opt.MaxUnreadPerAddr:
		return false
	}
	b.held.Store(int64(n))
	l.unread += n
	l.add(b.addr, peer{unread: n})
	return true
}

// written ends the count of a connection's held bytes.
func (l *Listener) written(b *bare) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(b)
}

// release is written for a caller that holds the lock.
func (l *Listener) release(b *bare) {
	n := int(b.held.Swap(0))
	l.unread -= n
	l.add(b.addr, peer{unread: -n})
}

// Unread returns the bytes of answers that clients have not read yet.
func (l *Listener) Unread() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unread
}

// Open returns the number of connections.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Close stops accepting. Open connections stay. It may be called again.
func (l *Listener) Close() error { return l.close() }

// Hurry sets the read deadline of every silent connection, also of later ones, to
// lastWords from now.
func (l *Listener) Hurry() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(lastWords)
	for c := range l.silent {
		if err := c.Conn.SetReadDeadline(l.until); err != nil {
			return fmt.Errorf("hurry a connection: %w", err)
		}
	}
	return nil
}

func (l *Listener) forget(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.silent, c)
}
