package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// endsPerRound bounds the sales that ended which one round counts.
const endsPerRound = 100

// counter decides which sales are counted, and when: each once after its end,
// and the recent ones by the clock. That a sale's last count is owed stands in
// the store, so that no crash, outage or lost wake-up forgets it.
type counter struct {
	uncounted func(ctx context.Context, limit int) ([]uint32, error)
	recent    func() []uint32
	count     func(ctx context.Context, product uint32) error
	now       func() time.Time
	every     time.Duration // of the count by the clock; 0 for none
	next      time.Time     // when that is due
}

// round counts what is due. One sale that cannot be counted holds up no other;
// it is tried again with the next round.
func (c *counter) round(ctx context.Context) error {
	due, err := c.uncounted(ctx, endsPerRound)
	if err != nil {
		return fmt.Errorf("list sales to count after their end: %w", err)
	}
	if now := c.now(); c.every > 0 && !now.Before(c.next) {
		c.next = now.Add(c.every)
		due = append(due, c.recent()...)
		slices.Sort(due)
		due = slices.Compact(due)
	}
	var errs []error
	for _, id := range due {
		if err := c.count(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("count product %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}
