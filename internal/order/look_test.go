package order_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"seckill"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/queue"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// money sets the next notice: an exact payment of an order of the rig's
// products.
func (d *fixture) money(no, trade string) {
	d.purse.notice = payment.Notice{Provider: "purse", TradeNo: trade, OrderNo: no, AmountCents: 999, Currency: "CNY", PaidAt: d.Time.Now()}
}

// checkUnrecorded checks that no money was recorded and no callback ran.
func (d *fixture) checkUnrecorded(t *testing.T) {
	t.Helper()
	recorded, err := d.Rig.Store.Payments(t.Context(), store.PaymentFilter{Limit: 10})
	rig.Must(t, err)
	if len(recorded) > 0 || len(d.payments) > 0 || d.refunds > 0 {
		t.Errorf("recorded %+v, reported %v, %d refunds", recorded, d.payments, d.refunds)
	}
}

// codes are the error codes that the operator and a provider get for an order.
type codes struct{ look, cancel, refund, money seckill.Code }

// ask makes every call for an order that cannot be changed or paid.
func (d *fixture) ask(t *testing.T, no seckill.OrderNo) (codes, seckill.Order) {
	t.Helper()
	found, look := d.Look(t.Context(), no)
	_, cancel := d.Cancel(t.Context(), no, "", rig.Operator)
	_, refund := d.Refund(t.Context(), no, rig.Operator)
	d.money(no.String(), "t-"+no.String())
	_, money := d.Notify(t.Context(), "purse", nil, nil)
	code := func(err error) seckill.Code {
		if err == nil {
			return ""
		}
		return seckill.CodeOf(err)
	}
	return codes{code(look), code(cancel), code(refund), code(money)}, found
}

