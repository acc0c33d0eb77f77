package worker_test

import (
	"testing"

	"seckill"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// An old entry is written straight into the store while that is the seller, open
// or not: to wait for the opening would wait for itself.
func TestWorker_SettlesOldEntriesWithoutTheLedgerWhileTheStoreIsTheSeller(t *testing.T) {
	for name, open := range map[string]bool{"open": true, "not open yet": false} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t)
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
			c.drained(t)
			c.stop()
			c.statuses(t, want, nos...)
			if got := c.Ledger.Calls("Do"); got != before {
				t.Errorf("the ledger was asked %d times", got-before)
			}
			if alerts := len(c.alerted()); (alerts > 0) != open {
				t.Errorf("%d alerts", alerts)
			}
			storetest.CheckPromises(t, c.Store, 1)
		})
	}
}

// The key of a promise was bought again in the store: it has one order there, and
// the late number fails as a duplicate.
func TestWorker_LateEntryUnderAKeyThatTheStoreSoldFailsAsDuplicate(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 2)
	first := c.Claim(1, "a")
	first.Key = "k"
	c.Reserve(t, p, first)
	again := c.Claim(1, "a")
	again.Key = "k"
	c.SellClaims(t, c.TakeOver(t, 1), again)
	c.start(t)
	c.drained(t)
	o, err := c.Store.Order(t.Context(), first.OrderNo)
	rig.Must(t, err)
	if o.Status != seckill.OrderFailed || o.Reason != seckill.ReasonDuplicate {
		t.Errorf("the late order is %s, %q", o.Status, o.Reason)
	}
	c.statuses(t, seckill.OrderPending, again.OrderNo)
	storetest.CheckPromises(t, c.Store, 1)
}

func TestInHand_FromReceivingToSettling(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	c.Open(t, 2, 10)
	crew := worker.Crew{c.worker}
	if crew.InHand(1) {
		t.Error("in hand before anything was received")
	}
	gate := c.Store.Block("Confirm")
	nos := c.Buy(t, p, "a", "b")
	c.start(t)
	rig.Until(t, "the worker writes", func() bool { return len(gate.Arrived()) > 0 })
	if !crew.InHand(1) || crew.InHand(2) {
		t.Errorf("in hand: %v, of another product: %v", crew.InHand(1), crew.InHand(2))
	}
	gate.Open()
	rig.Until(t, "it is settled", func() bool { return !crew.InHand(1) })
	c.statuses(t, seckill.OrderPending, nos...)
}

// What a worker holds because it could not be written is still in its hand. One
// that has left the queue holds nothing.
func TestInHand_WhileEntriesAreHeldAndNotAfterTheWorkerLeft(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	c.Buy(t, p, "a")
	c.Store.FailBefore("Confirm", storetest.Always)
	c.start(t)
	rig.Until(t, "the worker has met the outage", func() bool { return c.Store.Calls("Confirm") >= 2 })
	crew := worker.Crew{c.worker}
	if !crew.InHand(1) {
		t.Error("not in hand while it cannot be written")
	}
	c.stop()
	if crew.InHand(1) {
		t.Error("in hand after the worker has left")
	}
}
