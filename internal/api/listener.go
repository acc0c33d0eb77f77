// The listener accepts connections of the public, of which it expects nothing
// good: it bounds how many there are, in all and from one address, survives a
// want of file handles, speaks TLS, and knows which of them never said a word.

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
	// lastWords is how long a stopping server waits for the first byte of a
	// connection that has sent none: a request may be on its way.
	lastWords = 200 * time.Millisecond
	// breather is how long nothing is accepted when there is no handle left for
	// it: others have to close theirs.
	breather = 50 * time.Millisecond
	// networkBits is the part of an IPv6 address that one customer has: the rest
	// is theirs to choose.
	networkBits = 64
)

// Why a connection is refused, for the metrics.
const (
	RefusedTotal = "total"
	RefusedAddr  = "address"
)

// Refusals lists both.
var Refusals = []string{RefusedTotal, RefusedAddr}

// ListenOptions of a listener. The zero value bounds nothing.
type ListenOptions struct {
	// MaxConns bounds all connections, MaxPerAddr those from one address, or one
	// /64 of IPv6; 0 is off.
	MaxConns, MaxPerAddr int
	// Exempt names addresses that MaxPerAddr is not for, such as those of
	// proxies; nil for none.
	Exempt func(addr netip.Addr) bool
	// MaxUnread bounds the bytes of answers that wait for their readers, as Conn.Hold
	// counts them; MaxUnreadPerAddr those for one address, counted like MaxPerAddr;
	// 0 is off.
	MaxUnread, MaxUnreadPerAddr int
	// WriteBuffer is the kernel's send buffer of each connection, in bytes. 0 leaves
	// it to the kernel, which may let it grow to megabytes.
	WriteBuffer int
	// TLS, if set, is spoken on every connection.
	TLS *tls.Config
	// OnRefused is told of each connection that is one too many; nil for nobody.
	OnRefused func(why string)
}

// Listener accepts connections within its bounds. It knows those on which nothing
// was ever read: browsers, proxies and HTTP clients open some in advance, and no
// server's graceful stop counts them as idle: each would hold it up for a whole
// read timeout.
type Listener struct {
	net.Listener
	opt    ListenOptions
	closed chan struct{}
	close  func() error // once

	mu     sync.Mutex
	open   int
	unread int
	from   map[netip.Addr]peer // by address, while a bound per address counts them
	silent map[*Conn]struct{}
	until  time.Time // set when stopping: when silent connections end
}

// peer is what one address has.
type peer struct{ conns, unread int }

// Listen takes an address.
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

// network keeps an IPv4 address to IPv4. By itself 0.0.0.0 would take all of
// IPv6 too, past a firewall that knows nothing of it.
func network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip, bad := netip.ParseAddr(host); err == nil && bad == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// Accept accepts a connection that is within the bounds. What is beyond them is
// closed at once: an answer would cost more than its sender spends.
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

// welcome makes a connection of what was accepted, which is silent so far.
func (l *Listener) welcome(accepted net.Conn, addr netip.Addr) *Conn {
	if tcp, ok := accepted.(interface{ SetWriteBuffer(int) error }); ok && l.opt.WriteBuffer > 0 {
		_ = tcp.SetWriteBuffer(l.opt.WriteBuffer) // at worst the kernel chooses
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

// refuse closes a connection without the farewell that would keep its port.
func refuse(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // at worst the farewell is said
	}
	c.Close()
}

// isShortage reports an error that passes: there was no handle or no memory, or
// the other side was gone before it was accepted.
func isShortage(err error) bool {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// rest waits a little; false when the listener is closed meanwhile.
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

// counted is what a peer is counted as; invalid when it is not.
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

// enter counts a connection in, or says why not.
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

// leave counts a connection out, and what it holds.
func (l *Listener) leave(b *bare) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.add(b.addr, peer{conns: -1})
	l.release(b)
}

// add changes what is counted for an address; the caller holds the lock.
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

// hold counts the bytes that a connection is about to write; false if they are
// too many.
func (l *Listener) hold(b *bare, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(b) // the answer before is written
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

// written counts out what a connection held.
func (l *Listener) written(b *bare) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(b)
}

// release counts out what a connection holds; the caller holds the lock.
func (l *Listener) release(b *bare) {
	n := int(b.held.Swap(0))
	l.unread -= n
	l.add(b.addr, peer{unread: -n})
}

// Unread is how many bytes of answers wait for their readers.
func (l *Listener) Unread() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unread
}

// Open is how many connections there are.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Close stops accepting; connections stay. It may be called again.
func (l *Listener) Close() error { return l.close() }

// Hurry gives every silent connection, and those still to come, lastWords from
// now.
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
