package background_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/background"
	"seckill/test/rig"
	"seckill/test/virtual"
)

var quiet = slog.New(slog.DiscardHandler)

// running starts a loop and returns a function that stops it.
func running(t *testing.T, l *background.Loop) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	if l.Logger == nil {
		l.Logger = quiet
	}
	l.Ready()
	go func() { l.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestLoop_StartsAtOnceAndRunsEveryInterval(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var rounds, seen atomic.Int64
		stop := running(t, &background.Loop{
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

func TestLoop_WakeStartsARoundAtOnce(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var rounds atomic.Int64
		in := make(chan struct{})
		l := &background.Loop{Every: time.Hour, Timeout: time.Hour, Round: func(context.Context) error {
			rounds.Add(1)
			<-in
			return nil
		}}
		stop := running(t, l)
		synctest.Wait()
		for range 5 { // woken often during a round: one more round
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

func TestLoop_RoundHasATimeout(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var ended atomic.Pointer[error]
		stop := running(t, &background.Loop{Every: time.Hour, Timeout: 3 * time.Second, Round: func(ctx context.Context) error {
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

// A stop lets a running round finish, but not until the round's own timeout.
func TestStop_WaitsBrieflyForARound(t *testing.T) {
	for name, takes := range map[string]time.Duration{"a short round finishes": 2 * time.Second, "a long one is cut": time.Hour} {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				var cut atomic.Bool
				stop := running(t, &background.Loop{Every: time.Hour, Timeout: 2 * time.Hour, Round: func(ctx context.Context) error {
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

// A round with StopsSoon sees the stop at once, and its end by the stop is no
// failure.
func TestStop_EndsTheContextOfARoundThatStopsSoon(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var log rig.Log
		stop := running(t, &background.Loop{
			Every: time.Hour, Timeout: time.Hour, StopsSoon: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Round: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		synctest.Wait()
		started := time.Now()
		stop()
		if took := time.Since(started); took > 0 || log.Count("duty failed") > 0 {
			t.Errorf("the stop took %s, %d failures are logged", took, log.Count("duty failed"))
		}
	})
}

func TestLease_OneLoopOfTheClusterRuns(t *testing.T) {
	r := rig.New(t)
	var rounds [2]atomic.Int64
	var stops [2]func()
	loops := [2]*background.Loop{}
	for i, holder := range []string{"one", "two"} {
		loops[i] = &background.Loop{
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
	if rounds[1].Load() != 0 || !loops[0].Here() || loops[1].Here() {
		t.Error("both loops ran")
	}
	stops[0]() // and it releases the lease
	rig.Until(t, "the second loop takes over", func() bool { return rounds[1].Load() > 0 })
}

// lessor grants leases to one holder at a time and records the times.
type lessor struct {
	mu     sync.Mutex
	holder string
	until  time.Time
	calls  int
	broken error
}

func (d *lessor) AcquireLease(_ context.Context, _, holder string, ttl time.Duration) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.broken != nil {
		return false, d.broken
	}
	if d.holder != holder && time.Now().Before(d.until) {
		return false, nil
	}
	d.holder, d.until = holder, time.Now().Add(ttl)
	return true, nil
}

func (d *lessor) ReleaseLease(_ context.Context, _, holder string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holder == holder {
		d.until = time.Time{}
	}
	return nil
}

func (d *lessor) look() (calls int, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls, d.until
}

// The lease is short, so another instance soon replaces a holder that was
// killed. It is renewed during a long round, and not with every short one.
func TestLease_RenewedDuringALongRound(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		d := &lessor{}
		stop := running(t, &background.Loop{
			Name: "long", Holder: "one", Lease: d, Every: time.Second, Timeout: time.Hour,
			Round: func(context.Context) error { <-time.After(time.Minute); return nil },
		})
		for range 30 {
			wait(10 * time.Second)
			if _, until := d.look(); !until.After(time.Now()) || time.Until(until) > 10*time.Second {
				t.Fatalf("the lease ends in %s", time.Until(until))
			}
		}
		stop()
		short := &lessor{}
		stop = running(t, &background.Loop{
			Name: "short", Holder: "one", Lease: short, Every: 100 * time.Millisecond, Timeout: time.Hour,
			Round: func(context.Context) error { return nil },
		})
		wait(30 * time.Second)
		if calls, _ := short.look(); calls > 20 {
			t.Errorf("%d calls for the lease in 30 s", calls)
		}
		stop()
		if _, until := short.look(); !until.IsZero() {
			t.Error("the lease was not given back")
		}
	})
}

func TestLease_LoopContinuesAfterAnOutage(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		d := &lessor{}
		var rounds atomic.Int64
		l := &background.Loop{
			Name: "leased", Holder: "one", Lease: d, Every: time.Second, Timeout: time.Minute,
			Round: func(context.Context) error { rounds.Add(1); return nil },
		}
		stop := running(t, l)
		synctest.Wait()
		d.mu.Lock()
		d.broken = errors.New("down")
		d.mu.Unlock()
		wait(time.Minute)
		if l.Here() {
			t.Error("the loop believes that it holds an old lease")
		}
		before := rounds.Load()
		d.mu.Lock()
		d.broken = nil
		d.mu.Unlock()
		wait(3 * time.Second)
		if rounds.Load() <= before {
			t.Error("the loop did not go on")
		}
		stop()
	})
}
