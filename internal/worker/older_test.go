package worker_test

import (
	"errors"
	"slices"
	"testing"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// An operator restores yesterday's store beside today's journal. The ledger
// holds units of orders that no longer exist. The worker alerts, and the units
// are sold.
func TestOlderStore_IsReportedOnceAndRecovered(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 3)
	kept := c.Buy(t, p, "a")[0]
	c.start(t)
	c.waitDrained(t)
	c.stop()
	restore := c.CopyStore(t)
	c.newWorker()
	c.start(t)
	gone := c.Buy(t, p, "b", "c")
	c.waitDrained(t)
	c.stop()
	restore()
	c.store = c.Store

	c.newWorker()
	c.start(t)
	rig.Until(t, "recovery is requested", func() bool { return len(c.troubled()) == 1 })
	c.stop()
	if got := c.alerted(); !slices.Equal(got, []alert.Kind{alert.StoreOlder}) {
		t.Fatalf("alerts: %q", got)
	}
	if got := c.troubled()[0]; got.product != 0 || !errors.Is(got.err, worker.ErrStoreOlder) {
		t.Errorf("trouble: %+v", got)
	}
	recovered, err := c.Lifecycle.RecoverIfLost(t.Context(), 1)
	rig.Must(t, err)
	p = c.Stored(t, 1)
	if f := c.Figures(t, p); !recovered || f.Available != 2 || f.Marked != 1 {
		t.Errorf("recovered %v, with %d free and %d marked units", recovered, f.Available, f.Marked)
	}
	again := c.Buy(t, p, "b", "d")
	c.newWorker()
	c.start(t)
	c.waitDrained(t)
	c.stop()
	c.statuses(t, seckill.OrderPending, append(again, kept)...)
	c.statuses(t, seckill.OrderQueued, gone...)
	if got := c.alerted(); len(got) != 1 {
		t.Errorf("the loss was reported again: %q", got)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// A journal that was set back remembers an older witness. When the store has
// replaced the lost witness, its own is not older than that.
func TestOlderStore_NotReportedForAQueueThatWasSetBack(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 9)
	c.Buy(t, p, "a")
	c.ConfirmAll(t)
	remembered, err := c.Queue.HighestWitness(t.Context())
	rig.Must(t, err)
	c.Exec(t, "UPDATE tb_witness SET seq = seq + 1000") // what the journal had, and lost
	c.start(t)
	rig.Until(t, "recovery is requested", func() bool { return len(c.troubled()) == 1 })
	c.stop()
	if known, err := c.Store.Witness(t.Context()); err != nil || !slices.Equal(known, remembered) {
		t.Errorf("the store's witness is %v, the queue's %v, error %v", known, remembered, err)
	}
	c.newWorker()
	c.start(t)
	c.Buy(t, p, "b")
	c.waitDrained(t)
	if alerts, troubles := c.alerted(), c.troubled(); len(alerts) != 0 || len(troubles) != 1 {
		t.Errorf("alerts %q, troubles %+v", alerts, troubles)
	}
}

// The first process that finds a queue that was set back dies before it has
// finished. The next one finds a store that is as old as the queue, and not
// older.
func TestOlderStore_NotReportedForAHalfHandledLoss(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 9)
	c.Buy(t, p, "a")
	c.ConfirmAll(t)
	c.Exec(t, "UPDATE tb_witness SET seq = seq + 1000") // what the journal had, and lost
	told := 0
	guard := worker.Guard{Queue: c.Queue, Store: c.Store, OnTrouble: func(uint32, error) { told++ }}
	c.Store.FailBefore("Products", 1)
	if _, err := guard.Look(t.Context()); err == nil || told != 1 || !c.Stored(t, 1).Rebuilding {
		t.Fatalf("want a half handled loss: %v, reported %d times", err, told)
	}
	c.start(t)
	c.Buy(t, p, "b")
	c.waitDrained(t)
	if alerts := c.alerted(); len(alerts) != 0 {
		t.Errorf("alerts %q", alerts)
	}
}

// An instance that only sells checks the witness of the store.
func TestGuard_LookFindsAQueueThatWasSetBack(t *testing.T) {
	c := newFixture(t)
	c.Buy(t, c.Open(t, 1, 9), "a")
	c.ConfirmAll(t)
	told := 0
	guard := worker.Guard{Queue: c.Queue, Store: c.Store, OnTrouble: func(uint32, error) { told++ }}
	for round, want := range []bool{false, true, false} {
		if round == 1 {
			c.Exec(t, "UPDATE tb_witness SET seq = seq + 1000")
		}
		lost, err := guard.Look(t.Context())
		if err != nil || lost != want || c.Stored(t, 1).Rebuilding != (round > 0) {
			t.Errorf("round %d: lost %v, rebuilding %v, %v", round, lost, c.Stored(t, 1).Rebuilding, err)
		}
	}
	if told != 1 {
		t.Errorf("reported %d times", told)
	}
	c.Store.FailBefore("Witness", 1)
	if _, err := guard.Look(t.Context()); err == nil {
		t.Error("Look succeeded without the store")
	}
}
