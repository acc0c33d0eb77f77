package sale_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"

	"seckill/internal/api"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/internal/recovery"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

const leaseFor = 5 * time.Second

// handing is a rig whose lifecycle has a book of promises, and an instance's part in
// takeovers.
type handing struct {
	*rig.Rig
	*recovery.Book
	hands  *sale.Handover
	inHand map[uint32]bool // by product
}

func newHanding(t *testing.T) *handing {
	t.Helper()
	h := &handing{Rig: rig.New(t), inHand: make(map[uint32]bool)}
	h.Book = recovery.NewBook(recovery.BookOptions{
		Store: h.Store, ExpireAfter: time.Hour, Now: h.Time.Now, Logger: quiet,
		Adopter: &recovery.Adopter{Store: h.Store, Lanes: h.Lanes, Now: h.Time.Now, ExpireAfter: time.Hour},
		Terms:   func(id uint32) *seckill.Product { return h.Catalog.Find(id).Terms() },
		Meter:   noMeter{}, Alerts: &alerts{},
	})
	h.read(h.Queue)
	h.lease(t, "here")
	return h
}

// read makes the lifecycle anew, over another outbox.
func (h *handing) read(outbox queue.Queue) {
	h.Lifecycle = sale.NewLifecycle(sale.LifecycleOptions{
		Store: h.Store, Ledger: h.Ledger, Queue: outbox, Catalog: h.Catalog, Clock: h.Clock, Lanes: h.Lanes, Mover: h.Mover,
		Logger: quiet, Strategies: []seckill.Strategy{seckill.StrategyAsync}, Apart: true, Promises: h.Book,
	})
	h.hands = &sale.Handover{Lifecycle: h.Lifecycle, Instance: "here", InHand: func(product uint32) bool { return h.inHand[product] }}
}

// lease is a sign of life of an instance.
func (h *handing) lease(t *testing.T, instance string, silent ...uint32) {
	t.Helper()
	_, _, err := h.Store.KeepInstance(t.Context(), store.Instance{Name: instance, Silent: silent}, leaseFor)
	rig.Must(t, err)
}

// promised has the ledger sell units, and the instance remember them.
func (h *handing) promised(t *testing.T, p seckill.Product, buyers ...string) []seckill.OrderNo {
	t.Helper()
	entry := seckill.Entry{
		ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, At: h.Time.Now(),
		PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: p.PerUserLimit,
	}
	var nos []seckill.OrderNo
	for _, buyer := range buyers {
		claim := h.Claim(p.ID, buyer)
		entry.Claims, nos = append(entry.Claims, claim), append(nos, claim.OrderNo)
	}
	h.Reserve(t, p, entry.Claims...)
	h.Remember(entry)
	return nos
}

// takenOver has the store sell a product, as soon as this instance has handed over.
func (h *handing) takenOver(t *testing.T, id uint32) {
	t.Helper()
	_, err := h.Lifecycle.TakeOver(t.Context(), id, rig.Operator)
	rig.Must(t, err)
	rig.Must(t, h.hands.Round(t.Context()))
	if !h.Stored(t, id).StoreOpen {
		t.Fatal("the store is not open")
	}
}

// seller is who sells a product, as operators read it.
func seller(t *testing.T, r *rig.Rig, id uint32) string {
	t.Helper()
	s, err := r.Lifecycle.Stats(t.Context(), id)
	rig.Must(t, err)
	return s.Seller
}

// away has the ledger answer nobody.
func away(l *rig.Ledger) {
	for _, method := range []string{"Do", "Heartbeat", "Install", "Open", "Close", "SetState", "Read", "Held"} {
		l.FailBefore(method, -1)
	}
}

