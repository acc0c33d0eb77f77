package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// endsPerRound bounds the sales that ended which one round counts.
const endsPerRound = 100

// countPlan decides which sales are counted, and when: each once after its end, and
// the recent ones by the clock and after a restart of Redis. The store knows which
// sales still need their last count, so that no crash or outage forgets one.
type countPlan struct {
	uncounted func(ctx context.Context, limit int) ([]uint32, error)
	recent    func() []uint32
	// count counts a sale, and reports whether it came to a verdict.
	count func(ctx context.Context, product uint32) (bool, error)
	now   func() time.Time
	every time.Duration // of the count by the clock; 0 for none
	next  time.Time     // when that is due

	restarted atomic.Bool     // the server of the ledger may have restarted
	suspects  map[uint32]bool // sales not yet counted since
}

// suspect has every recent sale counted in the next round, whatever the clock
// says: a server that was down may have come back with half of a step, which only
// a count of the marks shows. A sale is counted again with every round until
// there is a verdict.
func (c *countPlan) suspect() { c.restarted.Store(true) }

// round counts what is due. One sale that cannot be counted holds up no other;
// it is tried again with the next round.
func (c *countPlan) round(ctx context.Context) error {
	due, err := c.uncounted(ctx, endsPerRound)
	if err != nil {
		return fmt.Errorf("list sales to count after their end: %w", err)
	}
	if c.restarted.Swap(false) {
		c.suspects = make(map[uint32]bool)
		for _, id := range c.recent() {
			c.suspects[id] = true
		}
	}
	due = slices.AppendSeq(due, maps.Keys(c.suspects))
	if now := c.now(); c.every > 0 && !now.Before(c.next) {
		c.next = now.Add(c.every)
		due = append(due, c.recent()...)
	}
	slices.Sort(due)
	due = slices.Compact(due)
	var errs []error
	for _, id := range due {
		told, err := c.count(ctx, id)
		if told && err == nil {
			delete(c.suspects, id)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("count product %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}
