package worker_test

import (
	"testing"

	"seckill"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// While the store is the seller, open or not, an old entry is written straight
// into the store. If it waited for the opening, the opening would wait for it.
func TestTakeover_OldEntriesAreSettledWithoutTheLedger(t *testing.T) {
	for name, open := range map[string]bool{"open": true, "not open yet": false} {
		t.Run(name, func(t *testing.T) {
			c := newFixture(t)
			p := c.Open(t, 1, 2)
			nos := c.Buy(t, p, "a", "b")
			want := seckill.OrderPending
			if open {
				c.Sell(t, c.TakeOver(t, 1), "c", "d") // no lease kept it closed
				want = seckill.OrderFailed
			} else {
				_, err := c.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
				rig.Must(t, err)
			}
			before := c.Ledger.Calls("Do")
			c.start(t)
			c.waitDrained(t)
			c.stop()
			c.statuses(t, want, nos...)
			if got := c.Ledger.Calls("Do"); got != before {
				t.Errorf("the ledger was called %d times", got-before)
			}
			if alerts := len(c.alerted()); (alerts > 0) != open {
				t.Errorf("%d alerts", alerts)
			}
			storetest.CheckPromises(t, c.Store, 1)
		})
	}
}

// The store has sold another order under the key of a promise. The late entry
// fails as a duplicate.
func TestTakeover_LateEntryWithAUsedKeyFailsAsDuplicate(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 2)
	first := c.Claim(1, "a")
	first.Key = "k"
	c.Reserve(t, p, first)
	again := c.Claim(1, "a")
	again.Key = "k"
	c.SellClaims(t, c.TakeOver(t, 1), again)
	c.start(t)
	c.waitDrained(t)
	o, err := c.Store.Order(t.Context(), first.OrderNo)
	rig.Must(t, err)
	if o.Status != seckill.OrderFailed || o.Reason != seckill.ReasonDuplicate {
		t.Errorf("the late order is %s, %q", o.Status, o.Reason)
	}
	c.statuses(t, seckill.OrderPending, again.OrderNo)
	storetest.CheckPromises(t, c.Store, 1)
}

func TestInHand_TrueFromReceivingToSettling(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	c.Open(t, 2, 10)
	crew := worker.Crew{c.worker}
	if crew.InHand(1) {
		t.Error("claims in hand before any was received")
	}
	gate := c.Store.Block("Confirm")
	nos := c.Buy(t, p, "a", "b")
	c.start(t)
	rig.Until(t, "the worker writes", func() bool { return len(gate.Arrived()) > 0 })
	if !crew.InHand(1) || crew.InHand(2) {
		t.Errorf("claims in hand: %v, of another product: %v", crew.InHand(1), crew.InHand(2))
	}
	gate.Open()
	rig.Until(t, "the claims are settled", func() bool { return !crew.InHand(1) })
	c.statuses(t, seckill.OrderPending, nos...)
}

// A held claim is still in hand. A worker that has left the queue has none.
func TestInHand_TrueWhileHeldAndFalseAfterTheWorkerLeft(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	c.Buy(t, p, "a")
	c.Store.FailBefore("Confirm", storetest.Always)
	c.start(t)
	rig.Until(t, "the worker has met the outage", func() bool { return c.Store.Calls("Confirm") >= 2 })
	crew := worker.Crew{c.worker}
	if !crew.InHand(1) {
		t.Error("no claims in hand while they cannot be written")
	}
	c.stop()
	if crew.InHand(1) {
		t.Error("claims in hand after the worker has left")
	}
}
