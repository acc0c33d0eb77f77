package sale

import (
	"context"
	"sync/atomic"
	"time"
)

// together has callers share runs of one task. A run serves everybody who asked
// before it began: each of them gets what a run of its own would have shown.
// After a loss of everything, thousands of products ask for the same.
type together struct {
	turn  chan struct{} // held by the one that runs, or looks at the last run
	begun atomic.Int64  // runs

	// Of the last run, for who has the turn.
	err  error
	cut  bool      // its caller gave up
	rest time.Time // until when the next one waits
}

func newTogether() *together { return &together{turn: make(chan struct{}, 1)} }

// do returns after a run that began after the call. The first caller whose turn
// comes makes it, within its own context; if that ends, the next makes another.
// Rest is how long the next run waits.
func (t *together) do(ctx context.Context, task func(ctx context.Context) (rest time.Duration, err error)) error {
	before := t.begun.Load()
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.turn }() // also when the task panics
	if t.begun.Load() > before && !t.cut {
		return t.err
	}
	timer := time.NewTimer(time.Until(t.rest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	t.begun.Add(1)
	t.cut = true
	rest, err := task(ctx)
	t.err, t.cut, t.rest = err, err != nil && ctx.Err() != nil, time.Now().Add(rest)
	return err
}
