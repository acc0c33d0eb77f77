package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// fenceTimeout bounds one fence: what it is waited for with is of no use later.
	fenceTimeout = time.Second
	// fencePause is the least time between two fences: each is heard by all
	// instances. What waits meanwhile is served together.
	fencePause = 5 * time.Millisecond
	// fenceRetry is the same after one that failed.
	fenceRetry = 100 * time.Millisecond
)

// FenceOptions are a fence's surroundings.
type FenceOptions struct {
	// Publish puts a barrier behind all notices, and says in how many places. It
	// returns when ctx ends.
	Publish func(ctx context.Context, barrier uint64) (places int, err error)
	// Random makes the barriers.
	Random func() uint64
	// OnFailed is told of a barrier that did not come back in time. Those who waited
	// for it wait no more.
	OnFailed func(err error)
}

// Fence tells when this instance has heard what others told before. It has a
// barrier published behind their notices, in every place where these are, and what
// waits is done when the barriers have come back: each place tells in order. One
// barrier is under way at a time; whoever comes meanwhile waits for the next, which
// alone is certainly behind what they mean.
type Fence struct {
	opt    FenceOptions
	filled chan struct{}
	came   chan struct{}

	mu      sync.Mutex
	waiting map[uint32]func() // by product, so that it is bounded
	barrier uint64            // the one under way
	heard   int               // in so many places
}

// NewFence makes a fence; Run has it work.
func NewFence(opt FenceOptions) *Fence {
	return &Fence{
		opt: opt, filled: make(chan struct{}, 1), came: make(chan struct{}, 1), waiting: make(map[uint32]func()),
	}
}

// Behind does something for a product when all has been heard that was told
// before now. It returns at once. What waits for the product
// already stands for what comes meanwhile, which is dropped.
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

// Heard takes a barrier that was heard, whosever it is.
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
	default: // it rings already
	}
}

// Run has fences made until ctx ends; what waits then is not done.
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

// serve does what is due behind a fence, and says how long to rest after it.
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

// take takes all that waits.
func (f *Fence) take() (due []func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, do := range f.waiting {
		due = append(due, do)
	}
	clear(f.waiting)
	return due
}

// pass publishes a barrier and waits until it was heard in every place.
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