func TestTakeOver_StoreSellsAllThatIsLeftAndReturnsIt(t *testing.T) {
	r := rig.New(t)
	old := r.Open(t, 1, 5)
	promised := r.Buy(t, old, "a", "b")
	r.ConfirmAll(t)
	away(r.Ledger)
	p := r.TakeOver(t, 1)
	if p.Seller != seckill.SellerStore || !p.StoreOpen || p.Epoch != old.Epoch+1 {
		t.Fatalf("the product is %+v", p)
	}
	sold := r.Sell(t, p, "c", "d", "e")
	result, err := r.Store.Sell(t.Context(), store.SellRequest{ProductID: 1, Epoch: p.Epoch, Claims: []seckill.Claim{r.Claim(1, "f")}})
	rig.Must(t, err)
	if result.Verdicts[0].Code != ledger.VerdictSoldOut {
		t.Errorf("a sixth unit of five was answered %d", result.Verdicts[0].Code)
	}
	if got := seller(t, r, 1); got != api.SellerStore {
		t.Errorf("the seller is %s", got)
	}

	r.Ledger.Heal()
	_, err = r.Store.Cancel(t.Context(), sold[0], "test", rig.Operator)
	rig.Must(t, err)
	p, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if f := r.Figures(t, live(t, r, 1)); p.Seller != seckill.SellerLedger || p.StoreOpen || f.Available != 1 || f.Marked != 4 {
		t.Errorf("after the return: %+v, ledger %+v", p, f)
	}
	for _, no := range append(promised, sold[1:]...) {
		if got := r.Status(t, no); got != seckill.OrderPending {
			t.Errorf("order %s is %s", no, got)
		}
	}
	storetest.CheckPromises(t, r.Store, 1)
}

// A buyer's limit counts the products of a group together: one seller decides on
// all of them.
func TestTakeOver_LimitGroupTogether(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	r.Open(t, 2, 5, grouped)
	r.Product(t, 3, 5, grouped) // not preheated: nothing is sold of it
	r.Open(t, 4, 5)
	_, err := r.Lifecycle.TakeOver(t.Context(), 2, rig.Operator)
	rig.Must(t, err)
	for id, want := range map[uint32]seckill.Seller{
		1: seckill.SellerStore, 2: seckill.SellerStore, 3: seckill.SellerLedger, 4: seckill.SellerLedger,
	} {
		if got := r.Catalog.Find(id).Terms().Seller; got != want {
			t.Errorf("product %d is sold by the %s", id, got)
		}
	}
}

func TestTakeOver_Repeated(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	p := r.TakeOver(t, 1)
	again, err := r.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if again.Epoch != p.Epoch || !again.StoreOpen {
		t.Errorf("taken over at epoch %d, and again: %+v", p.Epoch, again)
	}
}

