package sale_test

import (
	"testing"
	"time"

	"seckill"
	"seckill/internal/sale"
	"seckill/test/rig"
)

// othersWait is how long other instances are given to write their promises.
const othersWait = 1200 * time.Millisecond

// oneOfSeveral is a rig's lifecycle where other instances may have promised something.
func oneOfSeveral(t *testing.T, r *rig.Rig) *sale.Lifecycle {
	t.Helper()
	return sale.NewLifecycle(sale.LifecycleOptions{
		Store: r.Store, Ledger: r.Ledger, Queue: r.Queue, Catalog: r.Catalog, Clock: r.Clock, Lanes: r.Lanes, Mover: r.Mover, Logger: quiet,
		Strategies: []seckill.Strategy{seckill.StrategyAsync}, Others: true,
	})
}

// requestRebuilds makes products due for recovery, as who notices a loss of the queue does.
func requestRebuilds(t *testing.T, r *rig.Rig, products uint32) {
	t.Helper()
	for id := uint32(1); id <= products; id++ {
		rig.Must(t, r.Store.BeginRebuild(t.Context(), id, 1))
	}
}

// One after the other, products that became due together take one wait.
func TestRecover_ProductsOfOneLossShareTheWait(t *testing.T) {
	t.Parallel()
	const products = 5
	r := rig.New(t)
	for id := uint32(1); id <= products; id++ {
		r.Open(t, id, 5)
	}
	lifecycle := oneOfSeveral(t, r)
	began := time.Now()
	requestRebuilds(t, r, products)
	for id := uint32(1); id <= products; id++ {
		_, err := lifecycle.Recover(t.Context(), id, rig.Operator)
		rig.Must(t, err)
		live(t, r, id)
	}
	if took := time.Since(began); took < othersWait || took > 2*othersWait {
		t.Errorf("%d products took %s", products, took)
	}
}

// A product that another instance still writes promises of is waited for, however
// long ago it became due.
func TestRecover_OrdersAfterASharedMarkAreWaitedFor(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Open(t, 1, 5)
	r.Buy(t, r.Open(t, 2, 5), "late")
	lifecycle := oneOfSeveral(t, r)
	requestRebuilds(t, r, 2)
	first := make(chan error, 1)
	go func() {
		_, err := lifecycle.Recover(t.Context(), 1, rig.Operator)
		first <- err
	}()
	<-time.After(othersWait / 2)
	r.ConfirmAll(t)
	wrote := time.Now()
	rig.Must(t, <-first)
	_, err := lifecycle.Recover(t.Context(), 2, rig.Operator)
	rig.Must(t, err)
	if took := time.Since(wrote); took < othersWait {
		t.Errorf("rebuilt %s after an order was written", took)
	}
}
