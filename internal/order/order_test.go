package order_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/ledger"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// purse is a provider with callbacks that the test sets.
type purse struct {
	notice payment.Notice
	err    error
}

func (p *purse) Name() string { return "purse" }
func (p *purse) Begin(_ context.Context, o *seckill.Order, back string) (payment.Session, error) {
	return payment.Session{PayURL: fmt.Sprintf("pay %d for %s", o.AmountCents(), o.OrderNo) + back}, p.err
}
func (p *purse) Notice(context.Context, http.Header, []byte) (payment.Notice, error) {
	return p.notice, p.err
}
func (p *purse) Refund(context.Context, payment.Refund) error { return nil }
func (p *purse) Acknowledge(error) payment.Acknowledgement    { return payment.Acknowledgement{} }

// fixture is a rig with the orders of its buyers.
type fixture struct {
	*rig.Rig
	*order.Orders
	purse             *purse
	releases, refunds int
	payments          []string
}

// unhurried bounds reads whose time is not tested: a slow disk may use up the
// default time.
const unhurried = time.Minute

// Wake counts the calls for the releaser and the refunder.
func (d *fixture) Wake(duty string) {
	switch duty {
	case background.DutyRelease:
		d.releases++
	case background.DutyRefund:
		d.refunds++
	}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	d := &fixture{Rig: rig.New(t), purse: &purse{}}
	d.Orders = &order.Orders{
		Store: d.Rig.Store, Ledger: d.Rig.Ledger, Queue: d.Rig.Queue, Catalog: d.Rig.Catalog, ReadWithin: unhurried,
		Providers: map[string]payment.Provider{"purse": d.purse, "quiet": d.purse}, PayPages: []string{"purse"},
		Duties:    d,
		OnPayment: func(_ uint32, result string) { d.payments = append(d.payments, result) },
	}
	return d
}

// park turns the claim of a buyer into a letter and acknowledges its entry.
func (d *fixture) park(t *testing.T, dead bool) {
	t.Helper()
	consumer, err := d.Rig.Queue.Consumer(t.Context(), "parker")
	rig.Must(t, err)
	defer consumer.Close(t.Context())
	got, err := consumer.Receive(t.Context(), 1000)
	rig.Must(t, err)
	var parked []store.Parked
	for _, item := range store.Items(&got[0].Entry) {
		parked = append(parked, store.Parked{Item: item, Reason: "bad", Delay: time.Hour})
	}
	_, err = d.Rig.Store.Confirm(t.Context(), store.ConfirmRequest{ProductID: got[0].Entry.ProductID, Park: parked})
	rig.Must(t, err)
	rig.Must(t, consumer.Ack(t.Context(), got[:1], got[0].ID))
	if dead {
		letters, err := d.Rig.Store.Letters(t.Context(), store.LetterFilter{Limit: 10})
		rig.Must(t, err)
		for _, l := range letters {
			rig.Must(t, d.Rig.Store.LetterFailed(t.Context(), l.ID, "bad", -1))
		}
	}
}

func TestFind_FindsAnOrderInEveryState(t *testing.T) {
	for name, story := range map[string]struct {
		tell   func(t *testing.T, d *fixture, no seckill.OrderNo)
		status seckill.OrderStatus
		reason string
	}{
		"in the ledger": {func(*testing.T, *fixture, seckill.OrderNo) {}, seckill.OrderQueued, ""},
		"on the ladder": {func(t *testing.T, d *fixture, _ seckill.OrderNo) { d.park(t, false) }, seckill.OrderQueued, seckill.ReasonRetrying},
		"a dead letter": {func(t *testing.T, d *fixture, _ seckill.OrderNo) { d.park(t, true) }, seckill.OrderQueued, seckill.ReasonDead},
		"in the store":  {func(t *testing.T, d *fixture, _ seckill.OrderNo) { d.ConfirmAll(t) }, seckill.OrderPending, ""},
		"discarded": {func(t *testing.T, d *fixture, no seckill.OrderNo) {
			d.park(t, true)
			letter, err := d.Rig.Store.LetterByOrder(t.Context(), no)
			rig.Must(t, err)
			_, err = d.Discard(t.Context(), letter.ID, rig.Operator)
			rig.Must(t, err)
		}, seckill.OrderFailed, seckill.ReasonDiscarded},
		"cancelled": {func(t *testing.T, d *fixture, no seckill.OrderNo) {
			d.ConfirmAll(t)
			_, err := d.CancelOwn(t.Context(), "bob", no)
			rig.Must(t, err)
		}, seckill.OrderCancelled, seckill.ReasonByBuyer},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			p := d.Open(t, 1, 5)
			claim := d.Claim(1, "bob")
			claim.Ref = "shop-7"
			d.Reserve(t, p, claim)
			story.tell(t, d, claim.OrderNo)
			o, err := d.Find(t.Context(), "bob", claim.OrderNo)
			rig.Must(t, err)
			if o.Status != story.status || o.Reason != story.reason || o.Ref != "shop-7" || o.AmountCents() != 999 ||
				o.ProductName != p.Name || o.Buyer != "bob" || o.CreatedAt.IsZero() {
				t.Errorf("found %+v", o)
			}
			listed, err := d.List(t.Context(), "bob", seckill.OrderNo{}, 10)
			rig.Must(t, err)
			if got := listed.Orders; len(got) != 1 || listed.Partial || got[0].OrderNo != claim.OrderNo || got[0].Status != story.status || got[0].Reason != story.reason {
				t.Errorf("listed %+v", listed)
			}
			_, err = d.Find(t.Context(), "Bob", claim.OrderNo) // another buyer
			rig.Refused(t, err, seckill.CodeNotFound)
			_, err = d.Find(t.Context(), "bob", d.Claim(1, "bob").OrderNo)
			rig.Refused(t, err, seckill.CodeNotFound)
		})
	}
}