func TestTakeOver_Refused(t *testing.T) {
	r := rig.New(t)
	r.Product(t, 1, 5)
	r.Open(t, 2, 5, rig.Strategy(seckill.StrategyDirect))
	r.Open(t, 3, 5)
	_, err := r.Lifecycle.SetState(t.Context(), 3, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	for id, why := range map[uint32]string{1: "not preheated", 2: "direct", 3: "ended"} {
		if _, err := r.Lifecycle.TakeOver(t.Context(), id, rig.Operator); seckill.CodeOf(err) != seckill.CodeWrongState {
			t.Errorf("%s: %v", why, err)
		}
	}
	_, err = r.Lifecycle.TakeOver(t.Context(), 9, rig.Operator)
	rig.Refused(t, err, seckill.CodeNotFound)
}

func TestTakeOver_EmbeddedLedgerRefuses(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	embedded := sale.NewLifecycle(sale.LifecycleOptions{Store: r.Store, Catalog: r.Catalog, Logger: slog.New(slog.DiscardHandler)})
	_, err := embedded.TakeOver(t.Context(), 1, rig.Operator)
	rig.Refused(t, err, seckill.CodeWrongState)
	if now := r.Stored(t, 1); now.Epoch != p.Epoch || now.Seller != seckill.SellerLedger {
		t.Errorf("the product is %+v", now)
	}
}

// While the store is the seller no ledger has the units of a change.
func TestChangeStock_WhileTheStoreSells(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	away(r.Ledger)
	p := r.TakeOver(t, 1)
	r.Sell(t, p, "a")
	for id, delta := range map[string]int64{"up": 3, "down": -4} {
		change, err := r.Lifecycle.ChangeStock(t.Context(), 1, delta, id, rig.Operator)
		rig.Must(t, err)
		if change.Status != store.ChangeDone {
			t.Errorf("%s is %s", id, change.Status)
		}
	}
	_, err := r.Lifecycle.ChangeStock(t.Context(), 1, -4, "too many", rig.Operator)
	rig.Refused(t, err, seckill.CodeBadRequest)
	if now := r.Stored(t, 1); now.Stock != 3 || now.Offered != 4 {
		t.Errorf("%d of %d are left", now.Stock, now.Offered)
	}
	r.Ledger.Heal()
	_, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if f := r.Figures(t, live(t, r, 1)); f.Available != 3 || f.Marked != 1 {
		t.Errorf("the ledger has %+v", f)
	}
	storetest.CheckPromises(t, r.Store, 1)
}

// A change that the ledger had not heard of when it was taken over is decided by
// the store.
func TestChangeStock_BegunBeforeATakeover(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	r.Ledger.FailBefore("Do", -1)
	for id, delta := range map[string]int64{"up": 3, "down": -4} {
		change, err := r.Lifecycle.ChangeStock(t.Context(), 1, delta, id, rig.Operator)
		rig.Must(t, err)
		if change.Status != store.ChangeOpen {
			t.Fatalf("%s is %s while the ledger is away", id, change.Status)
		}
	}
	r.TakeOver(t, 1)
	rig.Must(t, r.Lifecycle.FinishStockChanges(t.Context(), 10))
	if now := r.Stored(t, 1); now.Stock != 4 || now.Offered != 4 {
		t.Errorf("%d of %d are left", now.Stock, now.Offered)
	}
	storetest.CheckPromises(t, r.Store, 1)
}

// The outbox of a ledger that answers is written before the store opens, and so
// are the promises that the instance remembers.
func TestHandover_WritesBeforeItAcknowledges(t *testing.T) {
	h := newHanding(t)
	p := h.Open(t, 1, 10)
	queued := h.Buy(t, p, "of a dead instance") // only the outbox has it
	remembered := h.promised(t, p, "a", "b")
	_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if got := seller(t, h.Rig, 1); got != api.SellerMoving {
		t.Errorf("the seller is %s before the handover", got)
	}
	written := false
	gate := h.Store.Block("Acknowledge")
	done := make(chan error, 1)
	go func() { done <- h.hands.Round(context.WithoutCancel(t.Context())) }()
	rig.Until(t, "it acknowledges", func() bool { return len(gate.Arrived()) == 1 })
	written = h.Len() == 0
	for _, no := range append(queued, remembered...) {
		written = written && h.Status(t, no) == seckill.OrderPending
	}
	gate.Open()
	rig.Must(t, <-done)
	if !written {
		t.Error("acknowledged before all promises were written")
	}
	if f := h.Figures(t, p); f.Open {
		t.Error("the old ledger is open")
	}
	if got := h.Catalog.Find(1).Terms(); !got.StoreOpen || got.Stock != 7 {
		t.Errorf("after the handover: %+v", got)
	}
	storetest.CheckPromises(t, h.Store, 1)
}

func TestHandover_WaitsForEmptyHands(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 10)
	_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	h.inHand[1] = true
	rig.Must(t, h.hands.Round(t.Context()))
	if n := h.Store.Calls("Acknowledge"); n != 0 || h.Stored(t, 1).StoreOpen {
		t.Errorf("acknowledged %d times with claims in hand", n)
	}
	h.inHand[1] = false
	rig.Must(t, h.hands.Round(t.Context()))
	if !h.Stored(t, 1).StoreOpen {
		t.Error("the store is not open")
	}
}

func TestHandover_WaitsForAStoreThatIsAway(t *testing.T) {
	h := newHanding(t)
	p := h.Open(t, 1, 10)
	nos := h.promised(t, p, "a")
	_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	h.Ledger.FailBefore("Read", -1) // the book alone has the promise
	h.Store.FailBefore("Confirm", storetest.Always)
	if err := h.hands.Round(t.Context()); err == nil || h.Store.Calls("Acknowledge") != 0 {
		t.Errorf("acknowledged %d times, %v, with a promise that is not written", h.Store.Calls("Acknowledge"), err)
	}
	h.Store.Heal()
	rig.Must(t, h.hands.Round(t.Context()))
	if got := h.Status(t, nos[0]); got != seckill.OrderPending || !h.Stored(t, 1).StoreOpen {
		t.Errorf("the order is %s, the store is open: %v", got, h.Stored(t, 1).StoreOpen)
	}
}

