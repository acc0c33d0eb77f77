package worker_test

import (
	"errors"
	"testing"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// A journal is lost, and the rebuild of the first product checks the witness
// before. Then a rebuild of every product is requested, once. The workers find no
// loss when they acknowledge again: one loss is one new epoch.
func TestGuard_LossIsOneRecoveryOfEveryProduct(t *testing.T) {
	c := newFixture(t)
	nos := c.Buy(t, c.Open(t, 1, 9), "a")
	nos = append(nos, c.Buy(t, c.Open(t, 2, 9), "a")...)
	c.Product(t, 3, 9) // never preheated
	c.start(t)
	c.waitDrained(t)
	c.stop()
	c.LoseJournal(t)

	guard := worker.Guard{Queue: c.Queue, Store: c.Store, OnTrouble: func(product uint32, _ error) {
		if product != 0 {
			t.Errorf("recovery requested for product %d", product)
		}
	}}
	c.Store.FailAfter("WitnessLost", 1) // the reply is lost, but the change is made
	if _, err := guard.Look(t.Context()); err == nil {
		t.Fatal("the lost reply was not returned as an error")
	}
	for range 2 {
		_, err := guard.Look(t.Context())
		rig.Must(t, err)
	}
	for id, want := range map[uint32]bool{1: true, 2: true, 3: false} {
		if got := c.Stored(t, id).Rebuilding; got != want {
			t.Errorf("product %d is due for recovery: %v", id, got)
		}
	}
	for id := uint32(1); id <= 2; id++ {
		recovered, err := c.Lifecycle.RecoverIfLost(t.Context(), id)
		rig.Must(t, err)
		if !recovered {
			t.Errorf("product %d was not rebuilt", id)
		}
		_, err = guard.Look(t.Context())
		rig.Must(t, err)
		nos = append(nos, c.Buy(t, c.Stored(t, id), "b")...)
	}
	c.newWorker()
	c.start(t)
	c.waitDrained(t)
	c.stop()
	c.statuses(t, seckill.OrderPending, nos...)
	if got := c.troubled(); len(got) != 0 {
		t.Errorf("a worker noticed the loss again: %+v", got)
	}
	for id := uint32(1); id <= 2; id++ {
		if p := c.Stored(t, id); p.Epoch != 2 || p.Rebuilding {
			t.Errorf("product %d has epoch %d, rebuilding %v", id, p.Epoch, p.Rebuilding)
		}
		storetest.CheckPromises(t, c.Store, id)
	}
}

// The operator gets one alert for a loss.
func TestGuard_LossIsReportedOnce(t *testing.T) {
	c := newFixture(t)
	c.Buy(t, c.Open(t, 1, 9), "a")
	c.start(t)
	c.waitDrained(t)
	c.stop()
	c.LoseJournal(t)
	var told []error
	guard := worker.Guard{Queue: c.Queue, Store: c.Store, OnTrouble: func(_ uint32, err error) { told = append(told, err) }}
	c.Store.FailBefore("WitnessLost", 1)
	if _, err := guard.Look(t.Context()); err == nil || c.Stored(t, 1).Rebuilding {
		t.Fatalf("Look without the store: %v", err)
	}
	for range 2 {
		_, err := guard.Look(t.Context())
		rig.Must(t, err)
	}
	if len(told) != 1 || !errors.Is(told[0], queue.ErrLost) || !c.Stored(t, 1).Rebuilding {
		t.Errorf("reported %v, rebuild requested %v", told, c.Stored(t, 1).Rebuilding)
	}
}