// The operator and a payment know only the order number. While the order may be
// queued, neither gets not_found.
func TestLook_OrderThatMayBeQueuedIsBusy(t *testing.T) {
	d := newFixture(t)
	p := d.Open(t, 1, 5)
	no := d.Rig.Buy(t, p, "bob")[0]
	never := d.Claim(1, "eve").OrderNo
	unknown := d.Claim(9, "eve").OrderNo
	const busy, missing, early = seckill.CodeBusy, seckill.CodeNotFound, seckill.CodeWrongState
	want := func(what string, no seckill.OrderNo, want codes) {
		t.Helper()
		if got, _ := d.ask(t, no); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	got, waiting := d.ask(t, no)
	if got != (codes{"", early, early, busy}) {
		t.Errorf("a waiting order: %+v", got)
	}
	if waiting.Status != seckill.OrderQueued || waiting.Buyer != "bob" || waiting.OrderNo != no || waiting.AmountCents() != 999 || waiting.ProductName != p.Name {
		t.Errorf("the operator reads what waits as %+v", waiting)
	}
	want("others wait", never, codes{busy, busy, busy, busy})
	searching := d.Orders.Queue
	d.Orders.Queue = unsearchedQueue{searching}
	want("it waits, and the queue cannot be searched", no, codes{busy, busy, busy, busy})
	d.Orders.Queue = searching

	d.park(t, true)
	got, letter := d.ask(t, no)
	if got != (codes{"", early, early, busy}) {
		t.Errorf("a dead letter: %+v", got)
	}
	if letter.Status != seckill.OrderQueued || letter.Reason != "bad" || letter.Buyer != "bob" || letter.OrderNo != no {
		t.Errorf("the operator reads a letter as %+v", letter)
	}
	d.Rig.Buy(t, p, "carl")
	want("a letter, and others wait", no, codes{"", early, early, busy})
	d.checkUnrecorded(t)

	// An impossible order is refused at once, and its money is refunded.
	want("no such product", unknown, codes{missing, missing, missing, ""})
	d.ConfirmAll(t)
	want("nothing waits", never, codes{missing, missing, missing, ""})
	if fmt.Sprint(d.payments) != "[excess excess]" {
		t.Errorf("payments %v", d.payments)
	}
	storetest.CheckPromises(t, d.Rig.Store, 1)
}

// Money that came too early pays when it is sent again.
func TestNotify_MoneyForAQueuedOrderPaysWhenSentAgain(t *testing.T) {
	d := newFixture(t)
	no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	d.money(no.String(), "t1")
	_, err := d.Notify(t.Context(), "purse", nil, nil)
	rig.Refused(t, err, seckill.CodeBusy)
	d.checkUnrecorded(t)
	d.ConfirmAll(t)
	result, err := d.Notify(t.Context(), "purse", nil, nil)
	rig.Must(t, err)
	if result != store.PaymentPaid || d.Status(t, no) != seckill.OrderPaid || d.refunds > 0 {
		t.Errorf("the payment is %s, the order %s, %d refunds", result, d.Status(t, no), d.refunds)
	}
	storetest.CheckPromises(t, d.Rig.Store, 1)
}

// An operator never gets not_found while the ledger or the queue does not
// answer.
func TestLook_BusyWhileTheLedgerDoesNotAnswer(t *testing.T) {
	d := newFixture(t)
	d.Open(t, 1, 5)
	never := d.Claim(1, "eve").OrderNo
	busy := func(what string) {
		t.Helper()
		if got, _ := d.ask(t, never); got != (codes{seckill.CodeBusy, seckill.CodeBusy, seckill.CodeBusy, seckill.CodeBusy}) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	d.Rig.Ledger.FailBefore("Read", -1)
	busy("the ledger is down")
	d.Rig.Ledger.Heal()
	waiting := d.Orders.Queue
	d.Orders.Queue = downQueue{waiting}
	busy("the queue is down")
	d.Orders.Queue = waiting
	for _, method := range []string{"Order", "LetterByOrder"} {
		d.Rig.Store.FailBefore(method, 1)
		_, err := d.Look(t.Context(), never)
		rig.Refused(t, err, seckill.CodeBusy)
		d.money(never.String(), "t1")
		d.Rig.Store.FailBefore(method, 1)
		_, err = d.Notify(t.Context(), "purse", nil, nil)
		rig.Refused(t, err, seckill.CodeBusy)
	}
	elsewhere := d.Orders.Catalog
	d.Orders.Catalog = sale.NewCatalog(d.Rig.Store)
	busy("this instance has not heard of the sale")
	d.Orders.Catalog = elsewhere
	rig.Must(t, d.Rig.Store.BeginRebuild(t.Context(), 1, 1))
	rig.Must(t, d.Rig.Catalog.Refresh(t.Context()))
	busy("the ledger is being rebuilt")
	d.checkUnrecorded(t)
}

// The store decides: an order that is confirmed between two reads is found,
// changed and paid.
func TestLook_FindsAnOrderThatIsConfirmedMeanwhile(t *testing.T) {
	for name, ask := range map[string]func(d *fixture, no seckill.OrderNo) error{
		"look": func(d *fixture, no seckill.OrderNo) error { _, err := d.Look(t.Context(), no); return err },
		"cancel": func(d *fixture, no seckill.OrderNo) error {
			_, err := d.Cancel(t.Context(), no, "", rig.Operator)
			return err
		},
		"money": func(d *fixture, no seckill.OrderNo) error {
			d.money(no.String(), "t1")
			result, err := d.Notify(t.Context(), "purse", nil, nil)
			if err == nil && result != store.PaymentPaid {
				return fmt.Errorf("the money is %s", result)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
			confirmed := false
			d.Orders.Queue = confirmingQueue{d.Rig.Queue, func() {
				if !confirmed {
					confirmed = true
					d.ConfirmAll(t)
				}
			}}
			rig.Must(t, ask(d, no))
		})
	}
}

// For one buyer the operator also finds waiting orders, with the same filters.
func TestSearch_FindsQueuedOrdersOfABuyer(t *testing.T) {
	d := newFixture(t)
	stored := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	d.ConfirmAll(t)
	waiting := d.Claim(2, "bob")
	waiting.Ref = "cart-2"
	d.Reserve(t, d.Open(t, 2, 5), waiting)
	d.Rig.Buy(t, *d.Rig.Catalog.Find(2).Terms(), "eve")
	pending := seckill.OrderPending
	for name, c := range map[string]struct {
		filter store.OrderFilter
		want   []seckill.OrderNo
	}{
		"a buyer":                 {store.OrderFilter{Buyer: "bob"}, []seckill.OrderNo{stored, waiting.OrderNo}},
		"a buyer and a product":   {store.OrderFilter{Buyer: "bob", ProductID: 2}, []seckill.OrderNo{waiting.OrderNo}},
		"a buyer and another one": {store.OrderFilter{Buyer: "bob", ProductID: 1}, []seckill.OrderNo{stored}},
		"a buyer and a reference": {store.OrderFilter{Buyer: "bob", Ref: "cart-2"}, []seckill.OrderNo{waiting.OrderNo}},
		"a buyer and no such one": {store.OrderFilter{Buyer: "bob", Ref: "cart-3"}, nil},
		"a buyer and a status":    {store.OrderFilter{Buyer: "bob", Status: &pending}, []seckill.OrderNo{stored}},
		"a buyer without orders":  {store.OrderFilter{Buyer: "carl"}, nil},
		"everybody":               {store.OrderFilter{}, []seckill.OrderNo{stored}},
	} {
		c.filter.Limit = 10
		found, err := d.Search(t.Context(), c.filter)
		rig.Must(t, err)
		got := make(map[seckill.OrderNo]bool)
		for _, o := range found.Orders {
			got[o.OrderNo] = true
		}
		if len(got) != len(c.want) || found.Partial {
			t.Errorf("%s: found %+v", name, found)
		}
		for _, no := range c.want {
			if !got[no] {
				t.Errorf("%s: %s is missing", name, no)
			}
		}
	}
	d.Rig.Ledger.FailBefore("Held", -1)
	defer d.Rig.Ledger.Heal()
	found, err := d.Search(t.Context(), store.OrderFilter{Buyer: "bob", Limit: 10})
	rig.Must(t, err)
	if len(found.Orders) != 1 || !found.Partial {
		t.Errorf("with the ledger away: %+v", found)
	}
}

// unsearchedQueue fails every search.
type unsearchedQueue struct{ order.Queue }

func (unsearchedQueue) Find(context.Context, uint32, seckill.OrderNo, int) (seckill.Entry, bool, error) {
	return seckill.Entry{}, false, errors.New("down")
}

// downQueue fails every read of statistics.
type downQueue struct{ order.Queue }

func (downQueue) Stats(context.Context, uint32) (queue.Stats, error) {
	return queue.Stats{}, errors.New("down")
}

// confirmingQueue confirms the waiting entries before it answers.
type confirmingQueue struct {
	order.Queue
	before func()
}

func (q confirmingQueue) Stats(ctx context.Context, product uint32) (queue.Stats, error) {
	q.before()
	return q.Queue.Stats(ctx, product)
}
