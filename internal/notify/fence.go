package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// fenceTimeout bounds one fence. Later its result is useless.
	fenceTimeout = time.Second
	// fencePause is the least time between two fences, because all instances
	// receive each of them. Callers that wait meanwhile share the next one.
	fencePause = 5 * time.Millisecond
	// fenceRetry is the pause after a fence that failed.
	fenceRetry = 100 * time.Millisecond
)

// FenceOptions are the parts of a fence.
type FenceOptions struct {
	// Publish publishes a barrier after all notices, and returns the number of
	// places. It returns when ctx ends.
	Publish func(ctx context.Context, barrier uint64) (places int, err error)
	// Random returns the numbers of barriers.
	Random func() uint64
	// OnFailed reports a barrier that was not received in time. The waiting
	// functions are dropped.
	OnFailed func(err error)
}

// Fence finds out when this instance has received everything that others
// published before. It publishes a barrier after their notices, in every place
// of the ledger. Each place sends in order, so everything before has arrived
// when all barriers have come back. One barrier is under way at a time. A
// caller during it waits for the next one, because only the next one is
// certainly after the caller's notice.
type Fence struct {
	opt    FenceOptions
	filled chan struct{}
	came   chan struct{}

	mu      sync.Mutex
	waiting map[uint32]func() // by product, so the size is bounded
	barrier uint64            // the one under way
	heard   int               // number of places that have sent it back
}

// NewFence makes a fence. Run makes it work.
func NewFence(opt FenceOptions) *Fence {
	return &Fence{
		opt: opt, filled: make(chan struct{}, 1), came: make(chan struct{}, 1), waiting: make(map[uint32]func()),
	}
}

// Behind calls do when this instance has received everything that was published
// before this call. It returns at once. If a function already waits for the
// product, do is dropped: the waiting one stands for both.
func (f *Fence) Behind(product uint32, do func()) {
	f.mu.Lock()
	_, there := f.waiting[product]
	if !there {
		f.waiting[product] = do
	}
	f.mu.Unlock()
	if !there {
		ring(f.filled)
	}
}

// Heard counts a received barrier, if it is the present one of this instance.
func (f *Fence) Heard(barrier uint64) {
	f.mu.Lock()
	ours := f.barrier == barrier
	if ours {
		f.heard++
	}
	f.mu.Unlock()
	if ours {
		ring(f.came)
	}
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default: // a signal is already pending
	}
}

// Run makes fences until ctx ends. Functions that wait then are dropped.
func (f *Fence) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.filled:
		}
		if due := f.take(); len(due) > 0 {
			rest(ctx, f.serve(ctx, due))
		}
	}
}

// serve makes a fence and calls the due functions. It returns the pause after
// it.
func (f *Fence) serve(ctx context.Context, due []func()) (pause time.Duration) {
	if err := f.pass(ctx); err != nil {
		if ctx.Err() == nil {
			f.opt.OnFailed(err)
		}
		return fenceRetry
	}
	for _, do := range due {
		do()
	}
	return fencePause
}

func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// take removes and returns all waiting functions.
func (f *Fence) take() (due []func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, do := range f.waiting {
		due = append(due, do)
	}
	clear(f.waiting)
	return due
}

// pass publishes a barrier and waits until every place has sent it back.
func (f *Fence) pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	barrier := f.opt.Random()
	f.mu.Lock()
	f.barrier, f.heard = barrier, 0
	f.mu.Unlock()
	places, err := f.opt.Publish(ctx, barrier)
	if err != nil {
		return fmt.Errorf("publish a barrier: %w", err)
	}
	if places == 0 {
		return errors.New("publish a barrier: there is no place for it")
	}
	for {
		f.mu.Lock()
		heard := f.heard
		f.mu.Unlock()
		if heard >= places {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a barrier was heard in %d of %d places: %w", heard, places, ctx.Err())
		case <-f.came:
		}
	}
}
