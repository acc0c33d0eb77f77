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

// ErrPoison is the error of the data with which a Faulty refuses a Confirm
// that has a poisoned buyer among its items.
var ErrPoison = errors.New("storetest: a poisoned claim")

// Faulty is a real store that fails on demand. Methods go by their names in
// store.Store; all but Close can fail. It is safe for concurrent use.
type Faulty struct {
	inner store.Store

	mu     sync.Mutex
	before map[string]int // failures still to come, Always without end
	after  map[string]int
	gates  map[string]*Gate
	poison map[string]bool
	calls  map[string]int
}

var _ store.Store = (*Faulty)(nil)

// Always makes a fault last until Heal.
const Always = -1

// NewFaulty wraps a store. It passes everything through until told otherwise.
func NewFaulty(inner store.Store) *Faulty {
	f := &Faulty{inner: inner, calls: map[string]int{}}
	f.Heal()
	return f
}

// FailBefore makes the next n calls of the method fail with
// store.ErrUnavailable before they reach the store: nothing happened.
func (f *Faulty) FailBefore(method string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before[known(method)] = n
}

// FailAfter makes the next n calls of the method fail with
// store.ErrUnavailable after they reached the store: the reply is lost.
func (f *Faulty) FailAfter(method string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after[known(method)] = n
}

// Poison makes every Confirm fail that has the buyer among its items.
func (f *Faulty) Poison(buyer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.poison[buyer] = true
}

// Cure takes the poison off a buyer.
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

// Block holds every call of the method, before it reaches the store, until
// the gate is opened or the call's context ends; in the latter case the call
// fails with store.ErrUnavailable.
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

// maxArrivals bounds the arrivals that a gate remembers; more are not
// announced.
const maxArrivals = 1024

// Gate holds calls of a blocked method.
type Gate struct {
	arrived chan struct{}
	open    chan struct{}
	once    sync.Once
}

// Arrived gets one signal per call that reached the gate.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Open lets all calls pass, those to come included.
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

// known refuses a method that does not exist, so that a fault which can never
// strike does not make a test pass.
func known(method string) string {
	if !storeMethods[method] {
		panic(fmt.Sprintf("storetest: store.Store has no method %q that can fail", method))
	}
	return method
}

// take uses up one failure of the method, or of any method.
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

// enter is passed by every call before it reaches the store.
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

// leave is passed by every call on its way back.
func (f *Faulty) leave(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if take(f.after, method) {
		return fmt.Errorf("%s: reply lost: %w", method, store.ErrUnavailable)
	}
	return nil
}

// ask performs one call that returns a value.
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

// tell performs one call that returns no value.
func tell(f *Faulty, ctx context.Context, method string, do func() error) error {
	_, err := ask(f, ctx, method, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Confirm fails on its data while a poisoned buyer is among the items; a
// parked claim of that buyer does no harm.
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
