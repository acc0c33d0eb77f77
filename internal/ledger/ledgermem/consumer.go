package ledgermem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"seckill"
	"seckill/internal/queue"
)

// outboxQueue is the ledger's outbox as a queue.
type outboxQueue Ledger

func (q *outboxQueue) Consumer(ctx context.Context, name string) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := q.outbox.join((*Ledger)(q), name)
	if err != nil {
		return nil, fmt.Errorf("join queue: %w", err)
	}
	return c, nil
}

// Relay adds a consumer. The embedded queue counts neither workers nor relays.
func (q *outboxQueue) Relay(ctx context.Context, name string) (queue.Consumer, error) {
	return q.Consumer(ctx, name)
}

func (q *outboxQueue) Stats(ctx context.Context, product uint32) (queue.Stats, error) {
	if err := ctx.Err(); err != nil {
		return queue.Stats{}, err
	}
	return q.outbox.stats(product), nil
}

func (q *outboxQueue) Waiting(ctx context.Context) ([]uint32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return q.outbox.waiting(), nil
}

func (q *outboxQueue) Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool, error) {
	for entry, err := range q.oldest(ctx, product, most) {
		if err != nil {
			return seckill.Entry{}, false, fmt.Errorf("look for an order: %w", err)
		}
		if keepOnly(&entry, no) {
			return entry, true, nil
		}
	}
	return seckill.Entry{}, false, nil
}

func (q *outboxQueue) Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error {
	for entry, err := range q.oldest(ctx, product, math.MaxInt) {
		if err != nil {
			return fmt.Errorf("read unacknowledged entries: %w", err)
		}
		if err := see(entry); err != nil {
			return err
		}
	}
	return nil
}

// oldest iterates over the product's oldest unacknowledged entries.
func (q *outboxQueue) oldest(ctx context.Context, product uint32, most int) iter.Seq2[seckill.Entry, error] {
	return func(yield func(seckill.Entry, error) bool) {
		for _, it := range q.outbox.oldest(product, most) {
			entry, _, err := decodeEntry(it.seq, it.body)
			if !yield(entry, cmp.Or(ctx.Err(), err)) {
				return
			}
		}
	}
}

var errConsumerClosed = errors.New("the consumer is closed")

// consumer is one worker's end of the queue. The outbox's lock guards its fields. It lives in
// the ledger's process, and ends by Close or with the ledger.
type consumer struct {
	ledger   *Ledger
	name     string
	serial   uint32
	inflight map[uint64]struct{}
}

func (c *consumer) Receive(ctx context.Context, max int) ([]queue.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		taken, wake, err := c.take(max)
		if err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		if len(taken) > 0 {
			return c.deliver(taken)
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take tries once. If it finds nothing, it returns the channel to wait for.
func (c *consumer) take(max int) ([]item, <-chan struct{}, error) {
	o := c.ledger.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return nil, nil, errStopped
	case o.consumers[c.serial] == nil:
		return nil, nil, errConsumerClosed
	}
	return o.takeBatch(c, max), o.wake, nil
}

// deliver decodes taken entries.
func (c *consumer) deliver(taken []item) ([]queue.Delivery, error) {
	deliveries := make([]queue.Delivery, len(taken))
	for i := range taken {
		it := &taken[i]
		entry, _, err := decodeEntry(it.seq, it.body)
		if err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		deliveries[i] = queue.Delivery{ID: it.id(), Entry: entry}
	}
	return deliveries, nil
}

// Ack acknowledges deliveries durably, if the journal has the witness.
func (c *consumer) Ack(ctx context.Context, done []queue.Delivery, witness queue.ID) error {
	l := c.ledger
	ids := make([]queue.ID, len(done))
	for i := range done {
		ids[i] = done[i].ID
	}
	err := l.submit(ctx, func(r *round) error {
		known, err := l.hasWitness(witness)
		if err != nil {
			return notExecuted(err)
		}
		if !known {
			return queue.ErrLost
		}
		if witness.Seq > l.witness.Seq {
			r.witness = witness
			l.raise(r, witness)
		}
		r.acks = append(r.acks, l.outbox.pending(ids)...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	return nil
}

func (l *Ledger) raise(r *round, witness queue.ID) {
	old := l.witness
	l.witness = witness
	r.undo.add(func() { l.witness = old })
}

// hasWitness reports whether the journal has, or had, the witness. A row below the highest witness
// may be deleted. But a journal loses rows only at its end, so if it has the higher witness, it
// had the lower one too.
func (l *Ledger) hasWitness(witness queue.ID) (bool, error) {
	switch {
	case witness.IsZero() || witness == l.witness:
		return true, nil
	case witness.Stream != stream:
		return false, nil
	case len(l.outbox.pending([]queue.ID{witness})) > 0:
		return true, nil
	}
	tag, there, err := l.journal.entryTag(context.Background(), witness.Seq)
	switch {
	case err != nil:
		return false, fmt.Errorf("find witness: %w", err)
	case there:
		return tag == witness.Tag, nil
	}
	return witness.Seq < l.witness.Seq && witness.Seq <= l.floor.Load(), nil
}

func (c *consumer) Nack(ctx context.Context, ids []queue.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := c.ledger.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	seqs := make([]uint64, 0, len(ids))
	for _, id := range ids {
		if it := o.find(id.Seq); it != nil && it.id() == id {
			seqs = append(seqs, id.Seq)
		}
	}
	o.returnEntries(c, seqs)
	return nil
}

// Deaths is always 0, because all consumers are in this process.
func (c *consumer) Deaths() int { return 0 }

// Waits looks entries up in the index of unacknowledged entries.
func (c *consumer) Waits(ctx context.Context, of []queue.Delivery) ([]queue.State, error) {
	states := make([]queue.State, len(of))
	if err := ctx.Err(); err != nil {
		return states, err
	}
	o := c.ledger.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range of {
		states[i] = queue.Gone
		if it := o.find(of[i].ID.Seq); it != nil && it.id() == of[i].ID && it.product == of[i].Entry.ProductID {
			states[i] = queue.Waiting
		}
	}
	return states, nil
}

func (c *consumer) Close(context.Context) error {
	c.ledger.outbox.leave(c)
	return nil
}
