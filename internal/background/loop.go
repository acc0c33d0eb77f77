package background

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// stopGrace is how long a running round may continue after a stop.
	stopGrace = 5 * time.Second
	// leaseTTL is how long a loop rests if the holder of its lease was killed.
	// Long rounds renew the lease while they run.
	leaseTTL = 6 * time.Second
	// leaseRenew is how long before its end a lease is renewed.
	leaseRenew    = leaseTTL / 2
	leaseDeadline = 2 * time.Second // bounds one call
)

// Lease makes a loop run on one instance of the cluster only.
type Lease interface {
	AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
	ReleaseLease(ctx context.Context, name, holder string) error
}

// Loop runs a round every Every, and at once when it is woken.
type Loop struct {
	Name  string
	Every time.Duration
	// Next, if set, returns the time until something is due before Every has
	// passed; 0 means nothing.
	Next    func() time.Duration
	First   time.Duration // delay of the first round, because a start has more urgent work
	Timeout time.Duration // bounds one round
	Round   func(ctx context.Context) error
	// StopsSoon means that a round ends soon after its context, and protects
	// its critical part itself. Its context ends with the stop. The context of
	// other rounds ends stopGrace later.
	StopsSoon bool
	Logger    *slog.Logger
	// Lease, if set, must be held by Holder while rounds run.
	Lease  Lease
	Holder string
	// OnRound gets the result of every round.
	OnRound func(name string, took time.Duration, err error)

	wake      chan struct{}
	began     time.Time    // start of the monotonic time in heldUntil
	heldUntil atomic.Int64 // nanoseconds since began
}

// Ready allows to wake the loop. Call it once before Run or Wake.
func (l *Loop) Ready() *Loop {
	l.wake, l.began = make(chan struct{}, 1), time.Now()
	return l
}

// Wake requests a round soon. It never blocks.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // a round is already requested
	}
}

// Run works until ctx ends, and then lets a running round finish for a while.
func (l *Loop) Run(ctx context.Context) {
	timer := time.NewTimer(l.First)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			l.release(ctx)
			return
		case <-timer.C:
		case <-l.wake:
		}
		err := l.once(ctx)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			continue // the stop ended the round
		}
		if err != nil && !failing {
			l.Logger.Warn("duty failed; it will be tried again", "duty", l.Name, "error", err)
		} else if err == nil && failing {
			l.Logger.Info("duty works again", "duty", l.Name)
		}
		failing = err != nil
		timer.Reset(l.pause())
	}
}

// pause returns the time until the next round.
func (l *Loop) pause() time.Duration {
	if l.Next == nil {
		return l.Every
	}
	if next := l.Next(); next > 0 {
		return min(next, l.Every)
	}
	return l.Every
}

func (l *Loop) once(ctx context.Context) error {
	if !l.StopsSoon {
		longer, cancel := GraceContext(ctx, stopGrace)
		defer cancel()
		ctx = longer
	}
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	if l.Lease != nil {
		if held, err := l.acquire(ctx); err != nil || !held {
			return err
		}
		defer l.keep(ctx)()
	}
	started := time.Now()
	err := l.Round(ctx)
	if l.OnRound != nil {
		l.OnRound(l.Name, time.Since(started), err)
	}
	return err
}

// Here reports whether rounds run on this instance, because it holds the lease.
// The answer may be slightly out of date.
func (l *Loop) Here() bool { return l.Lease == nil || l.left() > 0 }

func (l *Loop) left() time.Duration {
	return time.Duration(l.heldUntil.Load()) - time.Since(l.began)
}

// acquire takes the lease, or renews it near its end.
func (l *Loop) acquire(ctx context.Context) (bool, error) {
	if l.left() > leaseRenew {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaseDeadline)
	defer cancel()
	until := time.Since(l.began) + leaseTTL
	held, err := l.Lease.AcquireLease(ctx, l.Name, l.Holder, leaseTTL)
	switch {
	case err != nil:
		return false, fmt.Errorf("acquire the lease: %w", err)
	case held:
		l.heldUntil.Store(int64(until))
	default:
		l.heldUntil.Store(0)
	}
	return held, nil
}

// keep renews the lease until the returned function is called. A failed renewal
// does not end the round, because a round that runs twice only costs work.
func (l *Loop) keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(leaseRenew / 2)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if _, err := l.acquire(ctx); err != nil && ctx.Err() == nil {
					l.Logger.Debug("lease not renewed in mid-round", "duty", l.Name, "error", err)
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (l *Loop) release(ctx context.Context) {
	if l.Lease == nil || l.left() <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := l.Lease.ReleaseLease(ctx, l.Name, l.Holder); err != nil {
		l.Logger.Debug("lease not released; it will run out", "duty", l.Name, "error", err)
	}
}