// What a ledger that does not answer has in its outbox is decided when it turns
// up: the sale does not wait for it.
func TestHandover_GoesOnWithoutALedgerThatIsAway(t *testing.T) {
	h := newHanding(t)
	p := h.Open(t, 1, 1)
	old := h.Buy(t, p, "of a dead instance")
	away(h.Ledger)
	_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	rig.Must(t, h.hands.Round(t.Context()))
	taken := h.Stored(t, 1)
	if !taken.StoreOpen || h.Status(t, old[0]) != seckill.OrderQueued {
		t.Fatalf("the product is %+v, the old order %s", taken, h.Status(t, old[0]))
	}
	sold := h.Sell(t, taken, "b")
	h.Ledger.Heal()
	h.ConfirmAll(t)
	if got, late := h.Status(t, sold[0]), h.Status(t, old[0]); got != seckill.OrderPending || late != seckill.OrderFailed {
		t.Errorf("the store's order is %s, the late one %s", got, late)
	}
	storetest.CheckPromises(t, h.Store, 1)
}

// failingQueue fails to read the outbox some times.
type failingQueue struct {
	queue.Queue
	failures int
	partly   bool // it fails behind the entries that it could read
}

func (q *failingQueue) Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error {
	if q.failures == 0 {
		return q.Queue.Unacknowledged(ctx, product, see)
	}
	q.failures--
	var err error
	if q.partly {
		err = q.Queue.Unacknowledged(ctx, product, see)
	}
	return errors.Join(err, errors.New("the connection broke"))
}

func TestHandover_ReadsTheOutboxAgainWhenThatFailed(t *testing.T) {
	for _, c := range []struct {
		failures int
		partly   bool
		silent   bool // the ledger does not answer when it is asked again
		want     seckill.OrderStatus
	}{
		{failures: 2, want: seckill.OrderPending},
		{failures: 1, silent: true, want: seckill.OrderQueued},
		{failures: 100, want: seckill.OrderQueued}, // it cannot be read at all
		{failures: 1, partly: true, silent: true, want: seckill.OrderPending},
	} {
		h := newHanding(t)
		h.read(&failingQueue{Queue: h.Queue, failures: c.failures, partly: c.partly})
		p := h.Open(t, 1, 1)
		old := h.Buy(t, p, "of a dead instance")
		_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
		if c.silent {
			h.Ledger.Before("Close", func() { away(h.Ledger) })
		}
		rig.Must(t, h.hands.Round(t.Context()))
		if got := h.Status(t, old[0]); got != c.want || !h.Stored(t, 1).StoreOpen {
			t.Errorf("%+v: the order is %s, the store is open: %v", c, got, h.Stored(t, 1).StoreOpen)
		}
	}
}

func TestHandover_StoreOpensWhenEveryLeaseHasAcknowledgedOrExpired(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 10)
	h.lease(t, "there")
	_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	rig.Must(t, h.hands.Round(t.Context()))
	rig.Must(t, h.hands.Round(t.Context()))
	if n := h.Store.Calls("Acknowledge"); n != 1 || h.Stored(t, 1).StoreOpen {
		t.Errorf("acknowledged %d times; open without the other: %v", n, h.Stored(t, 1).StoreOpen)
	}
	h.Time.Advance(leaseFor + time.Millisecond)
	h.lease(t, "here")
	rig.Must(t, h.hands.Round(t.Context()))
	if !h.Stored(t, 1).StoreOpen {
		t.Error("the store waits for a dead instance")
	}
}

// A product of a limit group that is preheated while the store sells the others has
// them return, also where nothing returns by itself: one seller decides on all.
func TestPreheat_ReturnsTheLimitGroup(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 5)
	h.takenOver(t, 1)
	h.Sell(t, h.Stored(t, 1), "a")
	h.Product(t, 2, 5, grouped)
	_, err := h.Lifecycle.Preheat(t.Context(), 2, rig.Operator)
	rig.Must(t, err)
	for id := range uint32(2) {
		p := live(t, h.Rig, id+1)
		if p.Seller != seckill.SellerLedger {
			t.Errorf("product %d is sold by the %s", p.ID, p.Seller)
		}
		if v := h.Reserve(t, p, h.Claim(p.ID, "a")); v[0].Code != ledger.VerdictOverLimit {
			t.Errorf("a second unit of the group, of product %d, was answered %d", p.ID, v[0].Code)
		}
	}
}