func TestFind_BusyWhileAPartDoesNotAnswer(t *testing.T) {
	d := newFixture(t)
	no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	busy := func(what string) {
		t.Helper()
		if _, err := d.Find(t.Context(), "bob", no); seckill.CodeOf(err) != seckill.CodeBusy {
			t.Errorf("%s: find is %v", what, err)
		}
	}
	d.Rig.Ledger.FailBefore("Held", 2)
	busy("the ledger is down")
	_, err := d.List(t.Context(), "bob", seckill.OrderNo{}, 10)
	rig.Refused(t, err, seckill.CodeBusy)
	for _, method := range []string{"Order", "LetterByOrder"} {
		d.Rig.Store.FailBefore(method, 1)
		busy(method + " is down")
	}

	// The ledger was lost. Until it is rebuilt, the state is unknown.
	d.LoseJournal(t)
	d.Orders.Queue, d.Orders.Ledger = d.Rig.Queue, d.Rig.Ledger
	busy("the ledger has lost its marks")
	d.Orders.Keeps = func(*seckill.Product) bool { return false }
	_, err = d.Find(t.Context(), "bob", no)
	rig.Refused(t, err, seckill.CodeNotFound) // long after its sale the ledger is not rebuilt
	d.Orders.Keeps = nil
	rig.Must(t, d.Rig.Store.BeginRebuild(t.Context(), 1, 1))
	rig.Must(t, d.Rig.Catalog.Refresh(t.Context()))
	busy("the ledger is being rebuilt")
}

// A sale was opened a moment ago, and other instances do not know it yet.
func TestFind_BusyForASaleThatThisInstanceDoesNotKnowYet(t *testing.T) {
	d := newFixture(t)
	never := d.Claim(2, "bob").OrderNo
	find := func(no seckill.OrderNo, code seckill.Code) {
		t.Helper()
		_, err := d.Find(t.Context(), "bob", no)
		rig.Refused(t, err, code)
	}
	elsewhere := d.Orders.Catalog
	unheard, unopened := sale.NewCatalog(d.Rig.Store), sale.NewCatalog(d.Rig.Store)
	d.Product(t, 1, 5)
	rig.Must(t, unopened.Refresh(t.Context())) // it knows the product, and does not see that the sale opens
	d.Orders.Catalog = unopened
	find(d.Claim(1, "bob").OrderNo, seckill.CodeNotFound)
	p, err := d.Rig.Lifecycle.Preheat(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	no := d.Rig.Buy(t, p, "bob")[0]
	find(no, seckill.CodeBusy)
	d.Orders.Catalog = unheard
	find(no, seckill.CodeBusy)
	find(never, seckill.CodeNotFound)
	d.Rig.Store.FailBefore("Product", 1)
	find(never, seckill.CodeBusy)
	d.Orders.Catalog = elsewhere
	o, err := d.Find(t.Context(), "bob", no)
	rig.Must(t, err)
	if o.Status != seckill.OrderQueued {
		t.Errorf("found %+v", o)
	}
}

// A recovery timed out before it wrote the queued promises. The promise is only
// in the queue: neither the new epoch nor the store has it.
func TestFind_BusyUntilAPromiseIsAdopted(t *testing.T) {
	d := newFixture(t)
	p := d.Open(t, 1, 5)
	no := d.Rig.Buy(t, p, "bob")[0]
	_, err := d.Rig.Store.OpenEpoch(t.Context(), 1, p.Epoch, 0, rig.Operator, func(seckill.Order) error { return nil })
	rig.Must(t, err)
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: p.Epoch + 1}
	_, err = d.Embedded.Install(t.Context(), ledger.Allotment{Shard: shard, Available: 5, Limit: 1}, func(func(ledger.Mark, error) bool) {})
	rig.Must(t, err)
	rig.Must(t, d.Rig.Store.EndRebuild(t.Context(), 1, p.Epoch+1))
	rig.Must(t, d.Rig.Catalog.Refresh(t.Context()))
	_, err = d.Find(t.Context(), "bob", no)
	rig.Refused(t, err, seckill.CodeBusy)
}

