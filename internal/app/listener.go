package app

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// lastWords is how long a stopping server waits for the first byte of a
// connection that has sent none: a request may be on its way.
const lastWords = 200 * time.Millisecond

// listener knows the connections on which nothing was ever read. Browsers,
// proxies and HTTP clients open some in advance, and neither server's graceful
// stop counts them as idle: each would hold it up for a whole read timeout.
type listener struct {
	net.Listener
	mu     sync.Mutex
	silent map[*conn]struct{}
	until  time.Time // set when stopping: when silent connections end
}

// conn is a connection that the listener accepted.
type conn struct {
	net.Conn
	from  *listener
	heard atomic.Bool
}

func listen(address string) (*listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, silent: make(map[*conn]struct{})}, nil
}

// Accept accepts a connection, which is silent so far.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, from: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent[c] = struct{}{}
	return c, nil
}

// hurry gives every silent connection, and those still to come, lastWords from
// now.
func (l *listener) hurry() error {
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

func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.silent, c)
}

// Read notes the first byte.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
		c.from.forget(c)
	}
	return n, err
}

// SetReadDeadline sets the deadline, which for a silent connection of a
// stopping server is not later than the one that hurry gave.
func (c *conn) SetReadDeadline(at time.Time) error {
	if c.heard.Load() {
		return c.Conn.SetReadDeadline(at)
	}
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	if until := c.from.until; !until.IsZero() && (at.IsZero() || until.Before(at)) {
		at = until
	}
	return c.Conn.SetReadDeadline(at)
}

// Close closes the connection.
func (c *conn) Close() error {
	c.from.forget(c)
	return c.Conn.Close()
}
