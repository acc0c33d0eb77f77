package loadtest

import (
	"context"
	"fmt"
	"time"
)

// clockProbes is how often the server's time is read. The answer with the
// shortest round trip is the most exact.
const clockProbes = 9

// clock is the server's clock, as measured from here.
type clock struct {
	now    func() time.Time
	offset time.Duration // server minus us
	trip   time.Duration // round trip of the best probe
}

// readClock measures the offset. The server truncates to milliseconds, so half a
// millisecond is added. Both directions are assumed to take the same time.
func readClock(now func() time.Time, ask func() (time.Time, error)) (clock, error) {
	c := clock{now: now, trip: -1}
	for range clockProbes {
		sent := now()
		server, err := ask()
		if err != nil {
			return c, fmt.Errorf("read the server's clock: %w", err)
		}
		trip := now().Sub(sent)
		if c.trip >= 0 && trip >= c.trip {
			continue
		}
		c.trip = trip
		c.offset = server.Add(time.Millisecond / 2).Sub(sent.Add(trip / 2))
	}
	return c, nil
}

// local converts the server's time to local time.
func (c *clock) local(server time.Time) time.Time { return server.Add(-c.offset) }

// server returns the server's current time.
func (c *clock) server() time.Time { return c.now().Add(c.offset) }

// wait waits until an instant or the end of ctx.
func (c *clock) wait(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(until.Sub(c.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
