package purchase_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/duty"
	"seckill/internal/purchase"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// newShared is a counter of a product with a fallback share.
func newShared(t *testing.T, stock int64, share float64) *counter {
	t.Helper()
	return newCounterOf(t, stock, []func(*seckill.Product){rig.Share(share)}, func(o *purchase.Options) {
		o.Timeout, o.RecogniseWithin = rig.Patience, rig.Patience // a slow machine is no store that is away
		o.Lane.CallTimeout = time.Second
	})
}

// refresh keeps the catalogue fresh, as its loop does, only faster.
func (c *counter) refresh(t *testing.T) {
	t.Helper()
	rig.Must(t, c.Catalog.Refresh(t.Context()))
}

// down lets the ledger answer nothing, and waits until that is noticed.
func (c *counter) down(t *testing.T) {
	t.Helper()
	c.Ledger.FailBefore("Do", -1)
	for i := 0; c.Silent() == 0; i++ {
		if _, err := c.buy(fmt.Sprintf("probe-%d", i)); code(err) != seckill.CodeBusy && err != nil {
			t.Fatalf("answered %v while the ledger goes down", err)
		}
	}
}

func (c *counter) up(t *testing.T) {
	t.Helper()
	c.Ledger.Heal()
	rig.Until(t, "the ledger's return is noticed", func() bool { return c.Silent() == 0 })
}

func TestWhileTheLedgerIsDownItsShareIsSold(t *testing.T) {
	c := newShared(t, 100, 0.1)
	first, err := c.Stage.Buy(c.on, purchase.Claim{Buyer: "early", Quantity: 1})
	rig.Must(t, err)
	if first.Status != seckill.OrderQueued {
		t.Errorf("answered %s by the ledger", first.Status)
	}
	c.ConfirmAll(t)
	c.down(t)
	left := c.Stored(t, 1).ShareLeft // a claim may have been sold as the breaker opened
	if left < 9 {
		t.Fatalf("%d left of a share of 10", left)
	}
	bought, err := c.Stage.Buy(c.on, purchase.Claim{Buyer: "a", Quantity: 1})
	rig.Must(t, err)
	if bought.Status != seckill.OrderPending || c.Status(t, bought.OrderNo) != seckill.OrderPending {
		t.Errorf("answered %s, the store has %s", bought.Status, c.Status(t, bought.OrderNo))
	}
	_, err = c.buy("early")
	rig.Refused(t, err, seckill.CodeAlreadyPurchased) // the store's buyer record decides
	answers := tally(c.crowd(30, "b"))
	if answers[""] != int(left)-1 || answers[seckill.CodeBusy] != 30-int(left)+1 {
		t.Errorf("answers are %v with %d left; nobody may be told sold_out", answers, left-1)
	}
	c.refresh(t)
	_, err = c.buy("late")
	rig.Refused(t, err, seckill.CodeBusy)
	c.up(t)
	bought, err = c.Stage.Buy(c.on, purchase.Claim{Buyer: "late", Quantity: 1})
	rig.Must(t, err)
	if bought.Status != seckill.OrderQueued {
		t.Errorf("answered %s after the ledger's return", bought.Status)
	}
	c.ConfirmAll(t)
	storetest.CheckPromises(t, c.Store, 1)
}

