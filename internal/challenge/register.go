package challenge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/onetime"
)

// Bounds for the fallback to the spare register.
const (
	// usualPatience is the timeout of the usual register.
	usualPatience = 300 * time.Millisecond

	// After this number of calls in a row without an answer, the usual register
	// counts as away. Then one call per retryEvery still tries it.
	silences   = 2
	retryEvery = 500 * time.Millisecond
)

// register settles challenges in the usual register, and in the spare one while
// the usual one is away.
//
// Each register keeps the first answer that it gets. So a challenge that meets
// both can be answered twice at this instance, once in each register, and never
// more often. Each other instance has its own spare, so it adds one more answer.
type register struct {
	usual, spare onetime.Register // spare may be nil
	away         breaker
	meter        Meter
}

func newRegister(opt *Options) *register {
	return &register{usual: opt.Spent, spare: opt.Spare, meter: opt.Meter}
}

// errAway: recent calls of the usual register got no answer.
var errAway = errors.New("the register is away")

func (r *register) settle(ctx context.Context, id string, outcome onetime.Outcome, until, now time.Time) (onetime.Outcome, error) {
	if r.spare == nil {
		return r.usual.Settle(ctx, id, outcome, until)
	}
	cause := errAway
	if r.away.mayAsk(now) {
		standing, err := r.settleAsUsual(ctx, id, outcome, until, now)
		if err == nil || refusal(err) || ctx.Err() != nil {
			return standing, err
		}
		cause = err
	}
	standing, err := r.spare.Settle(ctx, id, outcome, until)
	if err != nil {
		return 0, fmt.Errorf("settle in the spare register: %w, after: %w", err, cause)
	}
	r.meter.Spared()
	return standing, nil
}

// refusal reports whether err is an answer of a register.
func refusal(err error) bool {
	var said *seckill.Error
	return errors.As(err, &said)
}

func (r *register) settleAsUsual(
	ctx context.Context, id string, outcome onetime.Outcome, until, now time.Time,
) (onetime.Outcome, error) {
	bounded, cancel := context.WithTimeout(ctx, usualPatience)
	defer cancel()
	standing, err := r.usual.Settle(bounded, id, outcome, until)
	if ctx.Err() == nil { // otherwise the request ended before the timeout
		r.away.heard(err == nil || refusal(err), now)
	}
	return standing, err
}

// breaker is open while the usual register does not answer. Then one call per
// retryEvery tries it; the first answer closes the breaker.
type breaker struct {
	silent atomic.Int32 // calls in a row without an answer
	asked  atomic.Int64 // start of the last such call, in Unix nanoseconds
}

func (b *breaker) mayAsk(now time.Time) bool {
	if b.silent.Load() < silences {
		return true // the usual case
	}
	last := b.asked.Load()
	since := time.Duration(now.UnixNano() - last)
	// If the clock was set back, the breaker must not stay open.
	due := since < 0 || since >= retryEvery
	return due && b.asked.CompareAndSwap(last, now.UnixNano())
}

// heard records whether a call that began at an instant was answered.
func (b *breaker) heard(answered bool, began time.Time) {
	switch {
	case !answered:
		b.silent.Add(1)
		b.asked.Store(began.UnixNano())
	case b.silent.Load() != 0:
		b.silent.Store(0)
	}
}
