package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Ways in which a lane's call can end without a result. An error of Do wraps exactly one of
// ErrNotApplied and ErrUnknown. It also wraps the cause, which is ErrLost, ErrClosed or an
// *EpochError if the lane is finished.
var (
	// ErrNotApplied means that the write did not happen and never will. It may be sent again as
	// a new call.
	ErrNotApplied = errors.New("ledger call was not applied")
	// ErrUnknown means that the write may have happened, so the answer is busy, not no.
	ErrUnknown = errors.New("outcome of the ledger call is unknown")
	// ErrLost means that the ledger has forgotten an answer that it gave. The shard has closed
	// itself and must be recovered.
	ErrLost = errors.New("ledger shard lost writes")
	// ErrClosed means that the shard is closed.
	ErrClosed = errors.New("ledger shard is closed")
)

// EpochError means that the shard has another epoch than the lane.
type EpochError struct {
	Epoch uint64 // the shard's epoch; 0 if it has none, or if a heartbeat found the difference
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
	// errNeverHappened comes with ErrNotApplied.
	errNeverHappened = errors.New("the ledger has no verdict for it")
)

// LaneOptions configure a lane. The zero value works.
type LaneOptions struct {
	// CallTimeout is how long the lane waits for a reply before it asks.
	CallTimeout time.Duration
	// MaxAskBackoff bounds the pause between unanswered asks.
	MaxAskBackoff time.Duration
	// Listener, if set, hears how the lane's calls end.
	Listener Listener
}

// Listener hears how calls of a lane end. The holder of the lane's turn calls it. It must not
// block.
type Listener interface {
	// Replied is called after the lane's calls with whether the ledger answered, whatever the
	// answer. These calls are not reported:
	//   - a write without a reply in time, because the ask that follows tells more; but a write
	//     that the ledger did not execute is reported,
	//   - a bad call, and a call whose caller's context ended: they tell nothing about the
	//     ledger.
	Replied(answered bool)
	// Settled gets the outcome of a write for which Do has returned ErrUnknown: its result, or
	// the error. The next call that learns the outcome calls it, before that call writes.
	Settled(w Write, result Result, err error)
}

// deaf is the Listener of a lane that has none.
type deaf struct{}

func (deaf) Replied(bool)                 {}
func (deaf) Settled(Write, Result, error) {}

// Lane is a process's side of the numbered calls to one shard (protocol 1). It has one call in
// flight. For two calls at a time use two lanes; to the ledger they are two processes.
//
// A number is sent once. After a timeout, an error, a gap or a stale outcome, the lane writes
// nothing until an ask is answered. Either the ledger kept the result of the outstanding
// number, or that number never happened and never will. The lane ignores replies to calls that
// it sent before the ask.
//
// If a caller's context ends before the outcome is known, the next call settles it before it
// writes. A lane has no goroutine of its own and needs no closing. ErrLost, ErrClosed or an
// *EpochError finishes it.
type Lane struct {
	ledger      Ledger
	shard       Shard
	process     ProcessID
	callTimeout time.Duration
	maxBackoff  time.Duration
	listener    Listener

	seen     atomic.Uint64         // written by the holder of turn, read by Beat
	finished atomic.Pointer[error] // set once

	turn chan struct{} // its holder may use the fields below

	sent      uint64 // highest number used
	unsettled uint64 // number of the write whose outcome is unknown, or 0
	unknown   Write  // that write, if its caller got ErrUnknown
	asks      int    // in the present settling
	nextAskAt time.Time

	// callCtx is reused for the calls of one caller's context, so that a call allocates
	// nothing. Its deadline is between 1 and 17/16 of CallTimeout after the call was sent.
	callCtx context.Context
	callEnd context.CancelFunc
	caller  <-chan struct{} // Done of the context that callCtx comes from
	until   time.Time       // the deadline of callCtx
}

// Writer performs numbered writes, on a lane for each shard.
type Writer interface {
	Do(ctx context.Context, shard Shard, write Write) (Result, error)
}

// NewLane makes a lane with its own process id.
func NewLane(l Ledger, shard Shard, opt LaneOptions) *Lane {
	if opt.CallTimeout <= 0 {
		opt.CallTimeout = DefaultCallTimeout
	}
	if opt.MaxAskBackoff <= 0 {
		opt.MaxAskBackoff = DefaultMaxAskBackoff
	}
	if opt.Listener == nil {
		opt.Listener = deaf{}
	}
	lane := &Lane{
		ledger: l, shard: shard, callTimeout: opt.CallTimeout, maxBackoff: opt.MaxAskBackoff, listener: opt.Listener,
		turn: make(chan struct{}, 1), callEnd: func() {},
	}
	rand.Read(lane.process[:]) // never fails
	return lane
}

// Shard returns the lane's shard and epoch.
func (l *Lane) Shard() Shard { return l.shard }

