package app

import (
	"sync"

	"seckill/internal/duty"
)

const troubleMost = 256

// signals is where parts tell each other that something is due, without
// knowing each other. Nothing here blocks, and nothing depends on it: every
// duty also looks by itself.
type signals struct {
	keeper, releaser, refunder, reconciler waker
	trouble                                chan trouble

	mu    sync.Mutex
	ended []uint32
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
	default: // the keeper looks by itself within a second
	}
}

// saleEnded asks for the reconciliation that follows a sale.
func (s *signals) saleEnded(product uint32) {
	s.mu.Lock()
	s.ended = append(s.ended, product)
	s.mu.Unlock()
	s.reconciler.wake()
}

func (s *signals) takeEnded() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := s.ended
	s.ended = nil
	return ended
}
