package shopapi

import (
	"net"
	"sync/atomic"
	"time"

	"seckill/internal/api"
)

// deadlineSlack is by how much a connection's deadline may be early. All of
// them are many seconds away.
const deadlineSlack = time.Second

// unhurried is a listener whose connections hand a deadline to the poller only
// when they are about to wait under it. The server sets three for every request,
// and one that came whole waits under none of them but the idle one, which is
// nearly the one before it.
type unhurried struct{ *api.Listener }

// Accept accepts a connection.
func (l unhurried) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &unhurriedConn{Conn: conn.(*api.Conn)}, nil
}

// unhurriedConn is read by one goroutine and written by one. A deadline that is
// set while they wait is for the next wait.
type unhurriedConn struct {
	*api.Conn
	read, write deadline
	lines       lineWatch
	closed      atomic.Bool
}

// Close closes the connection. From then on no deadline can be set: a stopping
// server closes what it takes for idle, and reads from that refusal that it must
// not begin with a request that came at the same instant.
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

// deadline is in nanoseconds since 1970, or 0 for none.
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

// settle has set called if the wanted deadline is not nearly the present one.
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

// SetReadDeadline sets the deadline of the reads to come.
func (c *unhurriedConn) SetReadDeadline(at time.Time) error {
	c.read.want(at)
	return c.stillOpen()
}

// SetWriteDeadline sets the deadline of the writes to come.
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

// Read reads under the deadline for reads.
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

// Write writes under the deadline for writes.
func (c *unhurriedConn) Write(b []byte) (int, error) {
	if err := c.write.settle(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