// Do performs one write, and returns within its context.
//
// The caller must not change the write afterwards: after an error, or a result that was learned
// by asking, the ledger may still read it.
func (l *Lane) Do(ctx context.Context, w Write) (Result, error) {
	if err := l.takeTurn(ctx); err != nil {
		return Result{}, notApplied(err)
	}
	defer l.leave()
	if l.unsettled != 0 {
		if err := l.settleBefore(ctx); l.unsettled != 0 {
			return Result{}, notApplied(fmt.Errorf("settle the previous call: %w", err))
		}
	}
	result, err := l.send(ctx, w)
	if l.unsettled != 0 {
		result, err = l.settle(ctx, err)
	}
	switch {
	case err == nil:
		return result, nil
	case l.unsettled != 0:
		l.unknown = w
		return Result{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return Result{}, notApplied(err)
}

// Probe asks until the ledger answers, also if no outcome is unknown. It returns within its
// context. Afterwards no outcome is unknown, or the lane is finished, or the error says why
// there was no answer.
func (l *Lane) Probe(ctx context.Context) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.leave()
	if l.unsettled == 0 {
		// An ask has a number too. If it is not answered, the number is used up, and the lane
		// must not write before an ask is answered.
		l.unsettled = l.sent + 1
	}
	if err := l.settleBefore(ctx); l.unsettled != 0 {
		return err
	}
	return l.Err()
}

// Beat returns the lane's heartbeat.
func (l *Lane) Beat() Beat {
	return Beat{Shard: l.shard, Process: l.process, Seen: l.seen.Load()}
}

// Heard takes the outcome of the lane's heartbeat.
func (l *Lane) Heard(outcome Outcome) {
	if err := finalError(outcome, 0); err != nil {
		l.finish(err)
	}
}

// Err returns the error that finished the lane, or nil.
func (l *Lane) Err() error {
	if err := l.finished.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *Lane) finish(err error) { l.finished.CompareAndSwap(nil, &err) }

func notApplied(cause error) error { return fmt.Errorf("%w: %w", ErrNotApplied, cause) }

// finalError returns the error that finishes a lane, or nil if the outcome does not finish it.
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

// takeTurn waits for the lane's turn.
func (l *Lane) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Lane) leave() { <-l.turn }

// send makes one call: a write, or an ask if w is nil. It settles the unknown outcome, or
// finishes the lane. Otherwise the lane must ask.
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
		l.unsettled = l.sent
	}
	if now := time.Now(); l.caller != ctx.Done() || l.until.Before(now.Add(l.callTimeout)) {
		l.callEnd()
		l.caller, l.until = ctx.Done(), now.Add(l.callTimeout*17/16)
		l.callCtx, l.callEnd = context.WithDeadline(ctx, l.until)
	}
	reply, err := l.ledger.Do(l.callCtx, Request{
		Shard: l.shard,
		Call:  Call{Process: l.process, Number: l.sent, Seen: l.seen.Load()},
		Write: w,
	})
	if err != nil {
		refused, late := errors.Is(err, ErrNotExecuted), l.callCtx.Err() != nil
		if (ask || refused || late) && !errors.Is(err, ErrBadCall) && ctx.Err() == nil {
			l.listener.Replied(false)
		}
		if !ask && refused {
			l.sent-- // the ledger did not even change the record, so the number may be sent again
			l.settled()
		}
		return Result{}, err
	}
	l.listener.Replied(true)
	return l.readReply(reply, ask)
}

// readReply reads the reply to the newest call.
func (l *Lane) readReply(reply Reply, ask bool) (Result, error) {
	if final := finalError(reply.Outcome, reply.Epoch); final != nil {
		l.finish(final)
		if !ask { // the write itself was refused, so no outcome is unknown
			l.settled()
		}
		return Result{}, final
	}
	if reply.Outcome != OutcomeApplied {
		return Result{}, fmt.Errorf("ledger answered outcome %d", reply.Outcome)
	}
	unsettled := l.unsettled
	l.seen.Store(l.sent)
	l.settled()
	if !ask {
		return reply.Result, nil
	}
	for i := range reply.Kept {
		if reply.Kept[i].Number == unsettled {
			return reply.Kept[i].Result, nil
		}
	}
	return Result{}, errNeverHappened
}

// settle asks, at once and then with growing pauses, until the outcome of number l.unsettled is
// known. It returns the result or the reason why there is none. If l.unsettled != 0 on return, the
// error says why the outcome is still unknown. cause is the reason for asking.
func (l *Lane) settle(ctx context.Context, cause error) (Result, error) {
	for {
		if err := l.pauseBeforeAsk(ctx); err != nil {
			return Result{}, errors.Join(err, cause)
		}
		result, err := l.send(ctx, nil)
		if l.unsettled == 0 || l.Err() != nil {
			return result, err
		}
		cause = err
	}
}

// settleBefore settles the outcome that an earlier call left unknown.
func (l *Lane) settleBefore(ctx context.Context) error {
	result, err := l.settle(ctx, nil)
	if w := l.unknown; w != nil && l.unsettled == 0 {
		l.unknown = nil
		l.listener.Settled(w, result, err)
	}
	return err
}

// pauseBeforeAsk waits until the next ask is due. The time is kept across callers, so that many
// short calls do not ask more often than one long call.
func (l *Lane) pauseBeforeAsk(ctx context.Context) error {
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
	if l.asks < 16 { // later doublings exceed any sensible bound
		backoff = min(backoff, firstAskBackoff<<l.asks)
	}
	l.asks++
	l.nextAskAt = time.Now().Add(backoff)
	return nil
}

func (l *Lane) settled() { l.unsettled, l.asks = 0, 0 }
