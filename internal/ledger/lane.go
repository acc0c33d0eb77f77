package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// How a lane's call can end without a result. An error of Do wraps exactly one
// of ErrNotApplied and ErrUnknown, and beside it the cause, which is ErrLost,
// ErrClosed or an *EpochError when the lane is finished.
var (
	// ErrNotApplied says that the write did not happen and never will; it may
	// be sent again as a new call.
	ErrNotApplied = errors.New("ledger call was not applied")
	// ErrUnknown says that the write may have happened: busy, not no.
	ErrUnknown = errors.New("outcome of the ledger call is unknown")
	// ErrLost says that the ledger has forgotten what it had answered; the
	// shard has closed itself and waits to be recovered.
	ErrLost = errors.New("ledger shard lost writes")
	// ErrClosed says that the shard is closed.
	ErrClosed = errors.New("ledger shard is closed")
)

// EpochError says that the shard is of another epoch than the lane.
type EpochError struct {
	Epoch uint64 // that the shard has; 0 when it has none, or a heartbeat told
}

func (e *EpochError) Error() string {
	return fmt.Sprintf("ledger shard is of another epoch (%d)", e.Epoch)
}

// Defaults and bounds of a lane.
const (
	DefaultCallTimeout   = time.Second
	DefaultMaxAskBackoff = time.Second

	firstAskBackoff = 5 * time.Millisecond
)

var (
	errNumbersSpent = errors.New("the lane has used up its numbers")
	// errNeverHappened stands beside ErrNotApplied.
	errNeverHappened = errors.New("the ledger has no verdict of it")
)

// LaneOptions adjust a lane; the zero value is fit for use.
type LaneOptions struct {
	// CallTimeout is how long a reply is waited for before the lane asks.
	CallTimeout time.Duration
	// MaxAskBackoff bounds the pause between asks that get no answer.
	MaxAskBackoff time.Duration
	// OnReply, if set, is told of the lane's calls whether the ledger answered,
	// whatever it said. Of a write that failed in time it is not told, unless the
	// ledger did not execute it: the ask that follows at once tells more. Nor is
	// it told of a bad call or of a call that the caller's context ended, which
	// say nothing about the ledger. It is called by who has the lane's turn, and
	// must not block.
	OnReply func(answered bool)
	// OnSettled, if set, is told what became of a write of which Do has returned
	// ErrUnknown: its result, or why there is none. It is called by the next call
	// that hears of it, before that call writes.
	OnSettled func(w Write, result Result, err error)
}

// Lane is a process's side of the numbered calls on one shard (protocol 1).
// It has one call in flight; who wants two uses two lanes, each a process of
// its own to the ledger.
//
// A number is sent once. After a reply that did not come in time, an error, a
// gap or a stale, nothing is written until an ask is heard: either the ledger
// kept the verdict of the outstanding number, which then is its result, or
// that number never happened and never will. Replies to what was sent before
// an ask are never read: the ledger returned from that call without them.
//
// What one call leaves unsettled, because its context ended, the next call
// settles before it writes. A lane has no goroutine of its own and needs no
// closing. It is finished by ErrLost, ErrClosed or an *EpochError.
type Lane struct {
	ledger      Ledger
	shard       Shard
	process     ProcessID
	callTimeout time.Duration
	maxBackoff  time.Duration
	onReply     func(answered bool)
	onSettled   func(w Write, result Result, err error)

	seen     atomic.Uint64         // written by who has the turn, read by Beat
	finished atomic.Pointer[error] // set once

	turn chan struct{} // held by the caller whom the fields below belong to

	sent      uint64 // highest number used
	owed      uint64 // number of the write whose outcome is not known, or 0
	unknown   Write  // that write, if its caller was told ErrUnknown
	asks      int    // in the present settlement
	nextAskAt time.Time

	// callCtx serves the calls of one caller's context for a while, so that a
	// call allocates nothing. Its deadline is between CallTimeout and a 16th
	// more after the call was sent.
	callCtx context.Context
	callEnd context.CancelFunc
	caller  <-chan struct{} // Done of the context that callCtx was made from
	until   time.Time       // the deadline of callCtx
}

// Writer performs numbered writes, on a lane for each shard.
type Writer interface {
	Do(ctx context.Context, shard Shard, write Write) (Result, error)
}

// NewLane makes a lane with a process id of its own.
func NewLane(l Ledger, shard Shard, opt LaneOptions) *Lane {
	if opt.CallTimeout <= 0 {
		opt.CallTimeout = DefaultCallTimeout
	}
	if opt.MaxAskBackoff <= 0 {
		opt.MaxAskBackoff = DefaultMaxAskBackoff
	}
	if opt.OnReply == nil {
		opt.OnReply = func(bool) {}
	}
	if opt.OnSettled == nil {
		opt.OnSettled = func(Write, Result, error) {}
	}
	lane := &Lane{
		ledger: l, shard: shard, callTimeout: opt.CallTimeout, maxBackoff: opt.MaxAskBackoff, onReply: opt.OnReply, onSettled: opt.OnSettled,
		turn: make(chan struct{}, 1), callEnd: func() {},
	}
	rand.Read(lane.process[:]) // never fails
	return lane
}

// Shard is the shard and epoch that the lane is for.
func (l *Lane) Shard() Shard { return l.shard }

