// Package queue is the port of stage ⑥: it carries the ledger's outbox
// entries to the workers, at least once, in batches.
package queue

import (
	"context"
	"errors"
	"time"

	"seckill"
)

// Queue is the port. An adapter is done when it passes queuetest.
//
//   - Every entry of the outbox is delivered to one consumer at a time, oldest
//     first within one shard of a product, until it is acknowledged.
//   - What a consumer has received and neither acknowledged nor handed back is
//     delivered to another when that consumer is dead (closed, or silent past
//     the adapter's bound), and after a restart. What counts as a sign of life
//     is the adapter's to say; a call always is.
//   - Ack is durable and idempotent; an id that is unknown or acknowledged
//     already is ignored.
//   - Ack carries the witness: the highest id that the store has confirmed. If
//     the queue no longer has, or never had, that entry, the queue has lost
//     entries: Ack changes nothing and returns ErrLost. Trimming spares the
//     highest witness. An empty witness says nothing.
//
// Methods are safe for concurrent use and return within their context's
// deadline.
type Queue interface {
	// Consumer joins the workers under a name that is unique among the living.
	Consumer(ctx context.Context, name string) (Consumer, error)

	// Relay joins as a consumer that passes copies of entries to a broker. It is
	// a consumer like the workers, and is not counted among them.
	Relay(ctx context.Context, name string) (Consumer, error)

	// Stats reads one product's figures; product 0 sums over all.
	Stats(ctx context.Context, product uint32) (Stats, error)

	// Unacknowledged passes every entry of the product that is not acknowledged to
	// see, whoever has received it, oldest first within one shard. It changes
	// nothing: the entries are delivered as before. Entries that are added or
	// acknowledged meanwhile may be passed or not. It ends with see's error. With
	// another error, such as an entry that cannot be decoded, the shards that can be
	// read were read to their end.
	Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error

	// Waiting lists the products with entries that are not acknowledged, each
	// once, in no particular order. It costs less than Stats of every product.
	Waiting(ctx context.Context) ([]uint32, error)

	// Find is the entry that carries an order of the product and is not
	// acknowledged, with the order's claim alone. In each stream it looks through
	// the product's oldest entries, at most so many: one that is not found may be
	// in a later one.
	Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool, error)

	// Lost returns those of the witnesses for which an acknowledgement would
	// return ErrLost. With an error, some may be missing.
	Lost(ctx context.Context, witnesses []ID) ([]ID, error)

	// HighestWitness is, for each stream, the highest witness that an
	// acknowledgement has carried; streams without one are absent. It survives a
	// restart. A store that is below it has lost orders that it had confirmed: an
	// older copy was restored. With an error, streams may be missing, and those
	// that are there are true.
	HighestWitness(ctx context.Context) ([]ID, error)
}

// Consumer receives deliveries. It is used by one goroutine at a time, except
// that Close may be called from another.
type Consumer interface {
	// Receive waits until at least one entry can be delivered, and returns
	// entries of at most max claims together (one entry, if that alone has
	// more). It returns the context's error when there was none.
	Receive(ctx context.Context, max int) ([]Delivery, error)

	// Ack acknowledges deliveries, also copies that came another way; Nack hands
	// them back at once, for delivery to anyone.
	Ack(ctx context.Context, done []Delivery, witness ID) error
	Nack(ctx context.Context, ids []ID) error

	// Waits reports for each delivery whether its entry is still not acknowledged.
	// With an error, some answers are Unknown and the others are right: a part of
	// the outbox that does not answer neither hides the rest nor holds it up.
	//
	// A delivery may be a copy that came another way: stream, number, tag and
	// product must all be those of the entry. After a loss, a copy of a lost entry
	// does not wait, even if another entry has its number. A consumer no longer
	// holds an entry that does not wait.
	Waits(ctx context.Context, of []Delivery) ([]State, error)

	// Deaths is how often it has found that another consumer is dead. An adapter
	// whose consumers are all in one process finds none.
	Deaths() int

	// Close leaves, and hands back what is not acknowledged.
	Close(ctx context.Context) error
}

// ErrLost says that the queue misses an entry that the store has confirmed.
var ErrLost = errors.New("queue lost an entry that the store has confirmed")

// ID names an entry. IDs of one stream are ordered by Seq; Tag tells an entry
// from another that took its number after a loss.
type ID struct {
	Stream string
	Seq    uint64
	Tag    uint64
}

// IsZero reports whether id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// Delivery is one entry on its way.
type Delivery struct {
	ID    ID
	Entry seckill.Entry
	// Stray says that this is a copy from a broker whose entry did not wait in the
	// outbox: it was acknowledged, or is lost. The worker does not confirm it. If
	// the store has its orders it is settled, otherwise it is adopted; it raises no
	// witness.
	Stray bool
}

// State is what the outbox says of a delivery.
type State uint8

// The states of a delivery.
const (
	Unknown State = iota // its part of the outbox does not answer
	Waiting
	Gone // acknowledged, lost, or never there
)

// Stats are figures of what is not acknowledged.
type Stats struct {
	Entries      int64
	Reservations int64     // claims
	Oldest       time.Time // zero when empty
}
