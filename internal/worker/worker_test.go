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

func TestGather_FullBatchDoesNotWait(t *testing.T) {
	c := newFixture(t, func(o *worker.Options) { o.BatchSize, o.BatchWait = 4, time.Hour })
	p := c.Open(t, 1, 100)
	for _, buyer := range buyers("b", 8) {
		c.Buy(t, p, buyer)
	}
	c.start(t)
	c.waitDrained(t)
	rig.Until(t, "two batches are settled", func() bool { return len(c.settled()) == 2 })
	for _, claims := range c.settled() {
		if claims != 4 {
			t.Errorf("a batch had %d claims, want 4", claims)
		}
	}
}

func TestGather_WaitsAtMostBatchWait(t *testing.T) {
	c := newFixture(t, func(o *worker.Options) { o.BatchSize, o.BatchWait = 1000, 50*time.Millisecond })
	p := c.Open(t, 1, 100)
	c.start(t)
	nos := c.Buy(t, p, "a", "b")
	nos = append(nos, c.Buy(t, p, "c")...)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
}

func TestConfirm_OneTransactionPerProduct(t *testing.T) {
	c := newFixture(t, func(o *worker.Options) { o.BatchWait = 200 * time.Millisecond })
	p, q := c.Open(t, 1, 10), c.Open(t, 2, 10)
	var nos []seckill.OrderNo
	for _, buyer := range buyers("b", 3) {
		nos = append(nos, c.Buy(t, p, buyer)...)
		nos = append(nos, c.Buy(t, q, buyer)...)
	}
	c.start(t)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	if calls := c.Store.Calls("Confirm"); calls != 2 {
		t.Errorf("%d transactions for one batch of two products", calls)
	}
}

