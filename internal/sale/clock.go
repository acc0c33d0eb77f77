package sale

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"seckill/internal/fault"
)

// Bounds of clock measurement.
const (
	clockSamples  = 5
	clockStep     = time.Second // a larger correction is logged and counted
	clockDeadline = 2 * time.Second
)

// Clock is the ledger's clock as this instance knows it: a measured offset
// plus monotonic time, so that a step of the local wall clock moves no sale
// window.
type Clock struct {
	source func(context.Context) (time.Time, error)
	log    *slog.Logger
	anchor atomic.Pointer[anchor]
	steps  atomic.Int64
	skew   time.Duration // of the local clock, in tests
}

type anchor struct {
	local    time.Time // with monotonic reading
	ledger   time.Time
	measured bool // not the guess that a clock begins with
}

// NewClock makes a clock that follows the local one until Sync has measured
// the ledger's.
func NewClock(source func(context.Context) (time.Time, error), log *slog.Logger) *Clock {
	c := &Clock{source: source, log: log, skew: fault.Skew()}
	c.anchor.Store(&anchor{local: time.Now(), ledger: fault.Now().Round(0)})
	return c
}

// Now is the ledger's time.
func (c *Clock) Now() time.Time {
	a := c.anchor.Load()
	return a.ledger.Add(time.Since(a.local))
}

// Local is the time of day by this instance's own clock. Tokens of the shop's login
// are judged by it: a Redis whose clock is set back must not refuse new ones.
func (c *Clock) Local() time.Time { return time.Now().Add(c.skew) }

// Steps counts corrections of more than a second.
func (c *Clock) Steps() int64 { return c.steps.Load() }

// Sync measures the ledger's clock: of several samples the one with the
// shortest round trip counts.
func (c *Clock) Sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clockDeadline)
	defer cancel()
	var best *anchor
	var shortest time.Duration
	for range clockSamples {
		before := time.Now()
		ledger, err := c.source(ctx)
		if err != nil {
			return err
		}
		trip := time.Since(before)
		if best == nil || trip < shortest {
			best, shortest = &anchor{local: before.Add(trip / 2), ledger: ledger.Round(0), measured: true}, trip
		}
	}
	predicted := c.Now()
	measured := best.ledger.Add(time.Since(best.local))
	if diff := measured.Sub(predicted); c.anchor.Load().measured && diff.Abs() > clockStep {
		c.steps.Add(1)
		c.log.Warn("ledger clock stepped", "by", diff.String())
	}
	c.anchor.Store(best)
	return nil
}