// The ledger has no mark of what the share sold; whoever asks again when it is
// back is answered by the store, which has the order.
func TestWhoBoughtFromTheShareFindsTheOrderWhenTheLedgerIsBack(t *testing.T) {
	c := newShared(t, 100, 0.5)
	c.down(t)
	keyed, plain := purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"}, purchase.Claim{Buyer: "b", Quantity: 1}
	first, err := c.Stage.Buy(c.on, keyed)
	rig.Must(t, err)
	second, err := c.Stage.Buy(c.on, plain)
	rig.Must(t, err)
	c.up(t)
	calls := c.Ledger.Calls("Do")
	again, err := c.Stage.Buy(c.on, keyed)
	rig.Must(t, err)
	if again != first {
		t.Errorf("a repeated key bought %v after %v", again, first)
	}
	_, err = c.Stage.Buy(c.on, plain)
	rig.Refused(t, err, seckill.CodeAlreadyPurchased)
	if refused := err.(*seckill.Error); len(refused.OrderNos) != 1 || refused.OrderNos[0] != second.OrderNo {
		t.Errorf("already_purchased carries %v, want %s", refused.OrderNos, second.OrderNo)
	}
	if got := c.Ledger.Calls("Do"); got != calls {
		t.Errorf("the ledger was asked %d times", got-calls)
	}
	looks := c.Store.Calls("Known")
	bought, err := c.Stage.Buy(c.on, purchase.Claim{Buyer: "c", Quantity: 1, Key: "k"})
	rig.Must(t, err)
	if bought.Status != seckill.OrderQueued || c.Store.Calls("Known") != looks {
		t.Errorf("a stranger was answered %s, after %d looks in the store", bought.Status, c.Store.Calls("Known")-looks)
	}
	_, err = c.Store.Cancel(t.Context(), second.OrderNo, seckill.ReasonByBuyer, rig.Operator)
	rig.Must(t, err)
	bought, err = c.Stage.Buy(c.on, plain) // nothing holds it any more
	rig.Must(t, err)
	if bought.Status != seckill.OrderQueued {
		t.Errorf("answered %s, want the ledger's promise", bought.Status)
	}
	c.ConfirmAll(t)
	storetest.CheckPromises(t, c.Store, 1)
}

// A store that is away, or stands still, keeps nobody from the ledger. What
// that promises to a buyer of the share the worker settles.
func TestAStoreThatCannotTellLeavesTheClaimToTheLedger(t *testing.T) {
	c := newShared(t, 100, 0.5)
	c.memory.Note(1, "a")
	c.memory.Note(1, "b")
	c.Store.FailBefore("Known", 1)
	bought, err := c.Stage.Buy(c.on, purchase.Claim{Buyer: "a", Quantity: 1})
	rig.Must(t, err)
	if bought.Status != seckill.OrderQueued || c.Store.Calls("Known") != 1 {
		t.Errorf("answered %s after %d looks", bought.Status, c.Store.Calls("Known"))
	}
	defer c.Store.Block("Known").Open()
	_, err = c.Stage.Buy(c.on, purchase.Claim{Buyer: "b", Quantity: 1})
	rig.Must(t, err)
}