func TestConfirm_RedeliveryChangesNothing(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.queue.set(&c.queue.failAck, 1)
	c.start(t)
	c.waitDrained(t)
	c.stop()
	c.statuses(t, seckill.OrderPending, nos...)
	if stock := c.Stored(t, 1).Stock; stock != 8 {
		t.Errorf("stock is %d after a redelivery, want 8", stock)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// While a batch gathers, the queue cannot be read. The entries in hand must be
// settled: no other worker receives them while this one lives.
func TestGather_QueueErrorKeepsReceivedEntries(t *testing.T) {
	c := newFixture(t, func(o *worker.Options) { o.BatchWait = 20 * time.Millisecond })
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a")
	c.queue.set(&c.queue.failReceive, 1)
	c.start(t)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
}

func TestRun_RepeatsUntilTheQueueIsJoined(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a")
	c.queue.set(&c.queue.failJoin, 1)
	c.start(t)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
}

func TestConfirm_StoreOutageCostsNoAttemptAndLosesNothing(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Store.FailBefore("Confirm", storetest.Always)
	c.start(t)
	rig.Until(t, "the worker has met the outage", func() bool { return c.Store.Calls("Confirm") >= 2 })
	nos = append(nos, c.Buy(t, p, "c")...) // the sale goes on meanwhile
	if n := c.Depth(t, 1); n != 3 {
		t.Errorf("%d reservations wait, want 3", n)
	}
	c.Store.Heal()
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	if letters := c.letters(t); len(letters) != 0 {
		t.Errorf("an outage parked %d claims", len(letters))
	}
}

func TestConfirm_LostReplyConfirmsOnce(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Store.FailAfter("Confirm", 1)
	c.start(t)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	storetest.CheckPromises(t, c.Store, 1)
}

func TestStop_HandsBackHeldEntries(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Store.FailBefore("Confirm", storetest.Always)
	c.start(t)
	rig.Until(t, "the worker holds the entry", func() bool { return c.Store.Calls("Confirm") > 0 })
	c.stop()
	c.statuses(t, seckill.OrderQueued, nos...)
	c.Store.Heal()
	c.newWorker(func(o *worker.Options) { o.Name = "another" })
	c.start(t)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
}

func TestStop_FinishesTheCurrentTransaction(t *testing.T) {
	c := newFixture(t)
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

// A transaction may take long. A stop waits for the current one only.
func TestStop_WaitsForOneTransactionOnly(t *testing.T) {
	for name, claim := range map[string]func(t *testing.T, c *fixture) (first, rest []seckill.OrderNo){
		"of two products": func(t *testing.T, c *fixture) (first, rest []seckill.OrderNo) {
			p, q := c.Open(t, 1, 10), c.Open(t, 2, 10)
			return c.Buy(t, p, "a"), c.Buy(t, q, "a")
		},
		"of two halves": func(t *testing.T, c *fixture) (first, rest []seckill.OrderNo) {
			p := c.Open(t, 1, 10)
			c.Store.Poison("b") // the batch fails on its data, and is split
			return nil, c.Buy(t, p, "a", "b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFixture(t, func(o *worker.Options) { o.BatchWait = 100 * time.Millisecond })
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

func TestRate_LimitsTheFlow(t *testing.T) {
	const rate, claims = 200, 100 // of this worker
	for sharers := range 3 {
		t.Run(fmt.Sprintf("%d share it", sharers), func(t *testing.T) {
			c := newFixture(t, func(o *worker.Options) { o.RatePerSecond = rate * max(1, sharers) })
			worker.Crew{c.worker}.Share(sharers) // with 0 counted, this worker still counts
			p := c.Open(t, 1, claims)
			for _, buyer := range buyers("b", claims) {
				c.Buy(t, p, buyer)
			}
			started := time.Now()
			c.start(t)
			rig.Until(t, "all claims are settled", func() bool {
				// Count before reading the clock, so that the time is never too
				// short.
				done, most := 0, 0
				for _, n := range c.settled() {
					done, most = done+n, max(most, n)
				}
				if allowed := int(time.Since(started).Seconds()*rate) + most + 1; done > allowed {
					t.Fatalf("%d claims were settled, %d are allowed", done, allowed)
				}
				return done == claims
			})
			if took := time.Since(started); took < (claims-rate/10)*time.Second/rate {
				t.Errorf("%d claims took %s at %d a second", claims, took, rate)
			}
		})
	}
}

// A worker goes on even if very many share a small rate.
func TestRate_ShareIsNeverZero(t *testing.T) {
	c := newFixture(t, func(o *worker.Options) { o.RatePerSecond = 100 })
	worker.Crew{c.worker}.Share(200) // one claim in two seconds
	p := c.Open(t, 1, 10)
	c.Buy(t, p, "a", "b")
	c.start(t)
	rig.Until(t, "one is settled", func() bool { return len(c.settled()) == 1 })
	worker.Crew{c.worker}.Share(1)
	c.Buy(t, p, "c")
	rig.Until(t, "all are settled", func() bool { return len(c.settled()) > 1 })
}

func TestShortStore_RequestsRecoveryAndKeepsTheEntry(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Exec(t, `UPDATE tb_seckill_product SET stock = 1, version = version + 1 WHERE id = 1`)
	c.start(t)
	rig.Until(t, "recovery is requested twice", func() bool { return len(c.troubled()) >= 2 })
	got := c.troubled()[0]
	if got.product != 1 || !errors.Is(got.err, store.ErrShort) {
		t.Errorf("the request was %+v", got)
	}
	if len(c.alerted()) == 0 {
		t.Error("no alert")
	}
	if n := c.Depth(t, 1); n != 2 {
		t.Errorf("%d reservations wait, want 2", n)
	}
	// Entries of another product go on.
	q := c.Open(t, 2, 10)
	others := c.Buy(t, q, "c")
	rig.Until(t, "the other product goes on", func() bool { return c.Depth(t, 2) == 0 })
	c.statuses(t, seckill.OrderPending, others...)
	c.statuses(t, seckill.OrderQueued, nos...)

	c.Exec(t, `UPDATE tb_seckill_product SET stock = 10, version = version + 1 WHERE id = 1`)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	if len(c.letters(t)) != 0 {
		t.Error("a short store cost an attempt")
	}
}

// A held entry is tried repeatedly during its recovery. Its epoch was short,
// and must not count against the next one.
func TestShortStore_CostsOneEpoch(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Exec(t, `UPDATE tb_seckill_product SET stock = 1, version = version + 1 WHERE id = 1`)
	c.start(t)
	rig.Until(t, "recovery is requested twice", func() bool { return len(c.troubled()) >= 2 })
	if !c.Stored(t, 1).Rebuilding {
		t.Fatal("the product is not due for recovery")
	}
	recovered, err := c.Lifecycle.RecoverIfLost(t.Context(), 1)
	rig.Must(t, err)
	if !recovered {
		t.Fatal("the product was not recovered")
	}
	c.waitDrained(t)
	for range c.troubled() { // each request is handled, even if it comes late
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

// A lost journal starts its numbers again. The loss is reported once, every
// product is due for recovery, and then work goes on.
func TestQueueLost_LostWitnessIsReportedOnceAndRecovered(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	old := c.Buy(t, p, "a", "b")
	old = append(old, c.Buy(t, p, "c")...)
	c.start(t)
	c.waitDrained(t)
	c.stop()

	c.LoseJournal(t)
	p, err := c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	nos := c.Buy(t, p, "d")
	c.Store.FailBefore("WitnessLost", 1) // the request must not be skipped
	c.newWorker()
	c.start(t)
	c.waitDrained(t)
	c.stop()
	c.statuses(t, seckill.OrderPending, append(old, nos...)...)
	got := c.troubled()
	if len(got) != 1 || got[0].product != 0 || !errors.Is(got[0].err, queue.ErrLost) {
		t.Errorf("recovery requests were %+v", got)
	}
	if !c.Stored(t, 1).Rebuilding {
		t.Error("the product is not due for recovery")
	}

	// The next start finds nothing lost.
	p, err = c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	c.Buy(t, p, "e")
	c.newWorker()
	c.start(t)
	c.waitDrained(t)
	if got := c.troubled(); len(got) != 1 {
		t.Errorf("the loss was reported again: %+v", got)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// maxBatch records the highest number of claims in one transaction.
type maxBatch struct {
	*storetest.Faulty
	most atomic.Int64
}

func (s *maxBatch) Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	s.most.Store(max(s.most.Load(), int64(len(req.Items))))
	return s.Faulty.Confirm(ctx, req)
}

// Entries that waited for a recovery come back in batches, not all at once.
func TestHold_EntriesComeBackWithinTheBatchBound(t *testing.T) {
	c := newFixture(t)
	measured := &maxBatch{Faulty: c.Store}
	c.store = measured
	c.newWorker(func(o *worker.Options) { o.BatchSize = 4 })
	p := c.Open(t, 1, 40)
	var nos []seckill.OrderNo
	for _, buyer := range buyers("b", 30) {
		nos = append(nos, c.Buy(t, p, buyer)...)
	}
	c.Exec(t, `UPDATE tb_seckill_product SET stock = 0, version = version + 1 WHERE id = 1`)
	c.start(t)
	rig.Until(t, "entries are held and were tried again", func() bool { return c.Store.Calls("Confirm") > 2 })
	c.Exec(t, `UPDATE tb_seckill_product SET stock = 40, version = version + 1 WHERE id = 1`)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	if most := measured.most.Load(); most > 4 {
		t.Errorf("one transaction had %d claims, the bound is 4", most)
	}
}
