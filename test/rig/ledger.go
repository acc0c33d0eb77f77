package rig

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// ErrLedger is the error of injected failures.
var ErrLedger = errors.New("rig: the ledger fails")

// Ledger is a real ledger that fails on demand. Methods are named as in
// ledger.Ledger.
type Ledger struct {
	mu     sync.Mutex
	inner  ledger.Ledger
	before map[string]int
	after  map[string]int
	gates  map[string]chan struct{}
	calls  map[string]int
	events map[string]func()
	onRead func(*ledger.Figures)
}

var _ ledger.Ledger = (*Ledger)(nil)

func (l *Ledger) set(inner ledger.Ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inner = inner
}

// FailBefore makes the next n calls of the method fail before they reach the
// ledger; n < 0 means all calls.
func (l *Ledger) FailBefore(method string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before[method] = n
}

// FailAfter makes the next n calls fail after the ledger performed them, as if
// the reply were lost.
func (l *Ledger) FailAfter(method string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after[method] = n
}

// Block holds every call of the method until open is called or the call's
// context ends.
func (l *Ledger) Block(method string) (open func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gate := make(chan struct{})
	l.gates[method] = gate
	return sync.OnceFunc(func() {
		l.mu.Lock()
		delete(l.gates, method)
		l.mu.Unlock()
		close(gate)
	})
}

// Before runs happen just before the next call of the method.
func (l *Ledger) Before(method string, happen func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[method] = happen
}

// Lie changes the figures that Read returns.
func (l *Ledger) Lie(change func(*ledger.Figures)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onRead = change
}

// Heal ends every fault and lie. It does not open blocked methods.
func (l *Ledger) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.after, l.onRead = map[string]int{}, map[string]int{}, nil
	if l.gates == nil {
		l.gates, l.calls, l.events = map[string]chan struct{}{}, map[string]int{}, map[string]func(){}
	}
}

// Calls counts the calls of a method, failed ones included.
func (l *Ledger) Calls(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[method]
}

func (l *Ledger) enter(ctx context.Context, method string) (ledger.Ledger, error) {
	l.mu.Lock()
	l.calls[method]++
	if happen := l.events[method]; happen != nil {
		delete(l.events, method)
		l.mu.Unlock()
		happen()
		l.mu.Lock()
	}
	inner, gate, fails := l.inner, l.gates[method], take(l.before, method)
	l.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w: %w", method, ErrLedger, ctx.Err())
		}
	}
	if fails {
		return nil, fmt.Errorf("%s: %w", method, ErrLedger)
	}
	return inner, nil
}

func (l *Ledger) leave(method string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if take(l.after, method) {
		return fmt.Errorf("%s: reply lost: %w", method, ErrLedger)
	}
	return nil
}

func take(faults map[string]int, method string) bool {
	left := faults[method]
	if left > 0 {
		faults[method] = left - 1
	}
	return left != 0
}

func call[T any](l *Ledger, ctx context.Context, method string, do func(ledger.Ledger) (T, error)) (T, error) {
	var none T
	inner, err := l.enter(ctx, method)
	if err != nil {
		return none, err
	}
	value, err := do(inner)
	if lost := l.leave(method); lost != nil {
		return none, lost
	}
	return value, err
}

// Do performs one numbered call.
func (l *Ledger) Do(ctx context.Context, req ledger.Request) (ledger.Reply, error) {
	return call(l, ctx, "Do", func(in ledger.Ledger) (ledger.Reply, error) { return in.Do(ctx, req) })
}

// Heartbeat reports the calls whose replies the lanes have received.
func (l *Ledger) Heartbeat(ctx context.Context, beats []ledger.Beat) ([]ledger.Outcome, error) {
	return call(l, ctx, "Heartbeat", func(in ledger.Ledger) ([]ledger.Outcome, error) { return in.Heartbeat(ctx, beats) })
}

// Install installs an allotment.
func (l *Ledger) Install(ctx context.Context, a ledger.Allotment, marks iter.Seq2[ledger.Mark, error]) (uint64, error) {
	return call(l, ctx, "Install", func(in ledger.Ledger) (uint64, error) { return in.Install(ctx, a, marks) })
}

// Open opens a shard.
func (l *Ledger) Open(ctx context.Context, shard ledger.Shard) (bool, error) {
	return call(l, ctx, "Open", func(in ledger.Ledger) (bool, error) { return in.Open(ctx, shard) })
}

// Close closes a shard.
func (l *Ledger) Close(ctx context.Context, shard ledger.Shard) error {
	_, err := call(l, ctx, "Close", func(in ledger.Ledger) (struct{}, error) { return struct{}{}, in.Close(ctx, shard) })
	return err
}

// Instruct stores an instruction.
func (l *Ledger) Instruct(ctx context.Context, shard ledger.Shard, in seckill.Instruction) (seckill.Instruction, error) {
	return call(l, ctx, "Instruct", func(inner ledger.Ledger) (seckill.Instruction, error) { return inner.Instruct(ctx, shard, in) })
}

// Settle deletes an instruction.
func (l *Ledger) Settle(ctx context.Context, shard ledger.Shard, id string) error {
	_, err := call(l, ctx, "Settle", func(in ledger.Ledger) (bool, error) { return true, in.Settle(ctx, shard, id) })
	return err
}

// SetState sets the state of a sale.
func (l *Ledger) SetState(ctx context.Context, shard ledger.Shard, state seckill.SaleState, version uint64) (bool, error) {
	return call(l, ctx, "SetState", func(in ledger.Ledger) (bool, error) { return in.SetState(ctx, shard, state, version) })
}

// Read reads a shard.
func (l *Ledger) Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	f, err := call(l, ctx, "Read", func(in ledger.Ledger) (ledger.Figures, error) { return in.Read(ctx, shard) })
	l.mu.Lock()
	lie := l.onRead
	l.mu.Unlock()
	if lie != nil {
		lie(&f)
	}
	return f, err
}

// Held reads a mark.
func (l *Ledger) Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error) {
	return call(l, ctx, "Held", func(in ledger.Ledger) ([]ledger.Holding, error) { return in.Held(ctx, shard, buyer) })
}

// Audit reads the marks.
func (l *Ledger) Audit(ctx context.Context, shard ledger.Shard) (ledger.Audit, error) {
	return call(l, ctx, "Audit", func(in ledger.Ledger) (ledger.Audit, error) {
		return in.Audit(ctx, shard)
	})
}

// Intact looks for the oldest waiting entry.
func (l *Ledger) Intact(ctx context.Context, shard ledger.Shard) (bool, error) {
	return call(l, ctx, "Intact", func(in ledger.Ledger) (bool, error) { return in.Intact(ctx, shard) })
}

// Now is the ledger's clock.
func (l *Ledger) Now(ctx context.Context) (time.Time, error) {
	return call(l, ctx, "Now", func(in ledger.Ledger) (time.Time, error) { return in.Now(ctx) })
}
