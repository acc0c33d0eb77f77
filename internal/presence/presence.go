// Package presence counts the shops that are alive: what is meant for all of
// them, such as a rate, each takes its share of.
package presence

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// Every is the time between two beats of a shop.
	Every = time.Second
	// Life is how long a shop counts after its last beat: two may be lost.
	Life = 3 * time.Second
	// Timeout bounds one beat.
	Timeout = Every
)

// Roster is where shops sign in. It may lose what it knows: the next beats tell
// it again.
type Roster interface {
	// Beat signs this shop in for another Life, by the roster's own clock, and
	// returns how many shops are signed in, this one included.
	Beat(ctx context.Context) (live int, err error)
	// Close signs this shop out, so that nobody waits for its Life to end, and
	// lets go of the roster.
	Close(ctx context.Context) error
}

// Alone is the roster of a shop that shares nothing with others.
type Alone struct{}

// Beat counts this shop.
func (Alone) Beat(context.Context) (int, error) { return 1, nil }

// Close does nothing.
func (Alone) Close(context.Context) error { return nil }

// Census knows how many shops are alive, as of the last beat that was
// answered: while the roster is away the shops are as many as they were, and
// nobody's share grows because all lost sight of each other.
type Census struct {
	roster   Roster
	live     atomic.Int64
	onChange func(live int)
}

// NewCensus makes a census that counts this shop alone until the first Round.
// onChange, which must not block, is told each new number.
func NewCensus(roster Roster, onChange func(live int)) *Census {
	c := &Census{roster: roster, onChange: onChange}
	c.live.Store(1)
	return c
}

// Live is how many shops there are, at least this one.
func (c *Census) Live() int { return int(c.live.Load()) }

// Round beats once. Rounds follow one another.
func (c *Census) Round(ctx context.Context) error {
	live, err := c.roster.Beat(ctx)
	if err != nil {
		return fmt.Errorf("count the shops: %w", err)
	}
	live = max(live, 1)
	if c.live.Swap(int64(live)) != int64(live) {
		c.onChange(live)
	}
	return nil
}
