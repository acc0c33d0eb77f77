package purchase_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/purchase"
	"seckill/internal/recovery"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// newDual is a fixture with one dualwrite product. The function counts the results of its
// immediate attempts.
func newDual(t *testing.T, stock int64) (*fixture, func(purchase.DualWriteResult) int) {
	t.Helper()
	var mu sync.Mutex
	results := map[purchase.DualWriteResult]int{}
	c := newFixtureOf(t, stock, []func(*seckill.Product){rig.Strategy(seckill.StrategyDualWrite)}, func(o *purchase.Options) {
		o.Reports = reports{dualWrite: func(r purchase.DualWriteResult) {
			mu.Lock()
			defer mu.Unlock()
			results[r]++
		}}
	})
	return c, func(r purchase.DualWriteResult) int {
		mu.Lock()
		defer mu.Unlock()
		return results[r]
	}
}

func TestDualWrite_WritesWithoutTheWorker(t *testing.T) {
	c, results := newDual(t, 1000)
	if got := tally(c.crowd(200, "b")); got[""] != 200 {
		t.Fatalf("answers are %v", got)
	}
	rig.Until(t, "every batch was tried or left", func() bool {
		return results(purchase.DualWriteConfirmed)+results(purchase.DualWriteFailed)+
			results(purchase.DualWriteLate)+results(purchase.DualWriteFull) == len(c.sizes())
	})
	if p := c.Stored(t, 1); p.Stock > 999 { // a loaded machine may leave some to the worker
		t.Errorf("%d of 1000 are in stock: nothing was written at once", p.Stock)
	}
	if c.Depth(t, 1) != 200 {
		t.Errorf("%d wait for the worker: an attempt must acknowledge nothing", c.Depth(t, 1))
	}
	c.ConfirmAll(t) // the worker finds replays
	p := c.Stored(t, 1)
	if f := c.Figures(t, p); p.Stock != 800 || f.Marked != 200 || f.Available != 800 {
		t.Errorf("stock %d, the ledger has %+v", p.Stock, f)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

func TestDualWrite_OutageLeavesBatchesToTheWorker(t *testing.T) {
	c, results := newDual(t, 100)
	c.Store.FailBefore("Confirm", -1)
	no, err := c.Stage.Buy(c.on, purchase.Claim{Buyer: "a", Quantity: 1})
	rig.Must(t, err)
	if no.Status != seckill.OrderQueued {
		t.Errorf("answered %s", no.Status)
	}
	rig.Until(t, "the attempt has failed", func() bool { return results(purchase.DualWriteFailed) == 1 })
	c.Store.Heal()
	c.ConfirmAll(t)
	if c.Status(t, no.OrderNo) != seckill.OrderPending {
		t.Errorf("the order is %s", c.Status(t, no.OrderNo))
	}
}

// The ledger was set back and has promised units again that the store has sold. The
// attempt writes a failed order, and only the attempt can report it.
func TestDualWrite_FailedPromiseIsReported(t *testing.T) {
	told, results := make(chan recovery.FailedPromise, 10), make(chan purchase.DualWriteResult, 10)
	c := newFixtureOf(t, 100, []func(*seckill.Product){rig.Strategy(seckill.StrategyDualWrite)}, func(o *purchase.Options) {
		o.Reports = reports{
			dualWrite: func(r purchase.DualWriteResult) { results <- r },
			notKept: func(failed []recovery.FailedPromise) {
				for _, p := range failed {
					told <- p
				}
			},
		}
	})
	p := c.Stored(t, 1)
	var no seckill.OrderNo
	for i := 0; ; i++ { // on a busy machine the worker may write first, and report
		buyer := fmt.Sprint("b-", i)
		_, err := c.Store.Confirm(t.Context(), store.ConfirmRequest{
			ProductID: 1, ExpireAfter: time.Hour, Items: store.Items(&seckill.Entry{
				ProductID: 1, Group: p.Group, Epoch: p.Epoch, At: c.Time.Now(),
				PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: p.PerUserLimit, Claims: []seckill.Claim{c.Claim(1, buyer)},
			}),
		})
		rig.Must(t, err)
		no, err = c.buy(buyer)
		rig.Must(t, err)
		if result := <-results; result == purchase.DualWriteConfirmed {
			break
		}
	}
	if len(told) != 1 {
		t.Fatalf("told of %d promises, want 1", len(told))
	}
	if p := <-told; p.Claim.OrderNo != no || p.Reason != seckill.ReasonLimit {
		t.Errorf("told of %s (%s), want %s (limit)", p.Claim.OrderNo, p.Reason, no)
	}
	if status := c.Status(t, no); status != seckill.OrderFailed {
		t.Errorf("the order is %s", status)
	}
	c.ConfirmAll(t)
	storetest.CheckPromises(t, c.Store, 1)
}

// The order is written at once, cancelled and released before the worker sees its entry.
// The unit is sold once and returned once.
func TestDualWrite_OrderCancelledBeforeWorkerReturnsUnitOnce(t *testing.T) {
	c, _ := newDual(t, 10)
	no, err := c.buy("a")
	rig.Must(t, err)
	rig.Until(t, "the store has the order", func() bool { return c.Status(t, no) == seckill.OrderPending })
	_, err = c.Store.Cancel(t.Context(), no, seckill.ReasonByBuyer, rig.Operator)
	rig.Must(t, err)
	release := func() {
		t.Helper()
		due, err := c.Store.ReleasesDue(t.Context(), 10)
		rig.Must(t, err)
		for _, r := range due {
			_, err := c.Lanes.Do(t.Context(), ledger.ShardOf(c.on.Terms(), 0), ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: r.OrderNo, Buyer: r.Buyer}}})
			rig.Must(t, err)
		}
		rig.Must(t, c.Store.SettleReleases(t.Context(), due))
	}
	release()
	c.ConfirmAll(t)
	release()
	p := c.Stored(t, 1)
	if f := c.Figures(t, p); p.Stock != 10 || f.Available != 10 || f.Marked != 0 {
		t.Errorf("stock %d, the ledger has %+v", p.Stock, f)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// Immediate attempts, the worker and recoveries run concurrently.
func TestDualWrite_SellsNothingTwiceBesideWorkersAndRecoveries(t *testing.T) {
	const stock = 100_000
	c, results := newDual(t, stock)
	var stop atomic.Bool
	var crowd, worker sync.WaitGroup
	for i := range 8 {
		crowd.Go(func() {
			for n := 0; !stop.Load(); n++ {
				if _, err := c.buy(fmt.Sprintf("b-%d-%d", i, n)); err != nil && code(err) != seckill.CodeBusy {
					t.Errorf("answered %v", err)
					return
				}
			}
		})
	}
	rest := make(chan struct{})
	worker.Go(func() {
		for {
			select {
			case <-rest:
				return
			default:
				c.ConfirmAll(t)
			}
		}
	})
	for range 2 {
		was := results(purchase.DualWriteConfirmed)
		rig.Until(t, "the crowd buys", func() bool { return results(purchase.DualWriteConfirmed) > was+10 })
		_, err := c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
	}
	stop.Store(true)
	crowd.Wait()
	close(rest)
	worker.Wait()
	c.ConfirmAll(t)
	p := c.Stored(t, 1)
	f := c.Figures(t, p)
	if f.Available+f.Marked != stock || f.Available != p.Stock {
		t.Errorf("%d free and %d marked, stock %d", f.Available, f.Marked, p.Stock)
	}
	storetest.CheckPromises(t, c.Store, 1)
}
