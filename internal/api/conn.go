package api

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// shortly is the write timeout after NeverWait. A write into a buffer with room
// does not block.
const shortly = 20 * time.Millisecond

// Conn is a connection that a Listener accepted.
type Conn struct {
	net.Conn // the TLS connection, if TLS is used
	bare     *bare
	heard    atomic.Bool
}

// Hold counts the bytes of an answer that only this connection holds. They count
// until the next Hold, Read or Close, when the answer is written. If too many bytes
// wait for slow readers already, it counts nothing and returns false.
func (c *Conn) Hold(n int) bool { return c.bare.from.hold(c.bare, n) }

// Read reads, and records that the connection is not silent.
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

// SetReadDeadline sets the deadline. If the server is stopping and the connection
// is silent, the deadline is not later than that of Hurry.
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

// NeverWait makes every later Write complete at once or fail, so that one goroutine
// can write to thousands of readers. A reader that leaves the kernel's buffer full
// delays the others once, for a short time. After that its connection is broken.
func (c *Conn) NeverWait() { c.bare.instant.Store(true) }

// bare is the connection below TLS.
type bare struct {
	net.Conn
	from    *Listener
	addr    netip.Addr // under which the connection is counted
	instant atomic.Bool
	closed  atomic.Bool
	held    atomic.Int64 // bytes of Hold; changed under the listener's lock
}

// Write writes. After NeverWait it completes within shortly or fails.
func (b *bare) Write(text []byte) (int, error) {
	if b.instant.Load() {
		if err := b.Conn.SetWriteDeadline(time.Now().Add(shortly)); err != nil {
			return 0, err
		}
	}
	return b.Conn.Write(text)
}

// Close closes the connection and ends its count.
func (b *bare) Close() error {
	if b.closed.CompareAndSwap(false, true) {
		b.from.leave(b)
	}
	return b.Conn.Close()
}
