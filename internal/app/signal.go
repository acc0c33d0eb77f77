package app

import (
	"errors"
	"seckill/internal/background"
	"sync"
)

// errLost is what the keeper raises.
var errLost = errors.New("found lost, closed, behind the store or under another limit")

// signals is where parts tell each other that something is due, without
// knowing each other. Nothing here blocks, and only promptness depends on it:
// what is due stands in the store or in the ledger, where every duty also looks
// by itself, and a trouble that was dropped is raised again by the next call
// that meets it.
type signals struct {
	troubles *troubles
	// tell wakes a duty where another instance has it.
	tell func(duty string)

	mu    sync.Mutex
	loops map[string]*background.Loop // those that run here, made after the parts
}

func newSignals() *signals {
	return &signals{troubles: newTroubles(), tell: func(string) {}, loops: make(map[string]*background.Loop)}
}

// bind makes a loop reachable for the parts that wake it.
func (s *signals) bind(loop *background.Loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops[loop.Name] = loop
}

// loop is a duty that runs here, or nil.
func (s *signals) loop(name string) *background.Loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loops[name]
}

// heard wakes a duty on another instance's word, if it runs here.
func (s *signals) heard(name string) {
	if loop := s.loop(name); loop != nil && loop.Here() {
		loop.Wake()
	}
}

// Wake wakes a duty, wherever it runs.
func (s *signals) Wake(name string) {
	loop := s.loop(name)
	if loop != nil {
		loop.Wake()
	}
	if loop == nil || !loop.Here() {
		s.tell(name)
	}
}

// RequestRecovery is raise, for the purchase stage.
func (s *signals) RequestRecovery(product uint32, cause error) { s.raise(product, cause) }

// raise says that a product's ledger needs a look; product 0 means all.
func (s *signals) raise(product uint32, err error) { s.troubles.raise(trouble{product, err}) }

// lost says that the keeper found a product's ledger lost. It says so with every
// round, also while that is being mended.
func (s *signals) lost(product uint32) {
	if !s.troubles.looking(product) {
		s.raise(product, errLost)
	}
}
