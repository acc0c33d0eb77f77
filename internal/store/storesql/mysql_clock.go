package storesql

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// clockAge is how long one reading of the server's clock is used. Quartz clocks drift by
	// some microseconds in that time.
	clockAge = 5 * time.Second

	sqlServerClock = `SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)`
)

// serverClock is the database server's clock, one clock for all instances, whose own clocks may
// differ by minutes. It is read now and then. Between readings it advances with this process's
// monotonic time, which no step of the wall clock changes.
type serverClock struct {
	start time.Time // the monotonic start of all durations here

	mu   sync.Mutex
	zero time.Time     // the server's time at start, as far as known
	read time.Duration // when it was last read, after start
	any  bool
}

func newServerClock() *serverClock { return &serverClock{start: time.Now()} }

func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zero.Add(time.Since(c.start))
}

// sync reads the server's clock if the last reading is older than clockAge.
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
	c.addReading(time.UnixMicro(micros), sent, time.Since(c.start))
	return nil
}

// addReading takes a reading that the server made between sent and now. That gives the server's
// time only within an interval. The estimate so far is kept if it lies in the interval, so that
// the clock does not jitter with the network.
func (c *serverClock) addReading(server time.Time, sent, now time.Duration) {
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
