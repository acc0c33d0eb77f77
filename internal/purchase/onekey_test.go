package purchase_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/promise"
	"seckill/internal/purchase"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// instances are two stages over one ledger and one store. The first remembers
// what it promises, as an instance does; neither hears of the other.
type instances struct {
	*counter
	book  *promise.Book
	other *counter
}

func newInstances(t *testing.T) *instances {
	t.Helper()
	i := &instances{other: &counter{memory: sale.NewMemory()}}
	var opt purchase.Options
	i.counter = newCounterOf(t, 100, []func(*seckill.Product){rig.Share(0.5), rig.Limit(3)}, func(o *purchase.Options) {
		o.Timeout, o.Lane.CallTimeout = 5*time.Second, time.Second
		opt = *o
		o.Remember = func(e seckill.Entry) { i.book.Remember(e) }
		o.Promised = func(group uint32, buyer, key string) (seckill.OrderNo, bool) { return i.book.Find(group, buyer, key) }
	})
	i.book = promise.New(promise.Options{
		Store: i.Store, Now: i.Time.Now, Logger: slog.New(slog.DiscardHandler), OnForgotten: func(int) {},
		Terms: func(id uint32) *seckill.Product { return i.Catalog.Find(id).Terms() },
	})
	opt.Note, opt.Learn, opt.MayHaveSold = i.other.memory.Note, i.other.memory.Learn, i.other.memory.MayHaveSold
	catalog := sale.NewCatalog(i.Store, slog.New(slog.DiscardHandler))
	rig.Must(t, catalog.Refresh(t.Context()))
	i.other.Rig, i.other.on = i.Rig, catalog.Find(1)
	i.other.Stage = purchase.New(i.Ledger, i.Clock, opt)
	t.Cleanup(i.other.Stage.Close)
	return i
}

// asks repeats a claim and holds the answer to what is wanted.
func (c *counter) asks(t *testing.T, claim purchase.Claim, want purchase.Bought) {
	t.Helper()
	if got, err := c.Stage.Buy(c.on, claim); err != nil || got != want {
		t.Errorf("a repeated key was answered %v, %v; want %v", got, err, want)
	}
}

// A key that the ledger has promised is not sold once more from the share,
// where the promise is remembered: while it is queued and when it has its row,
// with units left in the share or none, and with the store away too.
func TestAPromisedKeyIsNotSoldAgainFromTheShare(t *testing.T) {
	i := newInstances(t)
	claim := purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"}
	first, err := i.Stage.Buy(i.on, claim)
	rig.Must(t, err)
	i.down(t)
	i.asks(t, claim, first)
	i.Store.FailBefore("Known", 1)
	i.asks(t, claim, first)

	second, err := i.Stage.Buy(i.on, purchase.Claim{Buyer: "a", Quantity: 1, Key: "another"})
	rig.Must(t, err)
	if second.OrderNo == first.OrderNo || second.Status != seckill.OrderPending {
		t.Errorf("another key was answered %v after %v", second, first)
	}
	i.Exec(t, `UPDATE tb_seckill_product SET share_left = 0 WHERE id = 1`)
	i.refresh(t)
	i.asks(t, claim, first)
	_, err = i.Stage.Buy(i.on, purchase.Claim{Buyer: "a", Quantity: 1, Key: "a third"})
	rig.Refused(t, err, seckill.CodeBusy)

	i.ConfirmAll(t)
	i.asks(t, claim, purchase.Bought{OrderNo: first.OrderNo, Status: seckill.OrderPending})
	i.Time.Advance(time.Minute)
	rig.Must(t, i.book.Round(t.Context()))
	if _, found := i.book.Find(1, "a", "k"); found {
		t.Error("a promise that has its row is still remembered")
	}
}

