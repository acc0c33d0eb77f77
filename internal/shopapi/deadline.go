package shopapi

import (
	"net"
	"sync/atomic"
	"time"

	"seckill/internal/api"
)

// deadlineSlack is how much a connection's deadline may be early. All deadlines are many
// seconds away.
const deadlineSlack = time.Second

// unhurried is a listener that reduces the cost of deadlines. Its connections pass a
// deadline to the poller only before they block. The server sets three deadlines for every
// request. A complete request never blocks, so only the idle deadline is set, and it
// rarely differs much from the one before.
type unhurried struct{ *api.Listener }

// Accept accepts a connection.
func (l unhurried) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &unhurriedConn{Conn: conn.(*api.Conn)}, nil
}

// unhurriedConn has one reading and one writing goroutine. A deadline that is set while
// they block applies to the next wait.
type unhurriedConn struct {
	*api.Conn
	read, write deadline
	lines       lineWatch
	closed      atomic.Bool
}

// Close closes the connection. After it, setting a deadline fails. A stopping server
// closes idle connections; the failure tells it not to start a request that arrived
// at the same moment.
func (c *unhurriedConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

func (c *unhurriedConn) stillOpen() error {
	if c.closed.Load() {
		return net.ErrClosed
	}
	return nil
}

// deadline is in Unix nanoseconds, or 0 for none.
type deadline struct {
	wanted atomic.Int64
	set    int64
}

func (d *deadline) want(at time.Time) {
	if at.IsZero() {
		d.wanted.Store(0)
		return
	}
	d.wanted.Store(at.UnixNano())
}

// settle calls set if the wanted deadline differs by more than the slack.
func (d *deadline) settle(set func(time.Time) error) error {
	wanted := d.wanted.Load()
	if ahead := wanted - d.set; wanted == d.set || wanted != 0 && ahead >= 0 && ahead < int64(deadlineSlack) {
		return nil
	}
	d.set = wanted
	if wanted == 0 {
		return set(time.Time{})
	}
	return set(time.Unix(0, wanted))
}

// SetReadDeadline sets the deadline of later reads.
func (c *unhurriedConn) SetReadDeadline(at time.Time) error {
	c.read.want(at)
	return c.stillOpen()
}

// SetWriteDeadline sets the deadline of later writes.
func (c *unhurriedConn) SetWriteDeadline(at time.Time) error {
	c.write.want(at)
	return c.stillOpen()
}

// SetDeadline sets both.
func (c *unhurriedConn) SetDeadline(at time.Time) error {
	c.read.want(at)
	c.write.want(at)
	return c.stillOpen()
}

// Read reads with the read deadline.
func (c *unhurriedConn) Read(b []byte) (int, error) {
	if err := c.read.settle(c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.lines.see(b[:n])
	}
	return n, err
}

// Write writes with the write deadline.
func (c *unhurriedConn) Write(b []byte) (int, error) {
	if err := c.write.settle(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
