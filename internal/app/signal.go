package app

import (
	"errors"
	"sync"

	"seckill/internal/duty"
)

// errLost is what the keeper raises.
var errLost = errors.New("found lost, closed, behind the store or under another limit")

// signals is where parts tell each other that something is due, without
// knowing each other. Nothing here blocks, and only promptness depends on it:
// what is due stands in the store or in the ledger, where every duty also looks
// by itself, and a trouble that was dropped is raised again by the next call
// that meets it.
type signals struct {
	keeper, releaser, refunder, reconciler, promiser waker
	troubles                                         *troubles
	// tell wakes a duty where another instance has it.
	tell func(duty string)
}

func newSignals() *signals {
	s := &signals{troubles: newTroubles(), tell: func(string) {}}
	for _, w := range s.wakers() {
		w.signals = s
	}
	s.keeper.duty, s.releaser.duty, s.refunder.duty, s.reconciler.duty = dutyKeep, dutyRelease, dutyRefund, dutyReconcile
	s.promiser.duty = dutyPromise
	return s
}

func (s *signals) wakers() []*waker {
	return []*waker{&s.keeper, &s.releaser, &s.refunder, &s.reconciler, &s.promiser}
}

// bind makes a loop reachable for the parts that wake it.
func (s *signals) bind(loop *duty.Loop) {
	for _, w := range s.wakers() {
		if w.duty == loop.Name {
			w.set(loop)
		}
	}
}

// heard wakes a duty on another instance's word, if it runs here.
func (s *signals) heard(duty string) {
	for _, w := range s.wakers() {
		if loop := w.get(); w.duty == duty && loop != nil && loop.Here() {
			loop.Wake()
		}
	}
}

// waker wakes a loop that is made later, or that another instance has.
type waker struct {
	signals *signals
	duty    string
	mu      sync.Mutex
	loop    *duty.Loop
}

func (w *waker) set(loop *duty.Loop) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loop = loop
}

func (w *waker) get() *duty.Loop {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.loop
}

func (w *waker) wake() {
	loop := w.get()
	if loop != nil {
		loop.Wake()
	}
	if loop == nil || !loop.Here() {
		w.signals.tell(w.duty)
	}
}

// raise says that a product's ledger needs a look; product 0 means all.
func (s *signals) raise(product uint32, err error) { s.troubles.raise(trouble{product, err}) }

// lost says that the keeper found a product's ledger lost. It says so with every
// round, also while that is being mended.
func (s *signals) lost(product uint32) {
	if !s.troubles.looking(product) {
		s.raise(product, errLost)
	}
}

// saleEnded asks for the reconciliation that follows a sale; of which, the
// reconciler reads in the store.
func (s *signals) saleEnded(uint32) { s.reconciler.wake() }
