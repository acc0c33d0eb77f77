// Package duty holds the background loops: what the engine does without being
// asked. Each is a round that may be repeated, done twice or cut short at any
// instant; the loop around it starts and stops all of them the same way.
package duty

import (
	"context"
	"log/slog"
	"time"
)

// stopGrace is how long a round in hand may go on after a stop was asked for.
const stopGrace = 5 * time.Second

// Lease lets a duty run once in the cluster.
type Lease interface {
	AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
	ReleaseLease(ctx context.Context, name, holder string) error
}

// Loop runs a round every Every, and at once when woken.
type Loop struct {
	Name  string
	Every time.Duration
	// Next, if set, is when something is due before Every has passed; 0 for
	// nothing.
	Next    func() time.Duration
	First   time.Duration // until the first round; a start has better things to do
	Timeout time.Duration // of one round
	Round   func(ctx context.Context) error
	Logger  *slog.Logger
	// Lease, if set, must be held by Holder while rounds run.
	Lease  Lease
	Holder string
	// OnRound sees how every round ended.
	OnRound func(name string, took time.Duration, err error)

	wake chan struct{}
}

// Ready makes the loop wakeable; call it once before Run or Wake.
func (l *Loop) Ready() *Loop {
	l.wake = make(chan struct{}, 1)
	return l
}

// Wake asks for a round soon. It never blocks.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // a round is due already
	}
}

// Run works until ctx ends, and lets a round in hand finish, for a while.
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
		if err != nil && !failing {
			l.Logger.Warn("duty failed; it will be tried again", "duty", l.Name, "error", err)
		} else if err == nil && failing {
			l.Logger.Info("duty works again", "duty", l.Name)
		}
		failing = err != nil
		timer.Reset(l.pause())
	}
}

// pause is how long until the next round by itself.
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
	stopping := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
	defer cancel()
	defer context.AfterFunc(stopping, func() { time.AfterFunc(stopGrace, cancel) })()
	if l.Lease != nil {
		// Twice the timeout: a round that runs to its end still holds it.
		held, err := l.Lease.AcquireLease(ctx, l.Name, l.Holder, 2*l.Timeout)
		if err != nil || !held {
			return err
		}
	}
	started := time.Now()
	err := l.Round(ctx)
	if l.OnRound != nil {
		l.OnRound(l.Name, time.Since(started), err)
	}
	return err
}

func (l *Loop) release(ctx context.Context) {
	if l.Lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := l.Lease.ReleaseLease(ctx, l.Name, l.Holder); err != nil {
		l.Logger.Debug("lease not released; it will run out", "duty", l.Name, "error", err)
	}
}
