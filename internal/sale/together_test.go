package sale

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/test/virtual"
)

func TestTogether_CallersDuringARunShareTheNext(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		together, fail := newTogether(), errors.New("fails")
		began := 0
		task := func(context.Context) (time.Duration, error) {
			began++
			time.Sleep(time.Second)
			return 0, fail
		}
		var calling sync.WaitGroup
		call := func() {
			calling.Go(func() {
				if err := together.do(t.Context(), task); !errors.Is(err, fail) {
					t.Errorf("a caller got %v", err)
				}
			})
		}
		call()
		synctest.Wait()
		start := time.Now()
		for range 100 {
			call()
		}
		calling.Wait()
		if took := time.Since(start); began != 2 || took != 2*time.Second {
			t.Errorf("%d runs in %s, want 2 in 2s", began, took)
		}
	})
}

func TestTogether_RunIsTakenOverFromACallerWhoGivesUp(t *testing.T) {
	for name, patience := range map[string]time.Duration{"while it runs": 1500 * time.Millisecond, "before it runs": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				together := newTogether()
				task := func(ctx context.Context) (time.Duration, error) {
					select {
					case <-ctx.Done():
						return 0, ctx.Err()
					case <-time.After(time.Second):
						return 0, nil
					}
				}
				var calling sync.WaitGroup
				calling.Go(func() { _ = together.do(t.Context(), task) })
				synctest.Wait()
				calling.Go(func() { // the next run is this caller's
					brief, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if err := together.do(brief, task); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("who gave up got %v", err)
					}
				})
				synctest.Wait()
				calling.Go(func() {
					if err := together.do(t.Context(), task); err != nil {
						t.Errorf("who waited got %v", err)
					}
				})
				calling.Wait()
			})
		})
	}
}

func TestTogether_CallerWaitsNoLongerThanItsContext(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		together := newTogether()
		var calling sync.WaitGroup
		for range 2 { // one runs, one leads the next run
			calling.Go(func() {
				_ = together.do(t.Context(), func(context.Context) (time.Duration, error) { time.Sleep(time.Second); return 0, nil })
			})
			synctest.Wait()
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := together.do(brief, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Millisecond {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		calling.Wait()
	})
}

func TestTogether_RunsRest(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		together := newTogether()
		began := time.Now()
		for n := range 3 {
			err := together.do(t.Context(), func(context.Context) (time.Duration, error) { return time.Second, nil })
			if took := time.Since(began); err != nil || took != time.Duration(n)*time.Second {
				t.Errorf("run %d ended after %s: %v", n, took, err)
			}
		}
	})
}

// Whatever callers do, none returns without a run that began after its call.
func TestTogether_RunBeginsAfterTheCall(t *testing.T) {
	together := newTogether()
	var clock, run atomic.Int64 // of calls and runs; when the last run began
	var calling sync.WaitGroup
	for range 8 {
		calling.Go(func() {
			for range 500 {
				called := clock.Add(1)
				err := together.do(t.Context(), func(context.Context) (time.Duration, error) {
					run.Store(clock.Add(1))
					return 0, nil
				})
				if began := run.Load(); err != nil || began < called {
					t.Errorf("called at %d, the last run began at %d: %v", called, began, err)
				}
			}
		})
	}
	calling.Wait()
}