// As long as a promise of one product is not written, the store cannot tell who
// is at the limit of the group.
func TestHandover_LimitGroupOpensAndReturnsTogether(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 10)
	second := h.Open(t, 2, 10, grouped)
	promised := h.promised(t, second, "a")
	_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	h.inHand[2] = true
	for range 2 {
		rig.Must(t, h.hands.Round(t.Context()))
	}
	if h.Stored(t, 1).StoreOpen || h.Stored(t, 2).StoreOpen {
		t.Error("the store has opened before all of the group was handed over")
	}
	h.inHand[2] = false
	for range 2 {
		rig.Must(t, h.hands.Round(t.Context()))
	}
	first := h.Stored(t, 1)
	if !first.StoreOpen || !h.Stored(t, 2).StoreOpen {
		t.Fatal("the store is not open for all of the group")
	}
	result, err := h.Store.Sell(t.Context(), store.SellRequest{ProductID: 1, Epoch: first.Epoch, Claims: []seckill.Claim{h.Claim(1, "a")}})
	rig.Must(t, err)
	if got := result.Verdicts[0]; got.Code != ledger.VerdictOverLimit || !slices.Equal(got.Held, promised) {
		t.Errorf("a second unit of the group was answered %+v", got)
	}
	_, err = h.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	for id := range uint32(2) {
		if p := live(t, h.Rig, id+1); p.Seller != seckill.SellerLedger {
			t.Errorf("product %d has not returned", id+1)
		}
	}
}

// grouped puts a product into the limit group of product 1.
func grouped(p *seckill.Product) { p.Group = 1 }

// A takeover of another product begins while one is returned: the ledger does not
// sell beside the store, which alone knows what it sells.
func TestRecover_DoesNotOpenWhileTheStoreSellsAnotherProductOfTheGroup(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 5)
	h.Open(t, 2, 5, grouped)
	gate := h.Store.Block("EndRebuild")
	done := make(chan error, 1)
	go func() {
		_, err := h.Lifecycle.Recover(context.WithoutCancel(t.Context()), 1, rig.Operator)
		done <- err
	}()
	rig.Until(t, "the ledger is built", func() bool { return len(gate.Arrived()) == 1 })
	_, err := h.Store.TakeOver(t.Context(), 2, h.Stored(t, 2).Epoch, rig.Operator)
	rig.Must(t, err)
	gate.Open()
	rig.Refused(t, <-done, seckill.CodeBusy)
	if p := h.Stored(t, 1); !p.Rebuilding || h.Figures(t, p).Open {
		t.Errorf("the ledger sells: %+v", p)
	}
	rig.Must(t, h.Catalog.Refresh(t.Context()))
	_, err = h.Lifecycle.RecoverIfLost(t.Context(), 1)
	rig.Must(t, err)
	for id := range uint32(2) {
		if p := live(t, h.Rig, id+1); p.Seller != seckill.SellerLedger {
			t.Errorf("product %d has not returned", id+1)
		}
	}
}

// A second rebuild of the group in the same instance waits, and finds nothing to
// do: it would close what the first one opens.
func TestRecover_OneRebuildOfALimitGroupAtATime(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 5)
	second := h.Open(t, 2, 5, grouped)
	rig.Must(t, h.Store.BeginRebuild(t.Context(), 2, second.Epoch)) // the first rebuild takes it along
	before, gate := h.Store.Calls("OpenEpoch"), h.Store.Block("EndRebuild")
	done := make(chan error, 2)
	go func() {
		_, err := h.Lifecycle.Recover(context.WithoutCancel(t.Context()), 1, rig.Operator)
		done <- err
	}()
	rig.Until(t, "the ledgers are built", func() bool { return len(gate.Arrived()) == 1 })
	looks := h.Store.Calls("Product")
	go func() {
		_, err := h.Lifecycle.RecoverIfLost(context.WithoutCancel(t.Context()), 2)
		done <- err
	}()
	rig.Until(t, "the second rebuild has begun", func() bool { return h.Store.Calls("Product") > looks })
	gate.Open()
	for range 2 {
		rig.Must(t, <-done)
	}
	if n := h.Store.Calls("OpenEpoch") - before; n != 2 {
		t.Errorf("%d epochs were opened for two products", n)
	}
	for id := range uint32(2) {
		live(t, h.Rig, id+1)
	}
}