// confirmingStore lets the worker write between two reads.
type confirmingStore struct {
	*storetest.Faulty
	after func()
}

func (s *confirmingStore) SearchOrders(ctx context.Context, f store.OrderFilter) ([]seckill.Order, error) {
	orders, err := s.Faulty.SearchOrders(ctx, f)
	s.after()
	return orders, err
}

func (s *confirmingStore) LetterByOrder(ctx context.Context, no seckill.OrderNo) (store.Letter, error) {
	letter, err := s.Faulty.LetterByOrder(ctx, no)
	s.after()
	return letter, err
}

func TestFind_FindsAnOrderThatIsConfirmedMeanwhile(t *testing.T) {
	for name, find := range map[string]func(d *fixture, no seckill.OrderNo) (seckill.Order, error){
		"find": func(d *fixture, no seckill.OrderNo) (seckill.Order, error) { return d.Find(t.Context(), "bob", no) },
		"list": func(d *fixture, no seckill.OrderNo) (seckill.Order, error) {
			listed, err := d.List(t.Context(), "bob", seckill.OrderNo{}, 10)
			if err != nil || len(listed.Orders) != 1 {
				return seckill.Order{}, fmt.Errorf("%d orders listed, %w", len(listed.Orders), err)
			}
			return listed.Orders[0], nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
			d.Orders.Store = &confirmingStore{Faulty: d.Rig.Store, after: func() { d.ConfirmAll(t) }}
			o, err := find(d, no)
			rig.Must(t, err)
			if o.OrderNo != no {
				t.Errorf("found %+v", o)
			}
		})
	}
}

func TestList_PagesOverStoreAndLedger(t *testing.T) {
	d := newFixture(t)
	var nos []seckill.OrderNo
	for id := range uint32(5) {
		p := d.Open(t, id+1, 5)
		nos = append(nos, d.Rig.Buy(t, p, "bob")...)
		if id == 2 {
			d.ConfirmAll(t)
		}
		d.Time.Advance(time.Millisecond) // order numbers sort by time
	}
	var got []seckill.OrderNo
	for before := (seckill.OrderNo{}); ; before = got[len(got)-1] {
		page, err := d.List(t.Context(), "bob", before, 2)
		rig.Must(t, err)
		if len(page.Orders) == 0 {
			break
		}
		for _, o := range page.Orders {
			got = append(got, o.OrderNo)
		}
	}
	if len(got) != 5 {
		t.Fatalf("%d orders on all pages", len(got))
	}
	for i := range got {
		if got[i] != nos[4-i] {
			t.Errorf("order %d of the list is %s, want %s", i, got[i], nos[4-i])
		}
	}
}

// The order is shown to anyone who has its link, for example on the way back
// from a payment.
func TestShown_HidesTheBuyer(t *testing.T) {
	d := newFixture(t)
	d.BackURL = func(o *seckill.Order) string { return " and back to " + o.Buyer + "'s" }
	no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	_, _, err := d.Shown(t.Context(), no)
	rig.Refused(t, err, seckill.CodeNotFound) // links exist only for orders in the store
	d.ConfirmAll(t)
	shown, buyer, err := d.Shown(t.Context(), no)
	rig.Must(t, err)
	if shown.OrderNo != no || shown.Status != seckill.OrderPending || buyer != "bob" || shown.Buyer != "" || shown.Ref != "" || shown.Key != "" {
		t.Errorf("shown %+v", shown)
	}
	session, err := d.BeginPayment(t.Context(), "bob", no, "purse")
	rig.Must(t, err)
	if !strings.HasSuffix(session.PayURL, " and back to bob's") {
		t.Errorf("the session is %+v", session)
	}
	d.Rig.Store.FailBefore("Order", 1)
	_, _, err = d.Shown(t.Context(), no)
	rig.Refused(t, err, seckill.CodeBusy)
}