// Do performs one write, and returns within its context.
//
// The write is given away: after an error, and after a result that was learned
// by asking, the ledger may still read it.
func (l *Lane) Do(ctx context.Context, w Write) (Result, error) {
	if err := l.enter(ctx); err != nil {
		return Result{}, notApplied(err)
	}
	defer l.leave()
	if l.owed != 0 {
		if err := l.settleBefore(ctx); l.owed != 0 {
			return Result{}, notApplied(fmt.Errorf("settle the call before: %w", err))
		}
	}
	result, err := l.send(ctx, w)
	if l.owed != 0 {
		result, err = l.settle(ctx, err)
	}
	switch {
	case err == nil:
		return result, nil
	case l.owed != 0:
		l.unknown = w
		return Result{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return Result{}, notApplied(err)
}

// Probe asks until the ledger answers, whether or not a call is unsettled, and
// returns within its context. After it no number is owed, or the lane is
// finished, or the error says why nothing was heard.
func (l *Lane) Probe(ctx context.Context) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer l.leave()
	if l.owed == 0 {
		// The ask's own number: an ask that is not heard burns it, and the lane
		// must not write before one is.
		l.owed = l.sent + 1
	}
	if err := l.settleBefore(ctx); l.owed != 0 {
		return err
	}
	return l.Err()
}

// Beat is what the lane tells by heartbeat.
func (l *Lane) Beat() Beat {
	return Beat{Shard: l.shard, Process: l.process, Seen: l.seen.Load()}
}

// Heard takes the outcome of the lane's beat.
func (l *Lane) Heard(outcome Outcome) {
	if err := finalError(outcome, 0); err != nil {
		l.finish(err)
	}
}

// Err is why the lane is finished, or nil.
func (l *Lane) Err() error {
	if err := l.finished.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *Lane) finish(err error) { l.finished.CompareAndSwap(nil, &err) }

func notApplied(cause error) error { return fmt.Errorf("%w: %w", ErrNotApplied, cause) }

// finalError is the error that finishes a lane, or nil for an outcome that
// does not.
func finalError(outcome Outcome, epoch uint64) error {
	switch outcome {
	case OutcomeLost:
		return ErrLost
	case OutcomeClosed:
		return ErrClosed
	case OutcomeEpoch:
		return &EpochError{Epoch: epoch}
	}
	return nil
}

// enter takes the turn.
func (l *Lane) enter(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Lane) leave() { <-l.turn }

// send makes one call: a write, or an ask if w is nil. It settles the owed
// number, or finishes the lane, or does neither, and then the lane has to ask.
func (l *Lane) send(ctx context.Context, w Write) (Result, error) {
	if err := l.Err(); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if l.sent >= MaxNumber {
		l.finish(errNumbersSpent)
		return Result{}, errNumbersSpent
	}
	l.sent++
	ask := w == nil
	if !ask {
		l.owed = l.sent
	}
	call := l.callContext(ctx)
	reply, err := l.ledger.Do(call, Request{
		Shard: l.shard,
		Call:  Call{Process: l.process, Number: l.sent, Seen: l.seen.Load()},
		Write: w,
	})
	if err != nil {
		refused, late := errors.Is(err, ErrNotExecuted), call.Err() != nil
		if (ask || refused || late) && !errors.Is(err, ErrBadCall) && ctx.Err() == nil {
			l.onReply(false)
		}
		if !ask && refused {
			l.sent-- // not even the record changed: the number may go again
			l.settled()
		}
		return Result{}, err
	}
	l.onReply(true)
	return l.take(reply, ask)
}

// callContext is the context of a call that is sent now.
func (l *Lane) callContext(ctx context.Context) context.Context {
	if now := time.Now(); l.caller != ctx.Done() || l.until.Before(now.Add(l.callTimeout)) {
		l.callEnd()
		l.caller, l.until = ctx.Done(), now.Add(l.callTimeout*17/16)
		l.callCtx, l.callEnd = context.WithDeadline(ctx, l.until)
	}
	return l.callCtx
}

// take reads the reply to the newest call.
func (l *Lane) take(reply Reply, ask bool) (Result, error) {
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
	l.seen.Store(l.sent)
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

// settle asks, at once and then after growing pauses, until the owed number is
// settled: its result, or why it did not happen. With l.owed != 0 on return,
// the error says why it could not be settled. Cause is why the lane has to ask.
func (l *Lane) settle(ctx context.Context, cause error) (Result, error) {
	for {
		if err := l.rest(ctx); err != nil {
			return Result{}, errors.Join(err, cause)
		}
		result, err := l.send(ctx, nil)
		if l.owed == 0 || l.Err() != nil {
			return result, err
		}
		cause = err
	}
}

// settleBefore settles what a call before this one has left.
func (l *Lane) settleBefore(ctx context.Context) error {
	result, err := l.settle(ctx, nil)
	if w := l.unknown; w != nil && l.owed == 0 {
		l.unknown = nil
		l.onSettled(w, result, err)
	}
	return err
}

// rest waits until the next ask is due, which outlasts the caller: asks of many
// impatient callers are spaced like those of one.
func (l *Lane) rest(ctx context.Context) error {
	if wait := time.Until(l.nextAskAt); l.asks > 0 && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
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

func (l *Lane) settled() { l.owed, l.asks = 0, 0 }