// The ledger sells out while units of the share are free: they move, and
// nobody is told sold_out before they are sold too.
func TestASoldOutLedgerIsGivenTheShare(t *testing.T) {
	const stock, buyers = 60, 100
	c := newShared(t, stock, 0.5)
	var sold atomic.Int64
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() {
			for {
				_, err := c.buy(fmt.Sprintf("b-%d", i))
				switch code(err) {
				case "":
					sold.Add(1)
					return
				case seckill.CodeSoldOut:
					if n := c.Figures(t, c.Stored(t, 1)); n.Marked != stock {
						t.Errorf("told sold_out with %d of %d units sold", n.Marked, stock)
					}
					return
				case seckill.CodeTooHot, seckill.CodeBusy:
				default:
					t.Errorf("answered %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	p := c.Stored(t, 1)
	if sold.Load() != stock || p.ShareLeft != 0 {
		t.Errorf("%d sold, %d left of the share", sold.Load(), p.ShareLeft)
	}
	c.ConfirmAll(t)
	storetest.CheckPromises(t, c.Store, 1)
}

func TestAReturnedFallbackUnitIsMovedAndSold(t *testing.T) {
	c := newShared(t, 2, 0.5)
	c.down(t)
	c.refresh(t)
	var no seckill.OrderNo
	if c.Stored(t, 1).ShareLeft == 1 {
		var err error
		no, err = c.buy("a")
		rig.Must(t, err)
	} else { // the claim in flight when the ledger went down
		orders, err := c.Store.SearchOrders(t.Context(), store.OrderFilter{ProductID: 1, Limit: 1})
		rig.Must(t, err)
		no = orders[0].OrderNo
	}
	c.up(t)
	_, err := c.buy("b")
	rig.Must(t, err)
	rig.Until(t, "all is sold", func() bool { _, err := c.buy("c"); return code(err) == seckill.CodeSoldOut })
	_, err = c.Store.Cancel(t.Context(), no, seckill.ReasonByBuyer, rig.Operator)
	rig.Must(t, err)
	c.refresh(t)
	rig.Must(t, c.Desk.MoveShares(t.Context()))
	if c.on.SoldOut() {
		t.Error("the flag stands after the unit was moved")
	}
	_, err = c.buy("c")
	rig.Must(t, err)
	c.ConfirmAll(t)
	storetest.CheckPromises(t, c.Store, 1)
}

// The ledger goes and comes, and loses its replies as it goes: what it was
// asked may have happened. Nothing is sold twice, no promise is lost, and in
// the end every unit is sold.
func TestPromisesHoldAcrossTheSwitchInBothDirections(t *testing.T) {
	const stock, buyers = 800, 4
	c := newShared(t, stock, 0.5)
	ctx, cancel := context.WithCancel(t.Context())
	var around sync.WaitGroup
	around.Go(func() { // the catalogue's loop, the worker and the releaser
		releaser := &duty.Releaser{Store: c.Store, Lanes: c.Lanes, OnReleased: func(uint32) { c.on.ClearSoldOut() }, OnTrouble: func(uint32, error) {}}
		for ctx.Err() == nil {
			_ = c.Catalog.Refresh(ctx)
			_ = releaser.Round(ctx) // fails while the ledger is away
			<-time.After(10 * time.Millisecond)
		}
	})
	around.Go(func() {
		if err := c.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	promised := map[seckill.OrderNo]seckill.OrderStatus{}
	answered := func(status seckill.OrderStatus) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, got := range promised {
			if got == status {
				n++
			}
		}
		return n
	}
	var over atomic.Bool // for the crowd: sold out
	var crowd sync.WaitGroup
	for i := range buyers {
		crowd.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				claim := purchase.Claim{Buyer: fmt.Sprintf("b-%d-%d", i, n), Quantity: 1}
				if n%2 == 0 {
					claim.Key = "k" // with a key or without
				}
				for ctx.Err() == nil {
					bought, err := c.Stage.Buy(c.on, claim)
					if err == nil {
						mu.Lock()
						promised[bought.OrderNo] = bought.Status
						mu.Unlock()
					}
					<-time.After(time.Millisecond)
					if code(err) == seckill.CodeSoldOut {
						over.Store(true)
						return
					}
					if code(err) != seckill.CodeBusy && code(err) != seckill.CodeTooHot {
						break
					}
				}
			}
		})
	}
	for range 3 {
		was := answered(seckill.OrderQueued)
		rig.Until(t, "the ledger sells", func() bool { return over.Load() || answered(seckill.OrderQueued) > was+30 })
		was = answered(seckill.OrderPending)
		c.Ledger.FailAfter("Do", -1)
		rig.Until(t, "the share is sold", func() bool { return over.Load() || answered(seckill.OrderPending) > was+30 })
		c.Ledger.Heal()
	}
	crowd.Wait()
	owed := func() int64 {
		due, err := c.Store.ReleasesDue(t.Context(), stock)
		rig.Must(t, err)
		return int64(len(due)) + c.Depth(t, 0)
	}
	for left := owed(); left > 0; { // with patience for each step, of which a slow disk makes many
		were := left
		rig.Until(t, "the rest is settled", func() bool { left = owed(); return left < were })
	}
	cancel()
	around.Wait()
	if queued, pending := answered(seckill.OrderQueued), answered(seckill.OrderPending); queued == 0 || pending == 0 {
		t.Errorf("%d queued, %d pending: the switch was not tried", queued, pending)
	}
	for no := range promised {
		if c.Status(t, no) == seckill.OrderQueued {
			t.Errorf("%s was promised and is nowhere", no)
		}
	}
	p := c.Stored(t, 1)
	f := c.Figures(t, p)
	if f.Available != p.Stock-p.ShareLeft { // late orders of the ledger may have been released after the last claim
		t.Errorf("the ledger has %d free, the store %d and a share of %d", f.Available, p.Stock, p.ShareLeft)
	}
	storetest.CheckPromises(t, c.Store, 1)
}
