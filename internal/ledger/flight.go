package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Causes that stand beside ErrNotApplied and ErrUnknown.
var (
	errNeverHappened = errors.New("the ledger has no verdict of it")
	errNoReply       = errors.New("no reply in time")
)

// flight is one call on its way: the newest of its lane, or one that was given
// up and whose landing nobody waits for.
type flight struct {
	lane   *Lane
	ctx    context.Context
	req    Request
	giveUp time.Time // when the lane stops waiting for it

	reply  Reply
	err    error
	landed chan struct{} // holds one token when reply and err are set
	run    func()        // fly as a value, so that starting it allocates nothing
}

func (l *Lane) newFlight() *flight {
	if f := l.spare; f != nil {
		l.spare = nil
		return f
	}
	f := &flight{lane: l, landed: make(chan struct{}, 1)}
	f.run = f.fly
	return f
}

// fly calls the ledger on a goroutine of its own: a ledger that hangs past its
// deadline must not hold up the lane.
func (f *flight) fly() {
	f.reply, f.err = f.lane.ledger.Do(f.ctx, f.req)
	<-f.lane.slots
	f.landed <- struct{}{}
}

// launch sends a write, or an ask if w is nil, under the next number. An error
// means that nothing was sent.
func (l *Lane) launch(ctx context.Context, w Write) error {
	if err := l.Err(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.sent >= maxNumber {
		l.finish(errNumbersSpent)
		return errNumbersSpent
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	now := time.Now()
	l.sent++
	f := l.newFlight()
	f.ctx, f.giveUp = l.contextAt(now), now.Add(l.callTimeout)
	f.req = Request{
		Shard: l.shard,
		Call:  Call{Process: l.process, Number: l.sent, Seen: l.seen.Load()},
		Write: w,
	}
	if w != nil {
		l.owed = l.sent
	}
	l.flight = f
	go f.run()
	return nil
}

// contextAt is the context of a call that is sent now.
func (l *Lane) contextAt(now time.Time) context.Context {
	if l.callCtx == nil || l.callCtxUntil.Before(now.Add(l.callTimeout)) {
		l.dropContext()
		l.callCtxUntil = now.Add(2 * l.callTimeout)
		l.callCtx, l.cancelCalls = context.WithDeadline(context.Background(), l.callCtxUntil)
	}
	return l.callCtx
}

// dropContext tells a call that nobody waits for any more to end.
func (l *Lane) dropContext() {
	if l.callCtx != nil {
		l.cancelCalls()
		l.callCtx, l.cancelCalls = nil, nil
	}
}

// settle returns when the owed number is settled: its result, or why it did
// not happen. With l.owed != 0 on return, the error says why it could not be
// settled. With nothing owed it returns at once.
func (l *Lane) settle(ctx context.Context) (Result, error) {
	var cause error // of the latest ask
	for l.owed != 0 {
		if l.flight == nil {
			if err := l.ask(ctx); err != nil {
				return Result{}, errors.Join(err, cause)
			}
		}
		f, err := l.await(ctx)
		if err != nil {
			return Result{}, errors.Join(err, cause)
		}
		if f == nil {
			l.onReply(false)
			cause = errNoReply
			continue
		}
		result, err := l.take(f)
		if l.owed == 0 || l.Err() != nil {
			return result, err
		}
		cause = err
	}
	return Result{}, nil
}

// ask sends an ask, at once the first time and after a growing pause from
// then on.
func (l *Lane) ask(ctx context.Context) error {
	if wait := time.Until(l.nextAskAt); l.asks > 0 && wait > 0 {
		l.timer.Reset(wait)
		select {
		case <-l.timer.C:
		case <-ctx.Done():
			l.timer.Stop()
			return ctx.Err()
		}
	}
	if err := l.launch(ctx, nil); err != nil {
		return err
	}
	backoff := l.maxBackoff
	if l.asks < 16 { // beyond, the doubling has passed any sensible bound
		backoff = min(backoff, firstAskBackoff<<l.asks)
	}
	l.asks++
	l.nextAskAt = time.Now().Add(backoff)
	return nil
}

// await waits for the newest flight to land. A flight that does not land in
// time is given up and nil returned: what it says later is not read. When the
// context ends first, the flight stays: the next caller may still hear it.
func (l *Lane) await(ctx context.Context) (*flight, error) {
	f := l.flight
	l.timer.Reset(time.Until(f.giveUp))
	defer l.timer.Stop()
	select {
	case <-f.landed:
		l.flight = nil
		return f, nil
	case <-l.timer.C:
		l.flight = nil
		l.dropContext()
		return nil, nil
	case <-ctx.Done():
	}
	select { // a reply that is here already is better than "unknown"
	case <-f.landed:
		l.flight = nil
		return f, nil
	default:
		return nil, ctx.Err()
	}
}

// take reads a landed flight. It settles the owed number, or finishes the
// lane, or does neither, and then the lane has to ask.
func (l *Lane) take(f *flight) (Result, error) {
	number, ask := f.req.Call.Number, f.req.Write == nil
	reply, err := f.reply, f.err
	f.ctx, f.req, f.reply, f.err = nil, Request{}, Reply{}, nil
	l.spare = f

	if err != nil {
		refused := errors.Is(err, ErrNotExecuted)
		if (ask || refused) && !errors.Is(err, ErrBadCall) {
			l.onReply(false)
		}
		if !ask && refused {
			l.sent-- // not even the record changed: the number may go again
			l.settled()
		}
		return Result{}, err
	}
	l.onReply(true)
	if final := finalError(reply.Outcome, reply.Epoch); final != nil {
		l.finish(final)
		if !ask { // the write itself was refused; nothing else is owed
			l.settled()
		}
		return Result{}, final
	}
	if reply.Outcome != OutcomeApplied {
		return Result{}, fmt.Errorf("ledger answered outcome %d", reply.Outcome)
	}
	owed := l.owed
	l.seen.Store(number)
	l.settled()
	if !ask {
		return reply.Result, nil
	}
	for i := range reply.Kept {
		if reply.Kept[i].Number == owed {
			return reply.Kept[i].Result, nil
		}
	}
	return Result{}, errNeverHappened
}

func (l *Lane) settled() { l.owed, l.asks = 0, 0 }
