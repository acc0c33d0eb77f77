package duty_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/duty"
	"seckill/test/rig"
)

var quiet = slog.New(slog.DiscardHandler)

// running starts a loop and returns how it is stopped.
func running(t *testing.T, l *duty.Loop) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	l.Logger = quiet
	l.Ready()
	go func() { l.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestALoopBeginsAtOnceAndGoesOnEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds, seen atomic.Int64
		stop := running(t, &duty.Loop{
			Name: "test", Every: time.Minute, Timeout: time.Second,
			Round: func(context.Context) error {
				if rounds.Add(1) == 2 {
					return errors.New("down")
				}
				return nil
			},
			OnRound: func(name string, _ time.Duration, err error) {
				if name == "test" && err != nil {
					seen.Add(1)
				}
			},
		})
		synctest.Wait()
		if rounds.Load() != 1 {
			t.Errorf("%d rounds at the start", rounds.Load())
		}
		wait(2*time.Minute + time.Second)
		if rounds.Load() != 3 || seen.Load() != 1 {
			t.Errorf("%d rounds after two minutes, %d seen to fail", rounds.Load(), seen.Load())
		}
		stop()
	})
}

func TestAWokenLoopDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds atomic.Int64
		in := make(chan struct{})
		l := &duty.Loop{Every: time.Hour, Timeout: time.Hour, Round: func(context.Context) error {
			rounds.Add(1)
			<-in
			return nil
		}}
		stop := running(t, l)
		synctest.Wait()
		for range 5 { // woken in mid-round, often: one more round
			l.Wake()
		}
		in <- struct{}{}
		synctest.Wait()
		in <- struct{}{}
		synctest.Wait()
		if rounds.Load() != 2 {
			t.Errorf("%d rounds, want 2", rounds.Load())
		}
		stop()
	})
}

func TestARoundHasATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Pointer[error]
		stop := running(t, &duty.Loop{Every: time.Hour, Timeout: 3 * time.Second, Round: func(ctx context.Context) error {
			<-ctx.Done()
			err := ctx.Err()
			ended.Store(&err)
			return err
		}})
		wait(4 * time.Second)
		if err := ended.Load(); err == nil || !errors.Is(*err, context.DeadlineExceeded) {
			t.Errorf("the round ended with %v", err)
		}
		stop()
	})
}

// A stop lets a round in hand finish, but not for as long as its own timeout:
// every round may be cut short.
func TestAStopFinishesTheRoundWithinReason(t *testing.T) {
	for name, takes := range map[string]time.Duration{"a short round finishes": 2 * time.Second, "a long one is cut": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cut atomic.Bool
				stop := running(t, &duty.Loop{Every: time.Hour, Timeout: 2 * time.Hour, Round: func(ctx context.Context) error {
					select {
					case <-ctx.Done():
						cut.Store(true)
						return ctx.Err()
					case <-time.After(takes):
						return nil
					}
				}})
				synctest.Wait()
				started := time.Now()
				stop()
				if took := time.Since(started); took > 10*time.Second || cut.Load() != (takes == time.Hour) {
					t.Errorf("the stop took %s, cut: %v", took, cut.Load())
				}
			})
		})
	}
}

func TestALeaseLetsOneLoopOfTheClusterRun(t *testing.T) {
	r := rig.New(t)
	var rounds [2]atomic.Int64
	var stops [2]func()
	loops := [2]*duty.Loop{}
	for i, holder := range []string{"one", "two"} {
		loops[i] = &duty.Loop{
			Name: "leased", Every: 5 * time.Millisecond, Timeout: time.Minute, Lease: r.Store, Holder: holder,
			Round: func(context.Context) error { rounds[i].Add(1); return nil },
		}
		stops[i] = sync.OnceFunc(running(t, loops[i]))
		t.Cleanup(stops[i])
		if i == 0 {
			rig.Until(t, "the first loop has the lease", func() bool { return rounds[0].Load() > 0 })
		}
	}
	before := rounds[0].Load()
	rig.Until(t, "the first loop goes on", func() bool { return rounds[0].Load() > before+3 })
	if rounds[1].Load() != 0 {
		t.Error("both loops ran")
	}
	stops[0]() // and it lets go of the lease
	rig.Until(t, "the second loop takes over", func() bool { return rounds[1].Load() > 0 })
	r.Store.FailBefore("AcquireLease", 1) // an outage of the lease is an error, and passes
	before = rounds[1].Load()
	rig.Until(t, "the second loop goes on", func() bool { return rounds[1].Load() > before+2 })
}
