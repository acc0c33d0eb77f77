package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

func TestAFullBatchDoesNotWait(t *testing.T) {
	c := newCrew(t, func(o *worker.Options) { o.BatchSize, o.BatchWait = 4, time.Hour })
	p := c.Open(t, 1, 100)
	for _, buyer := range buyers("b", 8) {
		c.Buy(t, p, buyer)
	}
	c.start(t)
	c.drained(t)
	rig.Until(t, "two batches are settled", func() bool { return len(c.settled()) == 2 })
	for _, claims := range c.settled() {
		if claims != 4 {
			t.Errorf("a batch had %d claims, want 4", claims)
		}
	}
}

func TestABatchWaitsForBatchWaitAtMost(t *testing.T) {
	c := newCrew(t, func(o *worker.Options) { o.BatchSize, o.BatchWait = 1000, 50*time.Millisecond })
	p := c.Open(t, 1, 100)
	c.start(t)
	nos := c.Buy(t, p, "a", "b")
	nos = append(nos, c.Buy(t, p, "c")...)
	c.drained(t)
	c.statuses(t, seckill.OrderPending, nos...)
}

func TestABatchIsOneTransactionPerProduct(t *testing.T) {
	c := newCrew(t, func(o *worker.Options) { o.BatchWait = 200 * time.Millisecond })
	p, q := c.Open(t, 1, 10), c.Open(t, 2, 10)
	var nos []seckill.OrderNo
	for _, buyer := range buyers("b", 3) {
		nos = append(nos, c.Buy(t, p, buyer)...)
		nos = append(nos, c.Buy(t, q, buyer)...)
	}
	c.start(t)
	c.drained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	if calls := c.Store.Calls("Confirm"); calls != 2 {
		t.Errorf("%d transactions for one batch of two products", calls)
	}
}

