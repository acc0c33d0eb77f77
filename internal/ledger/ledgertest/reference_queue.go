package ledgertest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"seckill"
	"seckill/internal/queue"
)

// referenceStream is the name of the one stream.
const referenceStream = "reference"

// ReferenceQueue is the outbox of a Reference as a queue.
type ReferenceQueue struct {
	mu      sync.Mutex
	entries []*queued // all entries ever written, Seq = index + 1
	highest queue.ID  // witness that an acknowledgement has carried
	changed chan struct{}
}

type queued struct {
	id     queue.ID
	entry  seckill.Entry
	holder *referenceConsumer
	acked  bool
}

func newReferenceQueue() *ReferenceQueue {
	return &ReferenceQueue{changed: make(chan struct{})}
}

// wake wakes all waiting calls. The caller must hold the lock.
func (q *ReferenceQueue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *ReferenceQueue) publish(entry seckill.Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	seq := uint64(len(q.entries) + 1)
	id := queue.ID{Stream: referenceStream, Seq: seq, Tag: seq*0x9E3779B97F4A7C15 | 1}
	entry.Claims = slices.Clone(entry.Claims)
	q.entries = append(q.entries, &queued{id: id, entry: entry})
	q.wake()
}

// carrying returns the order's entry with its claim alone, if it is unacknowledged.
func (q *ReferenceQueue) carrying(product uint32, no seckill.OrderNo) seckill.Entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range slices.Backward(q.entries) {
		if e.acked || e.entry.ProductID != product {
			continue
		}
		for _, claim := range e.entry.Claims {
			if claim.OrderNo == no {
				entry := e.entry
				entry.Claims = []seckill.Claim{claim}
				return entry
			}
		}
	}
	return seckill.Entry{}
}

func (q *ReferenceQueue) find(id queue.ID) *queued {
	if id.Stream != referenceStream || id.Seq == 0 || id.Seq > uint64(len(q.entries)) {
		return nil
	}
	if e := q.entries[id.Seq-1]; e.id == id {
		return e
	}
	return nil
}

func (q *ReferenceQueue) Consumer(ctx context.Context, _ string) (queue.Consumer, error) {
	return &referenceConsumer{queue: q, closed: make(chan struct{})}, ctx.Err()
}

func (q *ReferenceQueue) Relay(ctx context.Context, name string) (queue.Consumer, error) {
	return q.Consumer(ctx, name)
}

func (q *ReferenceQueue) Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error {
	q.mu.Lock()
	var open []seckill.Entry
	for _, e := range q.entries {
		if !e.acked && e.entry.ProductID == product {
			open = append(open, e.entry)
		}
	}
	q.mu.Unlock()
	for _, entry := range open {
		if err := see(entry); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (q *ReferenceQueue) Waiting(ctx context.Context) ([]uint32, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var products []uint32
	for _, e := range q.entries {
		if !e.acked && !slices.Contains(products, e.entry.ProductID) {
			products = append(products, e.entry.ProductID)
		}
	}
	return products, ctx.Err()
}

func (q *ReferenceQueue) Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (entry seckill.Entry, found bool, err error) {
	err = q.Unacknowledged(ctx, product, func(e seckill.Entry) error {
		most--
		for _, claim := range e.Claims {
			if claim.OrderNo == no && most >= 0 {
				entry, found = e, true
				entry.Claims = []seckill.Claim{claim}
			}
		}
		return nil
	})
	return entry, found, err
}

func (q *ReferenceQueue) Lost(ctx context.Context, witnesses []queue.ID) ([]queue.ID, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var lost []queue.ID
	for _, id := range witnesses {
		if !id.IsZero() && q.find(id) == nil {
			lost = append(lost, id)
		}
	}
	return lost, ctx.Err()
}

func (q *ReferenceQueue) HighestWitness(ctx context.Context) ([]queue.ID, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.highest.IsZero() {
		return nil, ctx.Err()
	}
	return []queue.ID{q.highest}, ctx.Err()
}

func (q *ReferenceQueue) Stats(ctx context.Context, product uint32) (queue.Stats, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var stats queue.Stats
	for _, e := range q.entries {
		if e.acked || product != 0 && e.entry.ProductID != product {
			continue
		}
		if stats.Entries == 0 || e.entry.At.Before(stats.Oldest) {
			stats.Oldest = e.entry.At
		}
		stats.Entries++
		stats.Reservations += int64(len(e.entry.Claims))
	}
	return stats, ctx.Err()
}

var errConsumerClosed = errors.New("consumer is closed")

type referenceConsumer struct {
	queue  *ReferenceQueue
	closed chan struct{}
}

func (c *referenceConsumer) Receive(ctx context.Context, max int) ([]queue.Delivery, error) {
	for {
		deliveries, changed := c.take(max)
		if len(deliveries) > 0 {
			return deliveries, nil
		}
		select {
		case <-changed:
		case <-c.closed:
			return nil, errConsumerClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *referenceConsumer) take(max int) ([]queue.Delivery, <-chan struct{}) {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	var deliveries []queue.Delivery
	claims := 0
	for _, e := range c.queue.entries {
		if e.acked || e.holder != nil {
			continue
		}
		if claims += len(e.entry.Claims); claims > max && len(deliveries) > 0 {
			break
		}
		deliveries = append(deliveries, queue.Delivery{ID: e.id, Entry: e.entry})
		e.holder = c
	}
	return deliveries, c.queue.changed
}

func (c *referenceConsumer) Ack(ctx context.Context, done []queue.Delivery, witness queue.ID) error {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if !witness.IsZero() && c.queue.find(witness) == nil {
		return queue.ErrLost
	}
	if witness.Seq > c.queue.highest.Seq {
		c.queue.highest = witness
	}
	for i := range done {
		if e := c.queue.find(done[i].ID); e != nil {
			e.acked, e.holder = true, nil
		}
	}
	return ctx.Err()
}

func (c *referenceConsumer) Nack(ctx context.Context, ids []queue.ID) error {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	for _, id := range ids {
		if e := c.queue.find(id); e != nil && e.holder == c {
			e.holder = nil
		}
	}
	c.queue.wake()
	return ctx.Err()
}

func (c *referenceConsumer) Deaths() int { return 0 }

func (c *referenceConsumer) Waits(ctx context.Context, of []queue.Delivery) ([]queue.State, error) {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	states := make([]queue.State, len(of))
	for i := range of {
		states[i] = queue.Gone
		if e := c.queue.find(of[i].ID); e != nil && !e.acked && e.entry.ProductID == of[i].Entry.ProductID {
			states[i] = queue.Waiting
		}
	}
	return states, ctx.Err()
}

func (c *referenceConsumer) Close(ctx context.Context) error {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	select {
	case <-c.closed:
		return nil
	default:
		close(c.closed)
	}
	for _, e := range c.queue.entries {
		if e.holder == c {
			e.holder = nil
		}
	}
	c.queue.wake()
	return ctx.Err()
}
