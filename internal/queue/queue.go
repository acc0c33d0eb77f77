// Package queue is the port that delivers the ledger's outbox entries to the workers, at least
// once, in batches.
//
// queue.go has the port, entryformat.go the binary form of entries.
package queue

import (
	"context"
	"errors"
	"time"

	"seckill"
)

// Queue is the port. Every adapter must pass the suite queuetest.
//   - Every entry of the outbox is delivered to one consumer at a time until it is
//     acknowledged. Within one shard of a product the oldest comes first.
//   - Entries of a consumer that are neither acknowledged nor returned are delivered to another
//     one when the consumer is dead, and after a restart. A consumer is dead if it is closed or
//     was silent longer than the adapter's bound. The adapter defines heartbeats; every call
//     counts as one.
//   - Ack is durable and idempotent. It ignores an id that is unknown or acknowledged already.
//   - Ack carries the witness: the highest id that the store has confirmed. If the queue does
//     not have that entry, the queue has lost entries: Ack changes nothing and returns ErrLost.
//     Trimming keeps the highest witness. An empty witness claims nothing.
//
// Methods are safe for concurrent use and return within their context's deadline.
type Queue interface {
	// Consumer adds a worker. No other live consumer may have the name.
	Consumer(ctx context.Context, name string) (Consumer, error)

	// Relay adds a consumer that copies entries to a broker. It receives like a worker, but is
	// not counted as one.
	Relay(ctx context.Context, name string) (Consumer, error)

	// Stats returns one product's figures, or the sums of all for product 0.
	Stats(ctx context.Context, product uint32) (Stats, error)

	// Unacknowledged calls see with every unacknowledged entry of the product, whichever
	// consumer has it, oldest first within one shard. It does not change the delivery of
	// entries. Entries that are added or acknowledged during the call may be passed or not. An
	// error of see ends the call and is returned. After another error, for example for an entry
	// that cannot be decoded, the readable shards were still read to their end.
	Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error

	// Waiting lists the products with unacknowledged entries, each once, in any order. It costs
	// less than Stats of every product.
	Waiting(ctx context.Context) ([]uint32, error)

	// Find returns the product's unacknowledged entry with an order, with that claim alone. In
	// each stream it searches at most the oldest most entries of the product, so a later entry
	// is not found.
	Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool, error)

	// Lost returns the witnesses for which Ack would return ErrLost. With an error, some may be
	// missing.
	Lost(ctx context.Context, witnesses []ID) ([]ID, error)

	// HighestWitness returns, for each stream, the highest witness that an acknowledgement has
	// carried. Streams without one are absent. It survives a restart. A store that is below it
	// was restored from an older copy, and has lost orders that it had confirmed. With an
	// error, streams may be missing, and the others are right.
	HighestWitness(ctx context.Context) ([]ID, error)
}

// Consumer receives deliveries. One goroutine at a time may use it, but Close may be called
// from another one.
type Consumer interface {
	// Receive waits for at least one entry. It returns entries with at most max claims
	// together, or one entry that has more. If there was none, it returns the context's error.
	Receive(ctx context.Context, max int) ([]Delivery, error)

	// Ack acknowledges deliveries, also copies from a broker. Nack returns them to the queue at
	// once, for any consumer.
	Ack(ctx context.Context, done []Delivery, witness ID) error
	Nack(ctx context.Context, ids []ID) error

	// Waits reports for each delivery whether its entry is still unacknowledged. With an error,
	// some answers are Unknown and the others are right: an unavailable part of the outbox
	// neither hides nor delays the rest.
	//
	// A delivery may be a copy from a broker. Stream, number, tag and product must all equal
	// those of the entry. So after a loss, a copy of a lost entry does not wait, even if
	// another entry has its number. A consumer no longer holds an entry that does not wait.
	Waits(ctx context.Context, of []Delivery) ([]State, error)

	// Deaths returns how often it has found that another consumer is dead. It is 0 for an
	// adapter with all consumers in one process.
	Deaths() int

	// Close removes the consumer and returns its unacknowledged entries to the queue.
	Close(ctx context.Context) error
}

// ErrLost means that the queue lacks an entry that the store has confirmed.
var ErrLost = errors.New("queue lost an entry that the store has confirmed")

// ID identifies an entry. IDs of one stream are ordered by Seq. Tag differs if another entry
// gets the same number after a loss.
type ID struct {
	Stream string
	Seq    uint64
	Tag    uint64
}

// IsZero reports whether the id is empty.
func (id ID) IsZero() bool { return id == ID{} }

// Delivery is one delivered entry.
type Delivery struct {
	ID    ID
	Entry seckill.Entry
	// Stray marks a copy from a broker whose entry was not in the outbox: it was acknowledged
	// or lost. The worker does not confirm it. If the store has its orders, it is settled;
	// otherwise it is adopted. It raises no witness.
	Stray bool
}

// State is the state of a delivery's entry in the outbox.
type State uint8

// The states of a delivery.
const (
	Unknown State = iota // its part of the outbox does not answer
	Waiting
	Gone // acknowledged, lost or never there
)

// Stats are figures of unacknowledged entries.
type Stats struct {
	Entries      int64
	Reservations int64     // claims
	Oldest       time.Time // zero when empty
}