// Of another product of the group nothing is told under the key either: by the
// ledger, by what was remembered of it, and by the store, whose row it is then.
func TestAKeyThatBoughtAnotherProductIsRefusedWhoeverKnowsIt(t *testing.T) {
	i := newInstances(t)
	i.Open(t, 2, 100, rig.Share(0.5), rig.Limit(3), func(p *seckill.Product) { p.Group = 1 })
	claim := purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"}
	first, err := i.Stage.Buy(i.on, claim)
	rig.Must(t, err)
	other := func(who string) {
		t.Helper()
		bought, err := i.Stage.Buy(i.Catalog.Find(2), claim)
		if code(err) != seckill.CodeBadRequest || !strings.Contains(err.Error(), first.OrderNo.String()) {
			t.Errorf("known to %s, the key was answered %v, %v", who, bought, err)
		}
	}
	other("the ledger")
	i.down(t)
	other("the memory")
	i.ConfirmAll(t)
	i.Time.Advance(time.Minute)
	rig.Must(t, i.book.Round(t.Context()))
	other("the store")
	i.asks(t, claim, purchase.Bought{OrderNo: first.OrderNo, Status: seckill.OrderPending})
	if left := i.Stored(t, 2); left.ShareLeft != 50 || left.Stock != 100 {
		t.Errorf("of the other product %d and %d are left", left.ShareLeft, left.Stock)
	}
}

// An instance that cannot know of the promise sells the key from the share. Of
// the two numbers the share's is the order; the ledger's ends as a duplicate,
// and its unit comes back. From the sale on every instance finds the order.
func TestAPromisedKeyThatTheShareSoldElsewhereIsOneOrder(t *testing.T) {
	i := newInstances(t)
	claim := purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"}
	first, err := i.Stage.Buy(i.on, claim)
	rig.Must(t, err)
	i.down(t)
	i.other.down(t)
	second, err := i.other.Stage.Buy(i.other.on, claim)
	rig.Must(t, err)
	if second.OrderNo == first.OrderNo || second.Status != seckill.OrderPending {
		t.Fatalf("answered %v after %v: the share was not tried", second, first)
	}
	both := func() {
		t.Helper()
		i.asks(t, claim, second)
		i.other.asks(t, claim, second)
	}
	both()
	i.Ledger.Heal()
	rig.Until(t, "the ledger's return is noticed", func() bool { return i.Silent()+i.other.Silent() == 0 })
	if i.memory.MayHaveSold(1, "a") {
		t.Fatal("the first instance has heard of the sale")
	}
	both() // the ledger knows the key by the first number
	i.ConfirmAll(t)
	both()
	if got := i.order(t, first.OrderNo); got.Status != seckill.OrderFailed || got.Reason != seckill.ReasonDuplicate {
		t.Errorf("the first number is %s %q", got.Status, got.Reason)
	}
	due, err := i.Store.ReleasesDue(t.Context(), 10)
	rig.Must(t, err)
	if len(due) == 0 || due[len(due)-1].OrderNo != first.OrderNo {
		t.Errorf("releases due are %v, want that of %s", due, first.OrderNo)
	}
	storetest.CheckPromises(t, i.Store, 1)
}

// The last unit of the share was sold elsewhere, to the very claim that is
// repeated here. Nothing of it was heard here, and the ledger, which has nothing
// left, knows nothing of it.
func TestAClaimThatTheShareSoldElsewhereIsNotToldSoldOut(t *testing.T) {
	c := newCounterOf(t, 2, []func(*seckill.Product){rig.Share(0.5)})
	_, err := c.buy("first")
	rig.Must(t, err)
	no := seckill.NewOrderNo(time.Now(), 1, 7)
	_, err = c.Store.Sell(t.Context(), store.SellRequest{
		ProductID: 1, Origin: seckill.OriginFallback, ExpireAfter: time.Hour,
		Claims: []seckill.Claim{{OrderNo: no, Buyer: "last", Quantity: 1, Key: "k"}},
	})
	rig.Must(t, err)

	c.asks(t, purchase.Claim{Buyer: "last", Quantity: 1, Key: "k"}, purchase.Bought{OrderNo: no, Status: seckill.OrderPending})
	if c.memory.MayHaveSold(1, "last") {
		t.Error("the sale was heard of: the test shows nothing")
	}
	late := purchase.Claim{Buyer: "late", Quantity: 1, Key: "k"}
	_, err = c.Buy(c.on, late)
	rig.Refused(t, err, seckill.CodeSoldOut)
	c.Store.FailBefore("Known", 1) // without the store nobody can tell
	_, err = c.Buy(c.on, late)
	rig.Refused(t, err, seckill.CodeBusy)
}

func (c *counter) order(t *testing.T, no seckill.OrderNo) seckill.Order {
	t.Helper()
	order, err := c.Store.Order(t.Context(), no)
	rig.Must(t, err)
	return order
}
