package ledgermem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"seckill"
	"seckill/internal/queue"
)

// outboxQueue is the ledger seen as a queue.
type outboxQueue Ledger

// Consumer joins the workers.
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

// Relay joins as a consumer; the embedded queue counts neither workers nor
// relays.
func (q *outboxQueue) Relay(ctx context.Context, name string) (queue.Consumer, error) {
	return q.Consumer(ctx, name)
}

// Stats reads the figures of what is not acknowledged.
func (q *outboxQueue) Stats(ctx context.Context, product uint32) (queue.Stats, error) {
	if err := ctx.Err(); err != nil {
		return queue.Stats{}, err
	}
	return q.outbox.stats(product), nil
}

// Waiting lists the products of the index.
func (q *outboxQueue) Waiting(ctx context.Context) ([]uint32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return q.outbox.waiting(), nil
}

// findStep is how many entries are read together while an order is looked for.
const findStep = 64

// Find looks for an order among the product's oldest entries that wait.
func (q *outboxQueue) Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool, error) {
	for step := range slices.Chunk(q.outbox.oldest(product, most), findStep) {
		if err := ctx.Err(); err != nil {
			return seckill.Entry{}, false, err
		}
		deliveries, err := (*Ledger)(q).deliver(ctx, step)
		if err != nil {
			return seckill.Entry{}, false, fmt.Errorf("look for an order: %w", err)
		}
		for i := range deliveries {
			entry := &deliveries[i].Entry
			for _, claim := range entry.Claims {
				if claim.OrderNo == no {
					entry.Claims = []seckill.Claim{claim}
					return *entry, true, nil
				}
			}
		}
	}
	return seckill.Entry{}, false, nil
}

// Unacknowledged reads the product's entries that wait, some at a time.
func (q *outboxQueue) Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error {
	for step := range slices.Chunk(q.outbox.oldest(product, math.MaxInt), findStep) {
		if err := ctx.Err(); err != nil {
			return err
		}
		deliveries, err := (*Ledger)(q).deliver(ctx, step)
		if err != nil {
			return fmt.Errorf("read what waits: %w", err)
		}
		for i := range deliveries {
			if err := see(deliveries[i].Entry); err != nil {
				return err
			}
		}
	}
	return nil
}

var errConsumerClosed = errors.New("the consumer is closed")

// consumer is one worker's end of the queue. Its fields are under the
// outbox's lock. It lives in the ledger's own process, and ends by Close or with
// the ledger.
type consumer struct {
	ledger   *Ledger
	name     string
	serial   uint32
	inflight map[uint64]struct{}
}

// Receive waits for entries.
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
			deliveries, err := c.ledger.deliver(ctx, taken)
			if err != nil {
				c.handBack(taken)
				return nil, fmt.Errorf("receive: %w", err)
			}
			if len(deliveries) > 0 {
				return deliveries, nil
			}
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take is one try; without success it returns what to wait for.
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

func (c *consumer) handBack(taken []item) {
	o := c.ledger.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	seqs := make([]uint64, len(taken))
	for i := range taken {
		seqs[i] = taken[i].seq
	}
	o.giveBack(c, seqs)
}

// deliver reads the bodies of taken entries, from memory or from the file. An
// entry that another acknowledged meanwhile is left out.
func (l *Ledger) deliver(ctx context.Context, taken []item) ([]queue.Delivery, error) {
	if err := l.fetch(ctx, taken); err != nil {
		return nil, err
	}
	deliveries := make([]queue.Delivery, 0, len(taken))
	for i := range taken {
		it := &taken[i]
		if it.body == nil {
			if len(l.outbox.pending([]queue.ID{it.id()})) == 0 {
				continue
			}
			return nil, &DamageError{Path: l.journal.path, Where: fmt.Sprintf("row %d", it.seq), Err: errors.New("entry is missing")}
		}
		entry, _, err := decodeEntry(it.seq, it.body)
		if err != nil {
			return nil, &DamageError{Path: l.journal.path, Where: fmt.Sprintf("row %d", it.seq), Err: err}
		}
		deliveries = append(deliveries, queue.Delivery{ID: it.id(), Entry: entry, Redelivered: it.delivered})
	}
	return deliveries, nil
}

// fetch reads bodies that are not in the window, a run of them per query.
func (l *Ledger) fetch(ctx context.Context, taken []item) error {
	for from := 0; from < len(taken); from++ {
		if taken[from].body != nil {
			continue
		}
		to := from
		for to+1 < len(taken) && taken[to+1].body == nil && taken[to+1].seq-taken[to].seq < maxFetchGap {
			to++
		}
		if err := l.fetchRun(ctx, taken[from:to+1]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// maxFetchGap is how many other rows a query may step over rather than end.
const maxFetchGap = 64

func (l *Ledger) fetchRun(ctx context.Context, run []item) error {
	rows, err := l.journal.db.QueryContext(ctx, query("select_entries"), int64(run[0].seq), int64(run[len(run)-1].seq))
	if err != nil {
		return fmt.Errorf("read entries: %w", err)
	}
	defer rows.Close()
	for i := 0; rows.Next(); {
		var seq int64
		var body []byte
		if err := rows.Scan(&seq, &body); err != nil {
			return fmt.Errorf("read entries: %w", err)
		}
		for i < len(run) && run[i].seq < uint64(seq) {
			i++
		}
		if i < len(run) && run[i].seq == uint64(seq) {
			run[i].body = body
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read entries: %w", err)
	}
	return nil
}

// pendingEntry reads the entry of a row, if it waits for an acknowledgement.
func (l *Ledger) pendingEntry(ctx context.Context, seq uint64) (seckill.Entry, bool, error) {
	o := l.outbox
	o.mu.Lock()
	it := o.find(seq)
	if it == nil {
		o.mu.Unlock()
		return seckill.Entry{}, false, nil
	}
	one := []item{*it}
	o.mu.Unlock()
	deliveries, err := l.deliver(ctx, one)
	if err != nil || len(deliveries) == 0 {
		return seckill.Entry{}, false, err
	}
	return deliveries[0].Entry, true, nil
}

// Ack acknowledges deliveries durably, after the witness was found.
func (c *consumer) Ack(ctx context.Context, ids []queue.ID, witness queue.ID) error {
	l := c.ledger
	err := l.submit(ctx, func(r *round) error {
		known, err := l.knows(witness)
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

// knows reports whether the journal has, or is known to have had, the witness.
// A row below the highest witness may be trimmed: that the higher one is here
// says that this one was, since a journal loses its end, not its middle.
func (l *Ledger) knows(witness queue.ID) (bool, error) {
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

// Nack hands deliveries back at once.
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
	o.giveBack(c, seqs)
	return nil
}

// Waits looks for entries in the index of those that are not acknowledged.
func (c *consumer) Waits(ctx context.Context, of []queue.Delivery) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o := c.ledger.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	waits := make([]bool, len(of))
	for i := range of {
		it := o.find(of[i].ID.Seq)
		waits[i] = it != nil && it.id() == of[i].ID && it.product == of[i].Entry.ProductID
	}
	return waits, nil
}

// Close leaves, and hands back what is not acknowledged.
func (c *consumer) Close(context.Context) error {
	c.ledger.outbox.leave(c)
	return nil
}
