package storesql

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// clockAge is how long the server's clock is reckoned from one reading of
	// it. Quartz drifts by some microseconds in that time.
	clockAge = 5 * time.Second

	sqlServerClock = `SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)`
)

// serverClock is the database server's clock: one for all instances, whose own
// may be minutes apart. It is read now and then, and reckoned in between by
// this process's monotonic time, which no step of the wall clock moves.
type serverClock struct {
	start time.Time // with the monotonic reading that all is counted from

	mu   sync.Mutex
	zero time.Time     // the server's clock at start, as far as is known
	read time.Duration // after start
	any  bool
}

func newServerClock() *serverClock { return &serverClock{start: time.Now()} }

func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zero.Add(time.Since(c.start))
}

// sync reads the server's clock if the last reading is old.
func (c *serverClock) sync(ctx context.Context, r *session) error {
	c.mu.Lock()
	fresh := c.any && time.Since(c.start)-c.read < clockAge
	c.mu.Unlock()
	if fresh {
		return nil
	}
	sent := time.Since(c.start)
	var micros int64
	if _, err := r.row(ctx, sqlServerClock, nil, &micros); err != nil {
		return fmt.Errorf("read the server's clock: %w", err)
	}
	c.heard(time.UnixMicro(micros), sent, time.Since(c.start))
	return nil
}

// heard takes a reading that the server made between sent and now. It knows
// the clock only to within that time: what was reckoned so far is kept while
// it is possible, so that the clock does not go to and fro with the network.
func (c *serverClock) heard(server time.Time, sent, now time.Duration) {
	earliest, latest := server.Add(-now), server.Add(-sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.any:
		c.zero = earliest.Add(latest.Sub(earliest) / 2)
	case c.zero.Before(earliest):
		c.zero = earliest
	case c.zero.After(latest):
		c.zero = latest
	}
	c.read, c.any = now, true
}
