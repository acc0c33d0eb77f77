package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/api"
)

const (
	// endsPerRound bounds the ended sales that one round counts.
	endsPerRound = 100
	// firstCount is how long after a start the regular count begins: a crowd may be
	// waiting for a restart to end.
	firstCount = 30 * time.Second
)

// EndedSales knows the sales that have ended and were not counted since.
type EndedSales interface {
	UncountedEnds(ctx context.Context, limit int) ([]uint32, error)
}

// RecentSales knows the sales that are worth looking at.
type RecentSales interface {
	RecentSales() []uint32
}

// SaleCounter counts one sale.
type SaleCounter interface {
	// Count reports whether the count came to a verdict.
	Count(ctx context.Context, product uint32) (verdict bool, err error)
}

// Schedule decides which sales are counted, and when: each once after its end, and
// the recent ones by the clock and after a restart of Redis. The store knows which
// sales still need their last count, so no crash or outage forgets one.
type Schedule struct {
	ended   EndedSales
	recent  RecentSales
	counter SaleCounter
	now     func() time.Time
	every   time.Duration // of the regular count; 0 for none
	next    time.Time     // of the regular count

	restarted atomic.Bool     // the server of the ledger may have restarted
	suspects  map[uint32]bool // sales not yet counted since
}

// NewSchedule makes a schedule; every is the time between regular counts, 0 for none.
func NewSchedule(ended EndedSales, recent RecentSales, counter SaleCounter, every time.Duration) *Schedule {
	return &Schedule{ended: ended, recent: recent, counter: counter, now: time.Now, every: every, next: time.Now().Add(min(every, firstCount))}
}

// SuspectAll has every recent sale counted in the next round. A server that was
// down may have come back with half of a step, which only a count of the marks
// shows. A sale is counted again with every round until there is a verdict.
func (c *Schedule) SuspectAll() { c.restarted.Store(true) }

// Round counts what is due. One sale that cannot be counted holds up no other;
// it is tried again with the next round.
func (c *Schedule) Round(ctx context.Context) error {
	due, err := c.ended.UncountedEnds(ctx, endsPerRound)
	if err != nil {
		return fmt.Errorf("list sales to count after their end: %w", err)
	}
	if c.restarted.Swap(false) {
		c.suspects = make(map[uint32]bool)
		for _, id := range c.recent.RecentSales() {
			c.suspects[id] = true
		}
	}
	due = slices.AppendSeq(due, maps.Keys(c.suspects))
	if now := c.now(); c.every > 0 && !now.Before(c.next) {
		c.next = now.Add(c.every)
		due = append(due, c.recent.RecentSales()...)
	}
	slices.Sort(due)
	due = slices.Compact(due)
	var errs []error
	for _, id := range due {
		verdict, err := c.counter.Count(ctx, id)
		if verdict && err == nil {
			delete(c.suspects, id)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("count product %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// Regular counts sales for a Schedule. It always rebuilds a ledger that does not
// add up.
type Regular struct {
	Reconciler *Reconciler
	// Repair says that the operator allows rows of the store to be mended.
	Repair bool
}

// Count counts one sale.
func (r Regular) Count(ctx context.Context, product uint32) (verdict bool, err error) {
	var report api.Report
	if r.Repair {
		report, err = r.Reconciler.Run(ctx, product, true, "system")
	} else {
		report, err = r.Reconciler.Rebuild(ctx, product, "system")
	}
	if seckill.CodeNotFound.In(err) {
		return true, nil // it was deleted meanwhile
	}
	return report.Balanced != nil, err
}
