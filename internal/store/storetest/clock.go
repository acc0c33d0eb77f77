package storetest

import (
	"sync"
	"time"
)

// Clock is a clock that tests set, for stores whose clock is injected. It
// stands still until it is moved.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock makes a clock that stands at the given instant, cut to the
// millisecond that stores keep.
func NewClock(at time.Time) *Clock {
	return &Clock{now: at.UTC().Truncate(time.Millisecond)}
}

// Now is the instant at which the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
