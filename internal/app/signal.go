package app

import (
	"sync"

	"seckill/internal/duty"
)

const troubleMost = 256

// signals is where parts tell each other that something is due, without
// knowing each other. Nothing here blocks, and only promptness depends on it:
// what is due stands in the store or in the ledger, where every duty also looks
// by itself, and a trouble that was dropped is raised again by the next call
// that meets it.
type signals struct {
	keeper, releaser, refunder, reconciler waker
	trouble                                chan trouble
}

// trouble is a product whose ledger needs a look; product 0 means all.
type trouble struct {
	product uint32
	err     error
}

func newSignals() *signals { return &signals{trouble: make(chan trouble, troubleMost)} }

// waker wakes a loop that is made later.
type waker struct {
	mu   sync.Mutex
	loop *duty.Loop
}

func (w *waker) set(loop *duty.Loop) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loop = loop
}

func (w *waker) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loop != nil {
		w.loop.Wake()
	}
}

func (s *signals) raise(product uint32, err error) {
	select {
	case s.trouble <- trouble{product, err}:
	default: // as many wait as can be seen to in half a minute
	}
}

// saleEnded asks for the reconciliation that follows a sale; of which, the
// reconciler reads in the store.
func (s *signals) saleEnded(uint32) { s.reconciler.wake() }