func TestBeginPayment_OnlyForPendingOrders(t *testing.T) {
	d := newFixture(t)
	no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	begin := func() error { _, err := d.BeginPayment(t.Context(), "bob", no, "purse"); return err }
	rig.Refused(t, begin(), seckill.CodeWrongState) // queued: try again in a moment
	_, err := d.CancelOwn(t.Context(), "bob", no)
	rig.Refused(t, err, seckill.CodeWrongState)
	d.ConfirmAll(t)
	session, err := d.BeginPayment(t.Context(), "bob", no, "purse")
	rig.Must(t, err)
	if session.PayURL != "pay 999 for "+no.String() {
		t.Errorf("the session is %+v", session)
	}
	_, err = d.BeginPayment(t.Context(), "eve", no, "purse")
	rig.Refused(t, err, seckill.CodeNotFound)
	for _, provider := range []string{"gold", "quiet"} { // unknown; without a pay page
		_, err = d.BeginPayment(t.Context(), "bob", no, provider)
		rig.Refused(t, err, seckill.CodeBadRequest)
	}
	d.purse.err = errors.New("down")
	rig.Refused(t, begin(), seckill.CodeBusy)
	d.purse.err = nil
	_, err = d.CancelOwn(t.Context(), "eve", no)
	rig.Refused(t, err, seckill.CodeNotFound)
	_, err = d.CancelOwn(t.Context(), "bob", no)
	rig.Must(t, err)
	rig.Refused(t, begin(), seckill.CodeWrongState)
	if d.releases != 1 {
		t.Errorf("the releaser was woken %d times", d.releases)
	}
}

func TestNotify_CountsOnceAndRefundsExcess(t *testing.T) {
	d := newFixture(t)
	no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	d.ConfirmAll(t)
	notify := func() (store.PaymentResult, error) { return d.Notify(t.Context(), "purse", nil, nil) }
	for _, c := range []struct {
		err  error
		code seckill.Code
	}{{payment.ErrNotAuthentic, seckill.CodeTokenInvalid}, {payment.ErrMalformed, seckill.CodeBadRequest}, {errors.New("down"), seckill.CodeBusy}} {
		d.purse.err = c.err
		_, err := notify()
		rig.Refused(t, err, c.code)
	}
	_, err := d.Notify(t.Context(), "gold", nil, nil)
	rig.Refused(t, err, seckill.CodeNotFound)
	if d.Status(t, no) != seckill.OrderPending {
		t.Fatal("a refused notice changed the order")
	}

	d.purse.err = nil
	d.purse.notice = payment.Notice{Provider: "purse", TradeNo: "t1", OrderNo: no.String(), AmountCents: 999, Currency: "CNY", PaidAt: d.Time.Now()}
	for i, want := range []store.PaymentResult{store.PaymentPaid, store.PaymentRepeated, store.PaymentExcess} {
		if i == 2 {
			d.purse.notice.TradeNo = "t2"
		}
		got, err := notify()
		rig.Must(t, err)
		if got != want {
			t.Errorf("notice %d did %d, want %d", i, got, want)
		}
	}
	if fmt.Sprint(d.payments) != "[paid repeated excess]" || d.refunds != 1 || d.Status(t, no) != seckill.OrderPaid {
		t.Errorf("payments %v, %d refunds, order %s", d.payments, d.refunds, d.Status(t, no))
	}
	_, err = d.CancelOwn(t.Context(), "bob", no)
	rig.Refused(t, err, seckill.CodeWrongState) // a paid order is never cancelled
	_, err = d.Refund(t.Context(), no, rig.Operator)
	rig.Must(t, err)
	if d.refunds != 2 || d.releases != 1 || d.Status(t, no) != seckill.OrderRefunded {
		t.Errorf("%d refunds, %d releases, order %s", d.refunds, d.releases, d.Status(t, no))
	}
	due, err := d.Rig.Store.RefundsDue(t.Context(), 1)
	rig.Must(t, err)
	rig.Must(t, d.Rig.Store.RefundFailed(t.Context(), due[0].ID, "refused", -1))
	_, err = d.RetryRefund(t.Context(), due[0].ID, rig.Operator)
	rig.Must(t, err)
	if d.refunds != 3 {
		t.Error("the refunder was not woken for the retry")
	}
	storetest.CheckPromises(t, d.Rig.Store, 1)
}

func TestRetry_RestartsALetter(t *testing.T) {
	d := newFixture(t)
	no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	d.park(t, true)
	letter, err := d.Rig.Store.LetterByOrder(t.Context(), no)
	rig.Must(t, err)
	letter, err = d.Retry(t.Context(), letter.ID, rig.Operator)
	rig.Must(t, err)
	if letter.Dead || letter.Attempts != 0 {
		t.Errorf("the letter is %+v", letter)
	}
	_, err = d.Retry(t.Context(), 999, rig.Operator)
	rig.Refused(t, err, seckill.CodeNotFound)
}
