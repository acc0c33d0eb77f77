package purchase_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/purchase"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// newShop is a fixture with one direct product.
func newShop(t *testing.T, stock int64, changes ...func(*purchase.Options)) *fixture {
	t.Helper()
	return newFixtureOf(t, stock, []func(*seckill.Product){rig.Strategy(seckill.StrategyDirect)}, changes...)
}

func TestTill_DirectProductIsSoldByStoreOnly(t *testing.T) {
	c := newShop(t, 2)
	first, err := c.Stage.Buy(c.on, purchase.Claim{Buyer: "a", Quantity: 1, Ref: "shop-7"})
	rig.Must(t, err)
	if first.Status != seckill.OrderPending || c.Status(t, first.OrderNo) != seckill.OrderPending {
		t.Errorf("answered %s, the store has %s", first.Status, c.Status(t, first.OrderNo))
	}
	_, err = c.buy("a")
	rig.Refused(t, err, seckill.CodeAlreadyPurchased)
	if refused := err.(*seckill.Error); len(refused.OrderNos) != 1 || refused.OrderNos[0] != first.OrderNo {
		t.Errorf("already_purchased carries %v, want %s", refused.OrderNos, first.OrderNo)
	}
	keyed := purchase.Claim{Buyer: "b", Quantity: 1, Key: "k"}
	second, err := c.Stage.Buy(c.on, keyed)
	rig.Must(t, err)
	again, err := c.Stage.Buy(c.on, keyed)
	rig.Must(t, err)
	if again != second {
		t.Errorf("a repeated key bought %v after %v", again, second)
	}
	if !c.on.SoldOut() {
		t.Error("the sold-out flag is not raised")
	}
	_, err = c.buy("c")
	rig.Refused(t, err, seckill.CodeSoldOut)
	for _, step := range []struct {
		state seckill.SaleState
		want  seckill.Code
	}{{seckill.SalePaused, seckill.CodePaused}, {seckill.SaleEnded, seckill.CodeEnded}} {
		_, err := c.Lifecycle.SetState(t.Context(), 1, step.state, rig.Operator)
		rig.Must(t, err)
		_, err = c.buy("d")
		rig.Refused(t, err, step.want)
	}
	if n := c.Ledger.Calls("Do") + c.Ledger.Calls("Install") + c.Ledger.Calls("SetState"); n != 0 {
		t.Errorf("the ledger was asked %d times", n)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// With several instances, every known buyer passes the sold-out gate to the store. So the
// instances need not remember all buyers.
func TestTill_BuyersOfASharedStoreAreNotRemembered(t *testing.T) {
	for _, shared := range []bool{true, false} {
		c := newShop(t, 1, func(opt *purchase.Options) { opt.SharedStore = shared })
		_, err := c.buy("a")
		rig.Must(t, err)
		if learned := c.memory.MayHoldIn(1, "a"); learned == shared {
			t.Errorf("shared %t: the buyer was learned: %t", shared, learned)
		}
	}
}

func TestTill_BusyIfNotPreheated(t *testing.T) {
	c := newShop(t, 1)
	c.Product(t, 2, 5, rig.Strategy(seckill.StrategyDirect))
	_, err := c.Buy(c.Catalog.Find(2), purchase.Claim{Buyer: "a", Quantity: 1})
	rig.Refused(t, err, seckill.CodeBusy)
}

func TestTill_SellsExactlyTheStockInFewTransactions(t *testing.T) {
	const stock, buyers = 150, 400
	c := newShop(t, stock)
	answers := tally(c.crowd(buyers, "b"))
	if answers[""] != stock || answers[seckill.CodeSoldOut] != buyers-stock {
		t.Errorf("answers are %v", answers)
	}
	if n := len(c.sizes()); n > buyers/4 {
		t.Errorf("%d claims took %d transactions: nothing gathered", buyers, n)
	}
	if p := c.Stored(t, 1); p.Stock != 0 {
		t.Errorf("%d left in stock", p.Stock)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// The store's reply is lost, so the answer is unknown: busy. The repeated claim finds the
// order.
func TestTill_ClaimWithLostReplyIsFoundByKey(t *testing.T) {
	c := newShop(t, 10)
	c.Store.FailAfter("Sell", 1)
	keyed := purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"}
	_, err := c.Buy(c.on, keyed)
	rig.Refused(t, err, seckill.CodeBusy)
	no, err := c.Buy(c.on, keyed)
	rig.Must(t, err)
	if c.Status(t, no) != seckill.OrderPending || c.Stored(t, 1).Stock != 9 {
		t.Errorf("order %s is %s, %d left", no, c.Status(t, no), c.Stored(t, 1).Stock)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

// A key finds its order also after the order has ended; the answer has its status.
func TestTill_RepeatedKeyReturnsOrderStatus(t *testing.T) {
	c := newShop(t, 10)
	keyed := purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"}
	first, err := c.Stage.Buy(c.on, keyed)
	rig.Must(t, err)
	_, err = c.Store.Cancel(t.Context(), first.OrderNo, seckill.ReasonByBuyer, rig.Operator)
	rig.Must(t, err)
	again, err := c.Stage.Buy(c.on, keyed)
	rig.Must(t, err)
	if again.OrderNo != first.OrderNo || again.Status != seckill.OrderCancelled {
		t.Errorf("answered %v after %v was cancelled", again, first)
	}
	storetest.CheckPromises(t, c.Store, 1)
}

func TestTill_BadClaimDoesNotFailTheBatch(t *testing.T) {
	picky := &pickySeller{refuses: "b-7"}
	c := newShop(t, 100, func(o *purchase.Options) { o.Timeout, o.DirectSeller = time.Minute, picky })
	picky.DirectSeller = c.Store
	errs := c.crowd(20, "b")
	for i, err := range errs {
		if want := i == 7; (code(err) == seckill.CodeBusy) != want || !want && err != nil {
			t.Errorf("b-%d was answered %v", i, err)
		}
	}
	storetest.CheckPromises(t, c.Store, 1)
}

func TestTill_StoreOutageIsBusyAndSellsNothing(t *testing.T) {
	c := newShop(t, 100)
	c.Store.FailBefore("Sell", -1)
	if got := tally(c.crowd(50, "a")); got[seckill.CodeBusy] != 50 {
		t.Errorf("answers are %v", got)
	}
	c.Store.Heal()
	if got := tally(c.crowd(50, "a")); got[""] != 50 {
		t.Errorf("answers after the outage are %v", got)
	}
}

func TestTill_FullQueueIsTooHotAndShutAnswersWaiters(t *testing.T) {
	const crowd, queued = 20, 5
	slow := &slowSeller{gate: make(chan struct{})}
	c := newShop(t, 1000, func(o *purchase.Options) {
		o.QueueSize, o.MaxBatch, o.Timeout, o.DirectSeller = queued, 1, time.Minute, slow
	})
	slow.DirectSeller = c.Store
	open := sync.OnceFunc(func() { close(slow.gate) })
	t.Cleanup(open)
	var refused, busy, bought atomic.Int64
	var all sync.WaitGroup
	buy := func(buyer string) {
		switch _, err := c.buy(buyer); code(err) {
		case seckill.CodeTooHot:
			refused.Add(1)
		case seckill.CodeBusy:
			busy.Add(1)
		case "":
			bought.Add(1)
		}
	}
	all.Go(func() { buy("first") })
	rig.Until(t, "the till is at work", func() bool { return slow.called.Load() == 1 })
	for i := range crowd {
		all.Go(func() { buy(fmt.Sprintf("b-%d", i)) })
	}
	rig.Until(t, "the rest is refused", func() bool { return refused.Load() == crowd-queued })
	shut := make(chan struct{})
	go func() { c.Stage.Close(); close(shut) }()
	rig.Until(t, "the stage takes no more", func() bool { _, err := c.buy("late"); return code(err) == seckill.CodeBusy })
	open()
	<-shut
	all.Wait()
	if bought.Load() < 1 || bought.Load()+busy.Load() != 1+queued || refused.Load() != crowd-queued {
		t.Errorf("%d bought, %d busy, %d refused", bought.Load(), busy.Load(), refused.Load())
	}
	rig.Until(t, "the till is gone", func() bool { return !strings.Contains(stacks(), "purchase.(*till)") })
}

// The sold-out flag is cleared when units come back, whoever returns them.
func TestTill_StockChangeClearsSoldOutFlag(t *testing.T) {
	c := newShop(t, 1)
	_, err := c.buy("a")
	rig.Must(t, err)
	_, err = c.Lifecycle.ChangeStock(t.Context(), 1, 1, "more", rig.Operator)
	rig.Must(t, err)
	if c.on.SoldOut() {
		t.Error("the flag stands after units were added")
	}
	_, err = c.buy("b")
	rig.Must(t, err)
	_, err = c.Lifecycle.ChangeStock(t.Context(), 1, -1, "less", rig.Operator)
	rig.Refused(t, err, seckill.CodeBadRequest)
	storetest.CheckPromises(t, c.Store, 1)
}

func TestRetire_ShutsTill(t *testing.T) {
	c := newShop(t, 10)
	_, err := c.buy("a")
	rig.Must(t, err)
	c.Retire(c.on)
	rig.Until(t, "the till is gone", func() bool { return !strings.Contains(stacks(), "purchase.(*till)") })
	_, err = c.buy("b") // the sale was prolonged
	rig.Must(t, err)
}

// pickySeller fails on the data of one buyer.
type pickySeller struct {
	purchase.DirectSeller
	refuses string
}

func (p *pickySeller) Sell(ctx context.Context, req store.SellRequest) (store.SellResult, error) {
	if slices.ContainsFunc(req.Claims, func(c seckill.Claim) bool { return c.Buyer == p.refuses }) {
		return store.SellResult{}, storetest.ErrPoison
	}
	return p.DirectSeller.Sell(ctx, req)
}

// slowSeller blocks until its gate is open.
type slowSeller struct {
	purchase.DirectSeller
	gate   chan struct{}
	called atomic.Int64
}

func (s *slowSeller) Sell(ctx context.Context, req store.SellRequest) (store.SellResult, error) {
	s.called.Add(1)
	<-s.gate
	return s.DirectSeller.Sell(ctx, req)
}
