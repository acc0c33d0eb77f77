package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
)

// fixture is one subtest's queue with helpers.
type fixture struct {
	*testing.T
	Harness
	suite    *suite
	products map[uint32]bool
	made     int // claims
}

func (s *suite) fixture(t *testing.T) *fixture {
	f := &fixture{T: t, Harness: s.open(t), suite: s, products: make(map[uint32]bool)}
	f.clean()
	return f
}

// clean acknowledges entries of earlier subtests.
func (f *fixture) clean() {
	f.Helper()
	c := f.join()
	defer c.leave()
	f.eventually("the queue is empty", func() bool {
		stats := f.stats(0)
		if stats.Entries > 0 {
			c.ack(c.receive(receiveAll)...)
		}
		return stats.Entries == 0
	})
}

func (f *fixture) reopen() {
	f.Helper()
	if f.Reopen == nil {
		f.Skip("the harness cannot reopen")
	}
	f.Harness = f.Reopen(f.T)
}

func (f *fixture) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	f.Cleanup(cancel)
	return ctx
}

func (f *fixture) check(err error, doing string) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s: %v", doing, err)
	}
}

func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	ticker := time.NewTicker(pollStep)
	defer ticker.Stop()
	for deadline := time.Now().Add(lag); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			f.Fatalf("not within %v: %s", lag, what)
		}
	}
}

func (f *fixture) stats(product uint32) queue.Stats {
	f.Helper()
	stats, err := f.Queue.Stats(f.ctx(), product)
	f.check(err, "stats")
	return stats
}

// wantStats polls until the figures are as wanted.
func (f *fixture) wantStats(product uint32, want queue.Stats) {
	f.Helper()
	ticker := time.NewTicker(pollStep)
	defer ticker.Stop()
	for deadline := time.Now().Add(lag); ; <-ticker.C {
		got := f.stats(product)
		same := got.Oldest.Equal(want.Oldest) || got.Oldest.IsZero() && want.Oldest.IsZero()
		if got.Entries == want.Entries && got.Reservations == want.Reservations && same {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("stats of product %d are %+v, want %+v", product, got, want)
		}
	}
}

func (f *fixture) product() uint32 {
	id := f.suite.next.Add(1)
	f.products[id] = true
	return id
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// publish appends an entry with a claim per quantity, a millisecond later than the previous
// one.
func (f *fixture) publish(product uint32, quantities ...int) seckill.Entry {
	f.Helper()
	f.made++
	entry := seckill.Entry{
		ProductID: product, Group: product, Epoch: 1, At: start.Add(time.Duration(f.made) * time.Millisecond),
		PriceCents: 9900, Currency: "CNY", Name: "手机", Limit: 100,
	}
	for i, quantity := range quantities {
		no := seckill.NewOrderNo(entry.At, product, uint64(f.made)<<16|uint64(i))
		entry.Claims = append(entry.Claims, seckill.Claim{
			OrderNo: no, Buyer: "buyer-" + no.String(), Quantity: quantity, Key: "key", Ref: "ref",
		})
	}
	f.Publish(f.T, entry)
	return entry
}

// publishMany appends entries of one claim.
func (f *fixture) publishMany(product uint32, n int) (entries []seckill.Entry) {
	f.Helper()
	for range n {
		entries = append(entries, f.publish(product, 1))
	}
	return entries
}

// consumer is a worker of a story.
type consumer struct {
	*fixture
	queue.Consumer
}

func (f *fixture) join() *consumer {
	f.Helper()
	return f.joinAt(f.Queue)
}

func (f *fixture) joinAt(q queue.Queue) *consumer {
	f.Helper()
	c, err := q.Consumer(f.ctx(), fmt.Sprint("queuetest-", f.suite.next.Add(1)))
	f.check(err, "join")
	return &consumer{f, c}
}

func (c *consumer) receive(max int) []queue.Delivery {
	c.Helper()
	batch, err := c.Receive(c.ctx(), max)
	c.check(err, "receive")
	if len(batch) == 0 {
		c.Fatal("receive returned nothing and no error")
	}
	return batch
}

// receiveN receives until it has n entries.
func (c *consumer) receiveN(n int) []queue.Delivery {
	c.Helper()
	var all []queue.Delivery
	for len(all) < n {
		all = append(all, c.receive(receiveAll)...)
	}
	if len(all) > n {
		c.Fatalf("%d deliveries, want %d", len(all), n)
	}
	return all
}

// wantNothing expects no delivery.
func (c *consumer) wantNothing() {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), quiet)
	defer cancel()
	if batch, err := c.Receive(ctx, receiveAll); !errors.Is(err, context.DeadlineExceeded) {
		c.Fatalf("received %+v, %v, want nothing", batch, err)
	}
}

func (c *consumer) ack(deliveries ...queue.Delivery) {
	c.Helper()
	c.check(c.Ack(c.ctx(), deliveries, queue.ID{}), "ack")
}

func (c *consumer) nack(deliveries ...queue.Delivery) {
	c.Helper()
	c.check(c.Nack(c.ctx(), ids(deliveries)), "nack")
}

func (c *consumer) leave() {
	c.Helper()
	c.check(c.Close(c.ctx()), "close")
}

func ids(deliveries []queue.Delivery) []queue.ID {
	var all []queue.ID
	for _, d := range deliveries {
		all = append(all, d.ID)
	}
	return all
}

// wantEntries expects exactly these entries in this order.
func (f *fixture) wantEntries(got []queue.Delivery, want ...seckill.Entry) {
	f.Helper()
	if !slices.EqualFunc(got, want, func(d queue.Delivery, e seckill.Entry) bool {
		a := d.Entry
		return a.ProductID == e.ProductID && a.Group == e.Group && a.Shard == e.Shard && a.Epoch == e.Epoch && a.At.Equal(e.At) &&
			a.PriceCents == e.PriceCents && a.Currency == e.Currency && a.Name == e.Name && a.Limit == e.Limit &&
			slices.Equal(a.Claims, e.Claims)
	}) {
		f.Fatalf("deliveries %+v\nwant %+v", got, want)
	}
}
