package ledgertest

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// Harness is a running ledger and the queue that delivers its outbox.
//
// Subtests use products of their own, so that they may share one server; what
// earlier subtests left in the queue is acknowledged by later ones.
type Harness struct {
	Ledger ledger.Ledger
	Queue  queue.Queue
	// Reopen stops the ledger and its queue without ceremony and starts them
	// again from what is durable; nil where that is not possible.
	Reopen func(t *testing.T) Harness
	// SlowReopen says that it takes seconds: the stories of restarts share them,
	// and the model, which would restart at random, does without.
	SlowReopen bool
	// CallersDie says that no caller outlives a restart, because the ledger
	// lives in its callers' process: then records of numbered calls need not
	// survive one either.
	CallersDie bool
}

// story is one subtest: a sentence of the contract, and how it is told.
type story struct {
	name string
	tell func(*fixture)
}

// suite numbers the products of one run. The first is random, for servers that
// outlive a run.
type suite struct {
	open    func(t *testing.T) Harness
	product atomic.Uint32
}

// Run holds an adapter against every sentence of the ledger's contract. The
// open function is called once per subtest.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	s := &suite{open: open}
	s.product.Store(1 + rand.Uint32N(1<<31))
	for _, chapter := range []struct {
		name    string
		stories []story
	}{
		{"Numbered", numberedStories()},
		{"Bound", boundStories()},
		{"Heartbeat", heartbeatStories()},
		{"Install", installStories()},
		{"OpenClose", openCloseStories()},
		{"State", stateStories()},
		{"Instruct", instructStories()},
		{"Reserve", reserveStories()},
		{"Outbox", outboxStories()},
		{"Adopt", adoptStories()},
		{"Release", releaseStories()},
		{"Stock", stockStories()},
		{"Transfer", transferStories()},
		{"Held", heldStories()},
		{"Audit", auditStories()},
		{"Concurrent", concurrentStories()},
	} {
		t.Run(chapter.name, func(t *testing.T) { s.tell(t, chapter.stories) })
	}
	t.Run("Durable", func(t *testing.T) {
		if harness := open(t); harness.SlowReopen {
			s.tellTogether(t, harness, durableStories())
		} else {
			s.tell(t, durableStories())
		}
	})
	t.Run("Model", func(t *testing.T) { runModel(s.fixture(t)) })
	t.Run("Linearizable", func(t *testing.T) { runLinearizable(s.fixture(t)) })
}

// tell tells stories one after the other.
func (s *suite) tell(t *testing.T, stories []story) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) { story.tell(s.fixture(t)) })
	}
}
