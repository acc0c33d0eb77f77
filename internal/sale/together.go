package sale

import (
	"context"
	"sync"
	"time"
)

// together has callers share runs of one task. A run serves everybody who asked
// before it began: each of them gets what a run of its own would have shown.
// After a loss of everything, thousands of products ask for the same.
type together struct {
	running chan struct{} // holds the one that runs

	mu   sync.Mutex
	next *run // has not begun; nil for none
}

// run is one run of the task.
type run struct {
	done chan struct{}
	err  error
	cut  bool // the caller who made it gave up
}

func newTogether() *together { return &together{running: make(chan struct{}, 1)} }

// do returns after a run that began after the call. The first caller makes it,
// within its own context; if that ends, another makes it. Rest is how long the
// next run waits.
func (t *together) do(ctx context.Context, task func(ctx context.Context) (rest time.Duration, err error)) error {
	for {
		t.mu.Lock()
		r, first := t.next, t.next == nil
		if first {
			r = &run{done: make(chan struct{})}
			t.next = r
		}
		t.mu.Unlock()
		if first {
			t.lead(ctx, r, task)
			return r.err
		}
		select {
		case <-r.done:
			if !r.cut {
				return r.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lead makes a run when the one before it has ended.
func (t *together) lead(ctx context.Context, r *run, task func(ctx context.Context) (time.Duration, error)) {
	defer close(r.done)
	select {
	case t.running <- struct{}{}:
	case <-ctx.Done():
		t.begin()
		r.err, r.cut = ctx.Err(), true
		return
	}
	t.begin()
	var rest time.Duration
	defer func() { time.AfterFunc(rest, func() { <-t.running }) }() // also when the task panics
	rest, r.err = task(ctx)
	r.cut = r.err != nil && ctx.Err() != nil
}

// begin has callers who come from now on wait for another run.
func (t *together) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = nil
}