// What the store has sold of a product that has ended counts against the limit.
func TestRecover_LedgerCountsOrdersOfAnEndedProductOfTheGroup(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 5)
	h.Open(t, 2, 5, grouped)
	_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	for range 2 {
		rig.Must(t, h.hands.Round(t.Context()))
	}
	h.Sell(t, h.Stored(t, 2), "a")
	_, err = h.Lifecycle.SetState(t.Context(), 2, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	_, err = h.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if v := h.Reserve(t, live(t, h.Rig, 1), h.Claim(1, "a")); v[0].Code != ledger.VerdictOverLimit {
		t.Errorf("a second unit of the group was answered %d", v[0].Code)
	}
}

// The products of a limit group return when the store has opened for all of them,
// and those that return are not taken over for the sake of the others.
func TestReturn_WaitsUntilTheLimitGroupIsOpen(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 5)
	h.Open(t, 2, 5, grouped)
	now := time.Now()
	takeovers := &sale.Takeovers{Lifecycle: h.Lifecycle, ReturnAfter: time.Second, Now: func() time.Time { return now }}
	returned := func(want bool) {
		t.Helper()
		for range 2 {
			now = now.Add(time.Minute)
			rig.Must(t, takeovers.Return(t.Context()))
		}
		rig.Must(t, takeovers.Start(t.Context()))
		for id := range uint32(2) {
			if got := h.Stored(t, id+1).Seller == seckill.SellerLedger; got != want {
				t.Errorf("product %d is returned: %v", id+1, got)
			}
		}
	}
	_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	for id := range uint32(2) {
		rig.Must(t, h.Store.Acknowledge(t.Context(), id+1, h.Stored(t, id+1).Epoch, "here"))
	}
	opened, err := h.Store.OpenStore(t.Context(), 2, h.Stored(t, 2).Epoch)
	rig.Must(t, err)
	if !opened {
		t.Fatal("the store is not open")
	}
	rig.Must(t, h.Catalog.Refresh(t.Context()))
	returned(false)
	rig.Must(t, h.hands.Round(t.Context()))
	returned(true)
}

func TestStart_LeavesAProductAloneThatIsBeingRebuilt(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 5)
	p := h.Open(t, 2, 5, grouped)
	takeovers := &sale.Takeovers{Lifecycle: h.Lifecycle, ReturnAfter: time.Minute, Now: h.Time.Now}
	_, err := h.Store.TakeOver(t.Context(), 1, h.Stored(t, 1).Epoch, rig.Operator)
	rig.Must(t, err)
	rig.Must(t, h.Store.BeginRebuild(t.Context(), 2, p.Epoch))
	start := func(what string, want bool) {
		t.Helper()
		rig.Must(t, h.Catalog.Refresh(t.Context()))
		rig.Must(t, takeovers.Start(t.Context()))
		if got := h.Stored(t, 2).Seller == seckill.SellerStore; got != want {
			t.Errorf("%s: taken over: %v", what, got)
		}
	}
	start("a rebuild returns the group", false)
	h.lease(t, "here", 1)
	start("the ledger is silent, so there is no rebuild", true)
}