func TestRedeliveryChangesNothing(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.queue.set(&c.queue.failAck, 1)
	c.start(t)
	c.drained(t)
	c.stop()
	c.statuses(t, seckill.OrderPending, nos...)
	if stock := c.Stored(t, 1).Stock; stock != 8 {
		t.Errorf("stock is %d after a redelivery, want 8", stock)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// A queue that could not be read while a batch gathered must not cost the
// entries in hand: nobody else is given them while the worker lives.
func TestAQueueThatFailsInMidBatchKeepsWhatWasReceived(t *testing.T) {
	c := newCrew(t, func(o *worker.Options) { o.BatchWait = 20 * time.Millisecond })
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a")
	c.queue.set(&c.queue.failReceive, 1)
	c.start(t)
	c.drained(t)
	c.statuses(t, seckill.OrderPending, nos...)
}

func TestAWorkerWaitsForAQueueItCannotJoin(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a")
	c.queue.set(&c.queue.failJoin, 1)
	c.start(t)
	c.drained(t)
	c.statuses(t, seckill.OrderPending, nos...)
}

func TestAStoreOutageBurnsNoAttemptAndLosesNothing(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Store.FailBefore("Confirm", storetest.Always)
	c.start(t)
	rig.Until(t, "the worker has met the outage", func() bool { return c.Store.Calls("Confirm") >= 2 })
	nos = append(nos, c.Buy(t, p, "c")...) // a sale goes on meanwhile
	if n := c.Depth(t, 1); n != 3 {
		t.Errorf("%d reservations wait, want 3", n)
	}
	c.Store.Heal()
	c.drained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	if letters := c.letters(t); len(letters) != 0 {
		t.Errorf("an outage parked %d claims", len(letters))
	}
}

func TestALostReplyOfTheStoreConfirmsOnce(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Store.FailAfter("Confirm", 1)
	c.start(t)
	c.drained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	storetest.CheckPromises(t, c.Store, 1)
}

func TestStopHandsBackWhatItHolds(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Store.FailBefore("Confirm", storetest.Always)
	c.start(t)
	rig.Until(t, "the worker holds the entry", func() bool { return c.Store.Calls("Confirm") > 0 })
	c.stop()
	c.statuses(t, seckill.OrderQueued, nos...)
	c.Store.Heal()
	c.enlist(func(o *worker.Options) { o.Name = "another" })
	c.start(t)
	c.drained(t)
	c.statuses(t, seckill.OrderPending, nos...)
}

func TestAStopFinishesTheBatchInHand(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a")
	gate := c.Store.Block("Confirm")
	c.start(t)
	<-gate.Arrived()
	stopped := make(chan struct{})
	go func() { c.stop(); close(stopped) }()
	gate.Open()
	<-stopped
	c.statuses(t, seckill.OrderPending, nos...)
	if n := c.Depth(t, 1); n != 0 {
		t.Errorf("%d reservations were not acknowledged by the stop", n)
	}
}

// Each transaction may take long; a stop waits for the one in hand alone.
func TestAStopWaitsForOneTransactionOnly(t *testing.T) {
	for name, claim := range map[string]func(t *testing.T, c *crew) (first, rest []seckill.OrderNo){
		"of two products": func(t *testing.T, c *crew) (first, rest []seckill.OrderNo) {
			p, q := c.Open(t, 1, 10), c.Open(t, 2, 10)
			return c.Buy(t, p, "a"), c.Buy(t, q, "a")
		},
		"of two halves": func(t *testing.T, c *crew) (first, rest []seckill.OrderNo) {
			p := c.Open(t, 1, 10)
			c.Store.Poison("b") // the batch fails on its data, and is split
			return nil, c.Buy(t, p, "a", "b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, func(o *worker.Options) { o.BatchWait = 100 * time.Millisecond })
			first, rest := claim(t, c)
			gate := c.Store.Block("Confirm")
			c.start(t)
			<-gate.Arrived()
			stopped := make(chan struct{})
			go func() { c.stop(); close(stopped) }()
			<-c.stopping
			gate.Open()
			<-stopped
			if calls := c.Store.Calls("Confirm"); calls != 1 {
				t.Errorf("%d transactions, want 1", calls)
			}
			c.statuses(t, seckill.OrderPending, first...)
			c.statuses(t, seckill.OrderQueued, rest...)
		})
	}
}

func TestTheRateShapesTheFlow(t *testing.T) {
	const rate, claims = 200, 100 // of this worker
	for sharers := range 3 {
		t.Run(fmt.Sprintf("%d share it", sharers), func(t *testing.T) {
			c := newCrew(t, func(o *worker.Options) { o.RatePerSecond = rate * max(1, sharers) })
			worker.Crew{c.worker}.Share(sharers) // none are counted: this one works all the same
			p := c.Open(t, 1, claims)
			for _, buyer := range buyers("b", claims) {
				c.Buy(t, p, buyer)
			}
			started := time.Now()
			c.start(t)
			rig.Until(t, "all is settled", func() bool {
				// Asked before the clock is read: time can only be more than it says.
				done, most := 0, 0
				for _, n := range c.settled() {
					done, most = done+n, max(most, n)
				}
				if allowed := int(time.Since(started).Seconds()*rate) + most + 1; done > allowed {
					t.Fatalf("%d claims were settled where %d are allowed", done, allowed)
				}
				return done == claims
			})
			if took := time.Since(started); took < (claims-rate/10)*time.Second/rate {
				t.Errorf("%d claims took %s at %d a second", claims, took, rate)
			}
		})
	}
}

// However many share a small rate, a worker goes on.
func TestTheShareOfARateIsNeverZero(t *testing.T) {
	c := newCrew(t, func(o *worker.Options) { o.RatePerSecond = 100 })
	worker.Crew{c.worker}.Share(200) // one claim in two seconds
	p := c.Open(t, 1, 10)
	c.Buy(t, p, "a", "b")
	c.start(t)
	rig.Until(t, "one is settled", func() bool { return len(c.settled()) == 1 })
	worker.Crew{c.worker}.Share(1)
	c.Buy(t, p, "c")
	rig.Until(t, "all are settled", func() bool { return len(c.settled()) > 1 })
}

func TestAStoreThatIsShortRaisesTroubleAndTheEntryStays(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Exec(t, `UPDATE tb_seckill_product SET stock = 1, version = version + 1 WHERE id = 1`)
	c.start(t)
	rig.Until(t, "trouble is raised twice", func() bool { return len(c.troubled()) >= 2 })
	got := c.troubled()[0]
	if got.product != 1 || !errors.Is(got.err, store.ErrShort) {
		t.Errorf("trouble was %+v", got)
	}
	if len(c.alerted()) == 0 {
		t.Error("nobody was alerted")
	}
	if n := c.Depth(t, 1); n != 2 {
		t.Errorf("%d reservations wait, want 2", n)
	}
	// Another product's entries are not held up.
	q := c.Open(t, 2, 10)
	others := c.Buy(t, q, "c")
	rig.Until(t, "the other product goes on", func() bool { return c.Depth(t, 2) == 0 })
	c.statuses(t, seckill.OrderPending, others...)
	c.statuses(t, seckill.OrderQueued, nos...)

	c.Exec(t, `UPDATE tb_seckill_product SET stock = 10, version = version + 1 WHERE id = 1`)
	c.drained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	if len(c.letters(t)) != 0 {
		t.Error("a short store burned an attempt")
	}
}

// A held entry is tried again and again while its recovery goes on. What it
// says of the epoch that was short must not be held against the next one.
func TestAStoreThatIsShortCostsOneEpoch(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Exec(t, `UPDATE tb_seckill_product SET stock = 1, version = version + 1 WHERE id = 1`)
	c.start(t)
	rig.Until(t, "trouble is raised twice", func() bool { return len(c.troubled()) >= 2 })
	if !c.Stored(t, 1).Rebuilding {
		t.Fatal("the product is not marked for recovery")
	}
	recovered, err := c.Lifecycle.RecoverIfLost(t.Context(), 1)
	rig.Must(t, err)
	if !recovered {
		t.Fatal("the product was not recovered")
	}
	c.drained(t)
	for range c.troubled() { // each asks for a look, as late as it may come
		_, err := c.Lifecycle.RecoverIfLost(t.Context(), 1)
		rig.Must(t, err)
	}
	if now := c.Stored(t, 1); now.Epoch != p.Epoch+1 || now.Rebuilding {
		t.Errorf("epoch %d, rebuilding %v; want epoch %d", now.Epoch, now.Rebuilding, p.Epoch+1)
	}
	sold := map[seckill.OrderStatus]int{}
	for _, no := range nos {
		sold[c.Status(t, no)]++
	}
	if sold[seckill.OrderPending] != 1 || sold[seckill.OrderFailed] != 1 {
		t.Errorf("the orders are %v, want one pending and one failed", sold)
	}
}

// A journal that was lost begins its numbers anew. The loss is told once,
// every product is marked for recovery, and then work goes on.
func TestALostWitnessIsToldOnceAndEndsInRecovery(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	old := c.Buy(t, p, "a", "b")
	old = append(old, c.Buy(t, p, "c")...)
	c.start(t)
	c.drained(t)
	c.stop()

	c.LoseJournal(t)
	p, err := c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	nos := c.Buy(t, p, "d")
	c.Store.FailBefore("WitnessLost", 1) // the mark must not be skipped
	c.enlist()
	c.start(t)
	c.drained(t)
	c.stop()
	c.statuses(t, seckill.OrderPending, append(old, nos...)...)
	got := c.troubled()
	if len(got) != 1 || got[0].product != 0 || !errors.Is(got[0].err, queue.ErrLost) {
		t.Errorf("troubles were %+v", got)
	}
	if !c.Stored(t, 1).Rebuilding {
		t.Error("the product is not marked for recovery")
	}

	// The next start finds nothing lost.
	p, err = c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	c.Buy(t, p, "e")
	c.enlist()
	c.start(t)
	c.drained(t)
	if got := c.troubled(); len(got) != 1 {
		t.Errorf("the loss was told again: %+v", got)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// measuring notes how many claims one transaction had at most.
type measuring struct {
	*storetest.Faulty
	most atomic.Int64
}

func (s *measuring) Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	s.most.Store(max(s.most.Load(), int64(len(req.Items))))
	return s.Faulty.Confirm(ctx, req)
}

// Entries that waited for a recovery come back in batches, not all at once.
func TestHeldEntriesKeepTheBatchBound(t *testing.T) {
	c := newCrew(t)
	measured := &measuring{Faulty: c.Store}
	c.store = measured
	c.enlist(func(o *worker.Options) { o.BatchSize = 4 })
	p := c.Open(t, 1, 40)
	var nos []seckill.OrderNo
	for _, buyer := range buyers("b", 30) {
		nos = append(nos, c.Buy(t, p, buyer)...)
	}
	c.Exec(t, `UPDATE tb_seckill_product SET stock = 0, version = version + 1 WHERE id = 1`)
	c.start(t)
	rig.Until(t, "entries are held, and were tried again", func() bool { return c.Store.Calls("Confirm") > 2 })
	c.Exec(t, `UPDATE tb_seckill_product SET stock = 40, version = version + 1 WHERE id = 1`)
	c.drained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	if most := measured.most.Load(); most > 4 {
		t.Errorf("one transaction had %d claims, the bound is 4", most)
	}
}
