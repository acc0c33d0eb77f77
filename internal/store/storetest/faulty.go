package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"seckill/internal/store"
)

// AnyMethod stands for every method of a Faulty that can fail.
const AnyMethod = "*"

// ErrPoison is returned by Confirm of a Faulty for a poisoned buyer.
var ErrPoison = errors.New("storetest: a poisoned claim")

// Faulty wraps a real store and fails on demand. Its faults name methods of store.Store; all
// but Close can fail. It is safe for concurrent use.
type Faulty struct {
	inner store.Store

	mu     sync.Mutex
	before map[string]int // remaining failures; Always has no end
	after  map[string]int
	gates  map[string]*Gate
	poison map[string]bool
	calls  map[string]int
}

var _ store.Store = (*Faulty)(nil)

// Always makes a fault last until Heal.
const Always = -1

// NewFaulty wraps a store. At first all calls succeed.
func NewFaulty(inner store.Store) *Faulty {
	f := &Faulty{inner: inner, calls: map[string]int{}}
	f.Heal()
	return f
}

// FailBefore makes the next n calls of the method fail with store.ErrUnavailable before they
// reach the store, so nothing happens.
func (f *Faulty) FailBefore(method string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before[known(method)] = n
}

// FailAfter makes the next n calls of the method fail with store.ErrUnavailable after they
// reached the store, as if the reply was lost.
func (f *Faulty) FailAfter(method string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after[known(method)] = n
}

// Poison makes Confirm fail with ErrPoison if the buyer is among its items.
func (f *Faulty) Poison(buyer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.poison[buyer] = true
}

// Cure ends the poison of a buyer.
func (f *Faulty) Cure(buyer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.poison, buyer)
}

// Heal ends every fault, poison and block.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, gate := range f.gates {
		gate.Open()
	}
	f.before, f.after = map[string]int{}, map[string]int{}
	f.gates, f.poison = map[string]*Gate{}, map[string]bool{}
}

// Calls counts the calls of the method so far, failed ones included.
func (f *Faulty) Calls(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if method == AnyMethod {
		sum := 0
		for _, n := range f.calls {
			sum += n
		}
		return sum
	}
	return f.calls[known(method)]
}

// Block makes every call of the method wait, before it reaches the store, until the gate is
// opened. If the call's context ends first, the call fails with store.ErrUnavailable.
func (f *Faulty) Block(method string) *Gate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if gate, ok := f.gates[known(method)]; ok {
		gate.Open()
	}
	gate := &Gate{arrived: make(chan struct{}, maxArrivals), open: make(chan struct{})}
	f.gates[method] = gate
	return gate
}

// maxArrivals bounds the signals that a gate keeps. Further arrivals give none.
const maxArrivals = 1024

// Gate keeps calls of a blocked method waiting.
type Gate struct {
	arrived chan struct{}
	open    chan struct{}
	once    sync.Once
}

// Arrived gets one signal per call that reached the gate.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Open lets all calls pass, also later ones.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

func (g *Gate) pass(ctx context.Context) error {
	select {
	case <-g.open:
		return nil
	default:
	}
	select {
	case g.arrived <- struct{}{}:
	default:
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
}

var storeMethods = func() map[string]bool {
	port := reflect.TypeFor[store.Store]()
	methods := map[string]bool{AnyMethod: true}
	for i := range port.NumMethod() {
		methods[port.Method(i).Name] = true
	}
	delete(methods, "Close")
	return methods
}()

// known panics for an unknown method. Otherwise a fault that never happens could let a test
// pass.
func known(method string) string {
	if !storeMethods[method] {
		panic(fmt.Sprintf("storetest: store.Store has no method %q that can fail", method))
	}
	return method
}

// take uses up one failure of the method, or of AnyMethod.
func take(faults map[string]int, method string) bool {
	for _, name := range [...]string{method, AnyMethod} {
		switch left := faults[name]; {
		case left == Always:
			return true
		case left > 0:
			faults[name] = left - 1
			return true
		}
	}
	return false
}

// enter runs before each call reaches the store.
func (f *Faulty) enter(ctx context.Context, method string) error {
	f.mu.Lock()
	f.calls[method]++
	gates := [...]*Gate{f.gates[method], f.gates[AnyMethod]}
	f.mu.Unlock()
	for _, gate := range gates {
		if gate == nil {
			continue
		}
		if err := gate.pass(ctx); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if take(f.before, method) {
		return fmt.Errorf("%s: %w", method, store.ErrUnavailable)
	}
	return nil
}

// leave runs after each call.
func (f *Faulty) leave(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if take(f.after, method) {
		return fmt.Errorf("%s: reply lost: %w", method, store.ErrUnavailable)
	}
	return nil
}

// ask makes one call that returns a value.
func ask[T any](f *Faulty, ctx context.Context, method string, do func() (T, error)) (T, error) {
	var none T
	if err := f.enter(ctx, method); err != nil {
		return none, err
	}
	value, err := do()
	if lost := f.leave(method); lost != nil {
		return none, lost
	}
	return value, err
}

// tell makes one call that returns no value.
func tell(f *Faulty, ctx context.Context, method string, do func() error) error {
	_, err := ask(f, ctx, method, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Confirm returns ErrPoison if a poisoned buyer is among the items. A parked claim of that
// buyer does not matter.
func (f *Faulty) Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	return ask(f, ctx, "Confirm", func() ([]store.ConfirmOutcome, error) {
		if f.poisoned(req.Items) {
			return nil, ErrPoison
		}
		return f.inner.Confirm(ctx, req)
	})
}

func (f *Faulty) poisoned(items []store.Item) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range items {
		if f.poison[items[i].Claim.Buyer] {
			return true
		}
	}
	return false
}

// Close closes the wrapped store.
func (f *Faulty) Close() error { return f.inner.Close() }