// A product that has ended is not taken over. What was promised of it counts
// against the limit of the group, so it is written first.
func TestHandover_WritesPromisesOfEndedProductsOfTheGroup(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 5)
	ended := h.Open(t, 2, 5, grouped)
	queued, remembered := h.Buy(t, ended, "a"), h.promised(t, ended, "b")
	_, err := h.Lifecycle.SetState(t.Context(), 2, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	h.takenOver(t, 1)
	for _, no := range append(queued, remembered...) {
		if got := h.Status(t, no); got != seckill.OrderPending {
			t.Errorf("order %s is %s", no, got)
		}
	}
	p := h.Stored(t, 1)
	result, err := h.Store.Sell(t.Context(), store.SellRequest{ProductID: 1, Epoch: p.Epoch, Claims: []seckill.Claim{h.Claim(1, "a"), h.Claim(1, "b")}})
	rig.Must(t, err)
	for _, v := range result.Verdicts {
		if v.Code != ledger.VerdictOverLimit {
			t.Errorf("a second unit of the group was answered %d", v.Code)
		}
	}
}

// A ledger that does not answer costs every product a wait. They wait together.
func TestHandover_ProductsWaitForASilentLedgerTogether(t *testing.T) {
	const products = 40
	h := newHanding(t)
	for id := range uint32(products) {
		h.Open(t, id+1, 5)
		_, err := h.Lifecycle.TakeOver(t.Context(), id+1, rig.Operator)
		rig.Must(t, err)
	}
	before, open := h.Ledger.Calls("Read"), h.Ledger.Block("Read")
	done := make(chan error, 1)
	go func() { done <- h.hands.Round(context.WithoutCancel(t.Context())) }()
	rig.Until(t, "all products ask the ledger", func() bool { return h.Ledger.Calls("Read") == before+products })
	open()
	rig.Must(t, <-done)
	for id := range uint32(products) {
		if !h.Stored(t, id+1).StoreOpen {
			t.Errorf("the store is not open for product %d", id+1)
		}
	}
}

// Only the words of the living count, and all of them.
func TestStart_NeedsTheSilenceOfEveryInstance(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 10, rig.FallBack)
	h.Open(t, 2, 10) // waits for its ledger
	var told alerts
	takeovers := &sale.Takeovers{Lifecycle: h.Lifecycle, After: 5 * time.Second, ReturnAfter: time.Minute, Now: h.Time.Now, Alerts: &told}
	start := func(what string, want bool) {
		t.Helper()
		rig.Must(t, takeovers.Start(t.Context()))
		if got := h.Stored(t, 1).Seller == seckill.SellerStore; got != want {
			t.Errorf("%s: taken over: %v", what, got)
		}
	}
	start("nobody is silent", false)
	h.lease(t, "here", 1, 2)
	h.lease(t, "there", 2)
	start("one instance hears it", false)
	h.Time.Advance(leaseFor + time.Millisecond)
	start("nobody lives", false)
	h.lease(t, "here", 1, 2)
	start("it is silent for all who live", true)
	start("it is taken over already", true)
	if len(told) != 1 || !strings.Contains(told[0].Error(), "for 5s; the store sells what is left of 1, ") {
		t.Errorf("alerts %v", told)
	}
	if p := h.Stored(t, 2); p.Seller != seckill.SellerLedger {
		t.Error("a product that waits for its ledger was taken over")
	}
}

func TestReturn_AfterTheLedgerWasWellForLongEnough(t *testing.T) {
	const after = time.Minute
	h := newHanding(t)
	h.Open(t, 1, 10, rig.FallBack)
	now := time.Now()
	takeovers := &sale.Takeovers{Lifecycle: h.Lifecycle, ReturnAfter: after, Now: func() time.Time { return now }}
	h.takenOver(t, 1)
	look := func(what string, later time.Duration, returned bool) {
		t.Helper()
		now = now.Add(later)
		rig.Must(t, takeovers.Return(t.Context()))
		if got := h.Stored(t, 1).Seller == seckill.SellerLedger; got != returned {
			t.Errorf("%s: returned: %v", what, got)
		}
	}
	look("well for a moment", 0, false)
	look("nearly long enough", after-1, false)
	h.lease(t, "there", 1)
	look("one does not hear it", 1, false)
	h.lease(t, "there")
	look("well again", after, false)
	h.Ledger.FailBefore("Read", 1)
	look("it cannot be read", after, false)
	look("well again", after, false)
	look("nearly long enough again", after-1, false)
	look("long enough", 1, true)
	live(t, h.Rig, 1)
}

