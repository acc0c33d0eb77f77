package purchase_test

import (
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/purchase"
	"seckill/internal/sale"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// remembered records the promises of a stage.
type remembered struct {
	mu  sync.Mutex
	nos []seckill.OrderNo
}

func (r *remembered) keep(o *purchase.Options) { o.Promises = r }

// Remember records the order numbers of an entry.
func (r *remembered) Remember(e seckill.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range e.Claims {
		r.nos = append(r.nos, e.Claims[i].OrderNo)
	}
}

func (r *remembered) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.nos)
}

func TestBuy_ProductOfTheStoreGoesToTheTillOnly(t *testing.T) {
	var book remembered
	c := newFixture(t, 3, book.keep)
	keyed := purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"}
	first, err := c.Stage.Buy(c.on, keyed)
	rig.Must(t, err)
	c.ConfirmAll(t)
	c.TakeOver(t, 1)
	before := c.Ledger.Calls("Do")

	again, err := c.Stage.Buy(c.on, keyed)
	rig.Must(t, err)
	if again.OrderNo != first.OrderNo || again.Status != seckill.OrderPending {
		t.Errorf("the key of %s bought %+v", first.OrderNo, again)
	}
	_, err = c.buy("a")
	rig.Refused(t, err, seckill.CodeAlreadyPurchased)
	bought, err := c.Stage.Buy(c.on, purchase.Claim{Buyer: "b", Quantity: 1})
	rig.Must(t, err)
	if bought.Status != seckill.OrderPending || c.Status(t, bought.OrderNo) != seckill.OrderPending {
		t.Errorf("answered %s, the store has %s", bought.Status, c.Status(t, bought.OrderNo))
	}
	_, err = c.buy("c")
	rig.Must(t, err)
	_, err = c.buy("d")
	rig.Refused(t, err, seckill.CodeSoldOut)
	if got := c.Ledger.Calls("Do"); got != before || book.count() != 1 {
		t.Errorf("the ledger was asked %d times, %d promises are remembered", got-before, book.count())
	}
	storetest.CheckPromises(t, c.Store, 1)
}

func TestBuy_BusyUntilTheStoreIsOpen(t *testing.T) {
	c := newFixture(t, 3)
	taken, err := c.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	_, err = c.buy("a")
	rig.Refused(t, err, seckill.CodeBusy)
	if c.Ledger.Calls("Do")+c.Store.Calls("Sell") != 0 {
		t.Error("a claim was asked about while nobody sells")
	}
	opened, err := c.Store.OpenStore(t.Context(), 1, taken.Epoch)
	if err != nil || !opened {
		t.Fatalf("the store has opened: %v, %v", opened, err)
	}
	rig.Must(t, c.Catalog.Refresh(t.Context()))
	_, err = c.buy("a")
	rig.Must(t, err)
}

// A till that has missed the return sells nothing, because the store compares the epoch.
func TestBuy_BusyAtATillThatMissedTheReturn(t *testing.T) {
	c := newFixture(t, 3)
	c.TakeOver(t, 1)
	_, err := c.buy("a")
	rig.Must(t, err)
	deaf := sale.NewCatalog(c.Store) // an instance that gets no notifications
	rig.Must(t, deaf.Refresh(t.Context()))
	_, err = c.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	_, err = c.Buy(deaf.Find(1), purchase.Claim{Buyer: "b", Quantity: 1})
	rig.Refused(t, err, seckill.CodeBusy)
	_, err = c.buy("b") // this instance has been notified
	rig.Must(t, err)
	storetest.CheckPromises(t, c.Store, 1)
}

// The ledger accepts a claim, but the reply arrives after this instance has learned of the
// takeover. The takeover may already rely on all promises of the old epoch being known, so
// the instance makes no further one.
func TestBuy_BusyIfTheEpochMovedBeforeTheReply(t *testing.T) {
	for name, strategy := range map[string]seckill.Strategy{"async": seckill.StrategyAsync, "dualwrite": seckill.StrategyDualWrite} {
		t.Run(name, func(t *testing.T) {
			var book remembered
			c := newFixtureOf(t, 3, []func(*seckill.Product){rig.Strategy(strategy)}, book.keep, func(o *purchase.Options) {
				o.Timeout, o.Lane.CallTimeout = time.Minute, time.Minute
			})
			c.Ledger.Before("Do", func() {
				_, err := c.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
				rig.Must(t, err)
			})
			_, err := c.Buy(c.on, purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"})
			rig.Refused(t, err, seckill.CodeBusy)
			if c.Ledger.Calls("Do") != 1 || c.Depth(t, 1) != 1 {
				t.Fatalf("%d calls, %d entries: the ledger has not promised, the test shows nothing", c.Ledger.Calls("Do"), c.Depth(t, 1))
			}
			if book.count() != 0 {
				t.Error("the promise was remembered")
			}
			// The same claim repeated finds one order, whoever writes it first.
			c.TakeOver(t, 1)
			c.ConfirmAll(t)
			bought, err := c.Stage.Buy(c.on, purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"})
			rig.Must(t, err)
			if bought.Status != seckill.OrderPending || c.Stored(t, 1).Stock != 2 {
				t.Errorf("answered %+v, %d left", bought, c.Stored(t, 1).Stock)
			}
			storetest.CheckPromises(t, c.Store, 1)
		})
	}
}
