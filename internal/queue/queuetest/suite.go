// Package queuetest is the conformance suite of the queue port. An adapter must pass Run.
package queuetest

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
)

// Harness is a running queue and a way to publish entries.
//
// Subtests use their own products and consumer names, so that they may share one server. Later
// subtests acknowledge entries of earlier ones.
type Harness struct {
	Queue queue.Queue
	// Publish appends the entry. ThroughLedger makes this function for a ledger whose outbox is
	// the queue.
	Publish func(t *testing.T, entry seckill.Entry)
	// Reopen kills the queue and starts it again from durable data. It is nil if that is
	// impossible.
	Reopen func(t *testing.T) Harness
	// SilentAfter is the adapter's bound after which a silent consumer is dead, or 0 if only
	// Close and a restart count.
	SilentAfter time.Duration
	// Mortal returns the same queue as in another process, and a function that kills that
	// process. It is for adapters whose consumers send heartbeats by themselves. It is nil if
	// only calls count.
	Mortal func(t *testing.T) (q queue.Queue, die func())
}

// story is one subtest: a sentence of the contract, and its test.
type story struct {
	name string
	tell func(*fixture)
}

type suite struct {
	open func(t *testing.T) Harness
	next atomic.Uint32 // product and consumer ids
}

// Run tests an adapter against every sentence of the queue's contract. It calls open once per
// subtest.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	s := &suite{open: open}
	s.next.Store(1 + rand.Uint32N(1<<31)) // random, because a server may serve several runs
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
