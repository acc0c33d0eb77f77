// Package queuetest is the conformance suite of the queue port: an adapter is
// done when it passes Run.
package queuetest

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
)

// Harness is a running queue and the way into it.
//
// Subtests use products and consumer names of their own, so that they may
// share one server; what earlier subtests left is acknowledged by later ones.
type Harness struct {
	Queue queue.Queue
	// Publish appends the entry; ThroughLedger makes one of a ledger whose
	// outbox is the queue.
	Publish func(t *testing.T, entry seckill.Entry)
	// Reopen stops the queue without ceremony and starts it again from what is
	// durable; nil where that is not possible.
	Reopen func(t *testing.T) Harness
	// SilentAfter is the adapter's bound after which a consumer that says
	// nothing is dead; 0 where only closing and a restart count.
	SilentAfter time.Duration
	// Mortal is the same queue as another process has it, and that process's
	// sudden end, for adapters whose consumers give signs of life of their own
	// accord; nil where a consumer that is not called says nothing.
	Mortal func(t *testing.T) (q queue.Queue, die func())
}

// story is one subtest: a sentence of the contract, and how it is told.
type story struct {
	name string
	tell func(*fixture)
}

type suite struct {
	open func(t *testing.T) Harness
	next atomic.Uint32 // products and consumers
}

// Run holds an adapter against every sentence of the queue's contract. The
// open function is called once per subtest.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	s := &suite{open: open}
	s.next.Store(1 + rand.Uint32N(1<<31)) // for servers that outlive a run
	for _, chapter := range []struct {
		name    string
		stories []story
	}{
		{"Deliver", deliverStories()},
		{"HandBack", handBackStories()},
		{"Ack", ackStories()},
		{"Waits", waitStories()},
		{"Witness", witnessStories()},
		{"Stats", statsStories()},
		{"Find", findStories()},
		{"Durable", durableStories()},
	} {
		t.Run(chapter.name, func(t *testing.T) {
			for _, story := range chapter.stories {
				t.Run(story.name, func(t *testing.T) { story.tell(s.fixture(t)) })
			}
		})
	}
}
