package api

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// shortly is how long a write may take after NeverWait: a buffer with room takes
// it at once.
const shortly = 20 * time.Millisecond

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

// NeverWait has every further Write succeed whole, or fail: one writer can then
// serve thousands of readers. A reader that leaves the kernel's buffer full holds
// the others up once, shortly. After that the connection is good for nothing.
func (c *Conn) NeverWait() { c.bare.instant.Store(true) }

// bare is the connection below TLS.
type bare struct {
	net.Conn
	from    *Listener
	addr    netip.Addr // as it is counted
	instant atomic.Bool
	closed  atomic.Bool
	held    atomic.Int64 // bytes of Hold; changed under the listener's lock
}

// Write writes; after NeverWait it does so shortly or fails.
func (b *bare) Write(text []byte) (int, error) {
	if b.instant.Load() {
		if err := b.Conn.SetWriteDeadline(time.Now().Add(shortly)); err != nil {
			return 0, err
		}
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
