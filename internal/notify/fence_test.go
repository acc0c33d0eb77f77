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

// places are the places for barriers. The test sends each barrier back.
type places struct {
	*notify.Fence
	mu       sync.Mutex
	barriers []uint64
	count    int
	err      error
	failed   atomic.Int64
}

// fenced runs a fence with this number of places during a test.
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

// published returns the number of fences.
func (p *places) published() int {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.barriers)
}

// hears sends back the barrier of the n-th fence this many times.
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

func TestFence_PassesWhenEveryPlaceWasHeard(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p, done := fenced(t, 3), 0
		p.Behind(1, func() { done++ })
		if n := p.published(); n != 1 {
			t.Fatalf("%d fences", n)
		}
		p.hears(1, 2)
		p.hears(77, 9) // the barrier of another instance
		if done != 0 {
			t.Fatal("called before every place sent the barrier back")
		}
		p.hears(1, 1)
		if done != 1 {
			t.Error("not called after every place sent the barrier back")
		}
	})
}

// A barrier under way may have been published before the notice that a new
// caller means.
func TestFence_LaterCallersWaitForTheNext(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p := fenced(t, 1)
		var first, second, other int
		p.Behind(1, func() { first++ })
		synctest.Wait()
		for range 1000 { // many calls
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

func TestFence_FailureDropsCallersAndTheNextIsMade(t *testing.T) {
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
				p.Behind(1, func() { t.Error("called without a fence") })
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
				p.hears(1, 2) // too late
				p.hears(2, 1)
				if done != 1 {
					t.Error("the next fence did nothing")
				}
			})
		})
	}
}

// All instances receive every fence, so many products share one.
func TestFence_ManyCallersShareFewFences(t *testing.T) {
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
