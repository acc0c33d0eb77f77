package ledgertest

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// Harness is a running ledger and the queue of its outbox.
//
// Subtests use their own products, so that they may share one server. Later subtests
// acknowledge entries that earlier ones left in the queue.
type Harness struct {
	Ledger ledger.Ledger
	Queue  queue.Queue
	// Reopen kills the ledger and its queue, and starts them again from durable data. It is nil
	// if that is impossible.
	Reopen func(t *testing.T) Harness
	// SlowReopen means that Reopen takes seconds. Then the stories with restarts share them,
	// and the model, which restarts at random, does not restart.
	SlowReopen bool
	// CallersDie means that callers do not survive a restart, because the ledger is in their
	// process. Then records of numbered calls need not survive either.
	CallersDie bool
}

// story is one subtest: a sentence of the contract, and its test.
type story struct {
	name string
	tell func(*fixture)
}

// suite numbers the products of one run. The first number is random, for servers that several
// runs use.
type suite struct {
	open    func(t *testing.T) Harness
	product atomic.Uint32
}

// Run tests an adapter against every sentence of the ledger's contract. It calls open once per
// subtest.
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

// tell runs stories one after the other.
func (s *suite) tell(t *testing.T, stories []story) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) { story.tell(s.fixture(t)) })
	}
}