func TestReturn_OnlyByAnOperatorIfReturnAfterIsZero(t *testing.T) {
	h := newHanding(t)
	h.Open(t, 1, 10, rig.FallBack)
	h.takenOver(t, 1)
	now := time.Now()
	takeovers := &sale.Takeovers{Lifecycle: h.Lifecycle, Now: func() time.Time { return now }}
	for range 3 {
		rig.Must(t, takeovers.Return(t.Context()))
		now = now.Add(24 * time.Hour)
	}
	if h.Stored(t, 1).Seller != seckill.SellerStore {
		t.Fatal("it returned by itself")
	}
	_, err := h.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	live(t, h.Rig, 1)
}

// A ledger that was frozen when it was taken over, and wakes up, is closed: who
// has not heard of the takeover sells nothing there.
func TestReturn_ClosesTheOldLedger(t *testing.T) {
	h := newHanding(t)
	p := h.Open(t, 1, 10, rig.FallBack)
	away(h.Ledger)
	h.takenOver(t, 1)
	h.Ledger.Heal()
	if !h.Figures(t, p).Open {
		t.Fatal("the old ledger is closed already: the test shows nothing")
	}
	takeovers := &sale.Takeovers{Lifecycle: h.Lifecycle, ReturnAfter: time.Minute, Now: h.Time.Now}
	rig.Must(t, takeovers.Return(t.Context()))
	if h.Figures(t, p).Open {
		t.Error("the old ledger sells")
	}
}

func TestSetState_ClosesTheOlderLedgerDuringATakeover(t *testing.T) {
	h := newHanding(t)
	old := h.Open(t, 1, 5)
	_, err := h.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	// An instance that does not know of the takeover yet sells from the ledger.
	if v := h.Reserve(t, old, h.Claim(1, "before")); v[0].Code != ledger.VerdictAccepted {
		t.Fatalf("before the pause the ledger answers %v", v[0].Code)
	}
	h.Ledger.FailBefore("Close", 1)
	if _, err := h.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator); seckill.CodeOf(err) != seckill.CodeBusy {
		t.Errorf("a pause that the ledger has not heard returns %v", err)
	}
	_, err = h.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
	rig.Must(t, err)
	if h.Figures(t, old).Open {
		t.Error("the sale is paused, and the ledger of the epoch before is open")
	}
	// Once the store sells, nobody uses the ledger: a pause does not need it.
	rig.Must(t, h.hands.Round(t.Context()))
	away(h.Ledger)
	_, err = h.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
	rig.Must(t, err)
}

func TestSilences(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5, rig.FallBack, rig.Shards(2))
	r.Open(t, 2, 5) // waits for its ledger: nobody asks
	r.Open(t, 3, 5)
	r.TakeOver(t, 3)
	r.Product(t, 4, 5, rig.FallBack) // not preheated
	now := time.Now()
	s := sale.NewSilences(r.Catalog, func() time.Time { return now })
	beats := s.Beats()
	if len(beats) != 3 || beats[0].Shard.Product != 1 || beats[1].Shard.Product != 1 || beats[2].Shard.Product != 3 {
		t.Fatalf("asked %+v", beats)
	}
	silent := func(what string, want ...uint32) {
		t.Helper()
		got := s.For(5 * time.Second)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v are silent, want %v", what, got, want)
		}
	}
	const answered, unheard = ledger.OutcomeLost, ledger.Outcome(0) // whatever it says, it answers
	s.Heard(beats, []ledger.Outcome{answered, answered, answered})
	silent("all answer")
	now = now.Add(5 * time.Second)
	silent("nothing was heard since", 1, 3)
	s.Heard(beats, []ledger.Outcome{answered, answered, answered})
	silent("all answer again")
	now = now.Add(5 * time.Second)
	s.Heard(beats, []ledger.Outcome{answered, unheard, answered})
	silent("one shard does not answer", 1)
	s.Heard(beats, nil)
	silent("all fail, one for a moment only", 1)
	now = now.Add(5 * time.Second)
	s.Heard(beats, nil)
	silent("all fail", 1, 3)
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	s.Heard(beats, nil)
	silent("one sale has ended", 3)
}

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Forgotten(int)                  {}
func (noMeter) Reoffered(recovery.Result, int) {}
