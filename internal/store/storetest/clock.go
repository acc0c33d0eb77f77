package storetest

import (
	"sync"
	"time"
)

// Clock is a clock that tests set, for stores with an injected clock. It stands still until a
// test moves it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock makes a clock at the given time, cut to the millisecond that stores keep.
func NewClock(at time.Time) *Clock {
	return &Clock{now: at.UTC().Truncate(time.Millisecond)}
}

// Now returns the clock's time.
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
