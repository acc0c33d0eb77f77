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

// Bounds of the detour by the spare register.
const (
	// usualPatience is how long an answer waits for the usual register.
	usualPatience = 300 * time.Millisecond

	// silences is how many calls in a row go unanswered before the usual register
	// counts as away; retryEvery, how often an answer tries it nevertheless.
	silences   = 2
	retryEvery = 500 * time.Millisecond
)

// register is where an issuer's challenges are settled: in the usual register, and
// in the spare one while that cannot be asked.
//
// Each remembers the first answer that it was told. A challenge that meets both
// can therefore be answered twice, once in each, and never more often at this
// instance, however often the usual one comes and goes. The spare is this
// instance's own: each of the others has one more answer.
type register struct {
	usual, spare onetime.Register // spare may be nil
	away         breaker
	meter        Meter
}

func newRegister(opt *Options) *register {
	return &register{usual: opt.Spent, spare: opt.Spare, meter: opt.Meter}
}

// errAway says that the usual register did not answer others of late.
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

// refusal reports whether a register has answered, with an error of its own.
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
	if ctx.Err() == nil { // otherwise it was not given its time
		r.away.heard(err == nil || refusal(err), now)
	}
	return standing, err
}

// breaker is open while the usual register does not answer. Then it is asked by
// one answer now and again, and the first that it hears closes the breaker.
type breaker struct {
	silent atomic.Int32 // calls without answer since the last answer
	asked  atomic.Int64 // when the last of them began, in Unix nanoseconds
}

func (b *breaker) mayAsk(now time.Time) bool {
	if b.silent.Load() < silences {
		return true // as nearly always
	}
	last := b.asked.Load()
	since := time.Duration(now.UnixNano() - last)
	// A clock that was put back must not keep the breaker open.
	due := since < 0 || since >= retryEvery
	return due && b.asked.CompareAndSwap(last, now.UnixNano())
}

// heard takes whether a call that began at an instant was answered.
func (b *breaker) heard(answered bool, began time.Time) {
	switch {
	case !answered:
		b.silent.Add(1)
		b.asked.Store(began.UnixNano())
	case b.silent.Load() != 0:
		b.silent.Store(0)
	}
}
