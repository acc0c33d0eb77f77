package socket

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// ErrSlow says that the other side does not read as fast as it is written to.
var ErrSlow = errors.New("socket: the reader is too slow")

// Conn is a connection that a Listener accepted.
type Conn struct {
	net.Conn // with TLS, what is said in it
	bare     *bare
	heard    atomic.Bool
}

// Hold counts the bytes of an answer that only this connection has. They count
// until the next Hold, Read or Close: by then the answer is written. It reports
// false, and counts nothing, if too many bytes wait for their readers already.
func (c *Conn) Hold(n int) bool { return c.bare.from.hold(c.bare, n) }

// Read notes the first byte.
func (c *Conn) Read(b []byte) (int, error) {
	if c.bare.held.Load() > 0 {
		c.bare.from.written(c.bare)
	}
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
		c.bare.from.forget(c)
	}
	return n, err
}

// SetReadDeadline sets the deadline, which for a silent connection of a
// stopping server is not later than the one that Hurry gave.
func (c *Conn) SetReadDeadline(at time.Time) error {
	if c.heard.Load() {
		return c.Conn.SetReadDeadline(at)
	}
	l := c.bare.from
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.until.IsZero() && (at.IsZero() || l.until.Before(at)) {
		at = l.until
	}
	return c.Conn.SetReadDeadline(at)
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.bare.from.forget(c)
	return c.Conn.Close()
}

// NeverWait has every further Write succeed at once and whole, or fail with
// ErrSlow: one writer can then serve thousands of readers, and none of them
// holds up the others. After ErrSlow the connection is good for nothing.
func (c *Conn) NeverWait() error {
	c.bare.instant.Store(true)
	return c.Conn.SetDeadline(time.Time{})
}

// Gone reports whether the other side has closed the connection, or has said
// something although it is not its turn. It does not wait.
func (c *Conn) Gone() bool { return c.bare.gone() }

// bare is the connection below TLS.
type bare struct {
	net.Conn
	from    *Listener
	addr    netip.Addr // as it is counted
	instant atomic.Bool
	closed  atomic.Bool
	held    atomic.Int64 // bytes of Hold; changed under the listener's lock
}

// Write writes; after NeverWait without waiting.
func (b *bare) Write(text []byte) (int, error) {
	if b.instant.Load() {
		return b.writeNow(text)
	}
	return b.Conn.Write(text)
}

// Close closes the connection, which then no longer counts.
func (b *bare) Close() error {
	if b.closed.CompareAndSwap(false, true) {
		b.from.leave(b)
	}
	return b.Conn.Close()
}
