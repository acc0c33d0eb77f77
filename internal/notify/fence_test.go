package notify_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/notify"
	"seckill/test/virtual"
)

// places are where barriers are published; each comes back when the test says so.
type places struct {
	*notify.Fence
	mu       sync.Mutex
	barriers []uint64
	count    int
	err      error
	failed   atomic.Int64
}

// fenced runs a fence over so many places while a test does.
func fenced(t *testing.T, count int) *places {
	p := &places{count: count}
	made := uint64(0)
	p.Fence = notify.NewFence(notify.FenceOptions{
		Publish: func(_ context.Context, barrier uint64) (int, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.barriers = append(p.barriers, barrier)
			return p.count, p.err
		},
		Random:   func() uint64 { made++; return made },
		OnFailed: func(error) { p.failed.Add(1) },
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return p
}

// published is how many fences there were.
func (p *places) published() int {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.barriers)
}

// hears has the barrier of the n-th fence come back so often.
func (p *places) hears(n uint64, times int) {
	for range times {
		p.Heard(n)
	}
	synctest.Wait()
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestWhatWaitsIsDoneWhenEveryPlaceWasHeard(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p, done := fenced(t, 3), 0
		p.Behind(1, func() { done++ })
		if n := p.published(); n != 1 {
			t.Fatalf("%d fences", n)
		}
		p.hears(1, 2)
		p.hears(77, 9) // another instance's
		if done != 0 {
			t.Fatal("done before all was heard")
		}
		p.hears(1, 1)
		if done != 1 {
			t.Error("not done when all was heard")
		}
	})
}

// A barrier that is under way may have been published before the notice that a
// newcomer means.
func TestWhoComesDuringAFenceWaitsForTheNext(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p := fenced(t, 1)
		var first, second, other int
		p.Behind(1, func() { first++ })
		synctest.Wait()
		for range 1000 { // a crowd of answers
			p.Behind(1, func() { second++ })
			p.Behind(2, func() { other++ })
		}
		p.hears(1, 1)
		if first != 1 || second != 0 || other != 0 {
			t.Errorf("after the first fence: %d, %d, %d", first, second, other)
		}
		pass(100 * time.Millisecond)
		if n := p.published(); n != 2 {
			t.Fatalf("%d fences", n)
		}
		p.hears(2, 1)
		if first != 1 || second != 1 || other != 1 {
			t.Errorf("after the second fence: %d, %d, %d", first, second, other)
		}
	})
}

func TestAFenceThatFailsIsGivenUpAndTheNextIsMade(t *testing.T) {
	for name, c := range map[string]struct {
		places int
		err    error
		within time.Duration
	}{
		"it is not heard":        {2, nil, time.Second},
		"it is not published":    {0, errors.New("down"), 0},
		"there is nowhere to go": {0, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				p, done := fenced(t, c.places), 0
				p.err = c.err
				p.Behind(1, func() { t.Error("done without a fence") })
				synctest.Wait()
				p.hears(1, 1)
				pass(c.within)
				if p.failed.Load() != 1 {
					t.Fatalf("%d failures after %s", p.failed.Load(), c.within)
				}
				p.mu.Lock()
				p.count, p.err = 1, nil
				p.mu.Unlock()
				p.Behind(1, func() { done++ })
				pass(100 * time.Millisecond)
				p.hears(1, 2) // late
				p.hears(2, 1)
				if done != 1 {
					t.Error("the next fence did nothing")
				}
			})
		})
	}
}

// Every fence is heard by all instances: a crowd of products shares them.
func TestFencesAreNotManyHoweverManyWait(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p, done := fenced(t, 1), 0
		for ms := range uint32(1000) {
			p.Behind(ms, func() { done++ })
			p.hears(uint64(p.published()), 1)
			pass(time.Millisecond)
		}
		pass(100 * time.Millisecond)
		p.hears(uint64(p.published()), 1)
		if n := p.published(); done != 1000 || n > 250 {
			t.Errorf("%d products were served by %d fences in a second", done, n)
		}
	})
}
