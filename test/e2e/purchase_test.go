package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"

	"seckill/test/engine"
)

// A purchase from the first request to the refund.
func TestPurchase_IsPaidOnThePayPageAndRefundedOnce(t *testing.T) {
	t.Parallel()
	overSome(t, purchaseIsPaidOnThePayPageAndRefundedOnce)
}

func purchaseIsPaidOnThePayPageAndRefundedOnce(t *testing.T, w way) {
	e := w.start(t, map[string]string{"worker.batch_wait": "4s"}) // long enough to read the queued order, on a busy machine
	openSale(t, e, w.product(engine.Product{ID: 1, Name: "Phone", Stock: 1}))
	ann, bob, operator := e.Buyer("ann"), e.Buyer("bob"), e.Operator()

	no, err := claim(t, ann, 1, engine.Purchase{Quantity: 1, Ref: "cart-7"})
	if err != nil {
		t.Fatal(err)
	}
	if w.leavesToTheWorker() {
		canOnlyBeRead(t, ann, no) // the worker waits to fill its batch
	}
	order := await(t, ann, no, "pending")
	if left := time.Until(order.PayBefore.Time()); left < 29*time.Minute || left > 30*time.Minute {
		t.Errorf("%s left to pay", left)
	}
	if order.Ref != "cart-7" || order.ProductName != "Phone" || order.Quantity != 1 || order.Currency != "CNY" {
		t.Errorf("order %+v", order)
	}
	pressPay(t, e, ann, no)
	await(t, ann, no, "paid")
	_, err = ann.Cancel(t.Context(), no)
	refused(t, "cancel a paid order", err, seckill.CodeWrongState)
	_, err = ann.BeginPayment(t.Context(), no)
	refused(t, "pay a paid order", err, seckill.CodeWrongState)
	_, err = claim(t, bob, 1, engine.Purchase{Quantity: 1})
	refused(t, "buy a sold unit", err, seckill.CodeSoldOut)

	if _, err := operator.Refund(t.Context(), no); err != nil {
		t.Fatal(err)
	}
	_, err = operator.Refund(t.Context(), no)
	refused(t, "refund twice", err, seckill.CodeWrongState)
	await(t, ann, no, "refunded")
	refundedOnce(t, e, no, price, "operator")
	buyAsSoonAsFree(t, bob, 1)
	balanced(t, e, 1)
}

// canOnlyBeRead checks that a queued order can be read, but not paid or
// cancelled.
func canOnlyBeRead(t *testing.T, b *engine.Buyer, no string) {
	t.Helper()
	order, err := b.Order(t.Context(), no)
	if err != nil || order.Status != "queued" || !order.PayBefore.Time().IsZero() || order.AmountCents != price {
		t.Fatalf("a queued order: %+v (%v)", order, err)
	}
	_, err = b.BeginPayment(t.Context(), no)
	refused(t, "pay a queued order", err, seckill.CodeWrongState)
	_, err = b.Cancel(t.Context(), no)
	refused(t, "cancel a queued order", err, seckill.CodeWrongState)
}

// pressPay opens the pay page and presses its button twice.
func pressPay(t *testing.T, e *engine.Engine, b *engine.Buyer, no string) {
	t.Helper()
	payURL, err := b.BeginPayment(t.Context(), no)
	if err != nil || !strings.HasPrefix(payURL, e.ShopURL+"/sandbox/pay?") {
		t.Fatalf("pay URL %q (%v)", payURL, err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if page := sendBy(t, client, http.MethodGet, payURL, nil, ""); !strings.Contains(page.Text, `<form method="post">`) {
		t.Fatalf("the page has no button: %d %s", page.Status, page.Text)
	}
	for range 2 {
		pressed := sendBy(t, client, http.MethodPost, payURL, nil, "")
		if pressed.Status != http.StatusSeeOther || !strings.Contains(pressed.Header.Get("Location"), "/#/orders/"+no+"?link=") {
			t.Fatalf("press the button: %d %s", pressed.Status, pressed.Text)
		}
	}
}

// buyAsSoonAsFree buys a unit that was returned. The bound is one second, the
// lifetime of the sold-out flag (I7), and some time for a busy machine.
func buyAsSoonAsFree(t *testing.T, b *engine.Buyer, product uint32) string {
	t.Helper()
	var no string
	within(t, 3*time.Second, "a returned unit can be bought", func() bool {
		var err error
		no, err = b.Buy(t.Context(), product, engine.Purchase{Quantity: 1})
		return err == nil
	})
	await(t, b, no, "pending")
	return no
}

// refundedOnce waits until an order is refunded, and checks that there is one
// refund.
func refundedOnce(t *testing.T, e *engine.Engine, no string, cents int64, reason string) {
	t.Helper()
	var refunds []api.Payment
	eventually(t, "the money of "+no+" went back", func() bool {
		refunds = nil
		payments, err := e.Operator().Payments(t.Context(), no)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range payments {
			if p.Type == "refund" && p.Reason == reason {
				refunds = append(refunds, p)
			}
		}
		return len(refunds) > 0 && refunds[0].Status == "done"
	})
	if len(refunds) != 1 || refunds[0].AmountCents != cents || refunds[0].PaymentID == "" {
		t.Errorf("refunds of %s: %+v", no, refunds)
	}
}

func TestPurchase_ExpiryReturnsUnitAndLimit(t *testing.T) {
	t.Parallel()
	overEach(t, purchaseExpiryReturnsUnitAndLimit)
}

func purchaseExpiryReturnsUnitAndLimit(t *testing.T, w way) {
	e := w.start(t, map[string]string{"order.expire_after": "1s"})
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 1}))
	ann := e.Buyer("ann")
	no := buy(t, ann, 1, engine.Purchase{Quantity: 1})
	order := await(t, ann, no, "cancelled")
	if order.Reason != "expired" {
		t.Errorf("reason %q", order.Reason)
	}
	if early := time.Until(order.PayBefore.Time()); early > 0 {
		t.Errorf("expired %s early", early)
	}
	second := buyAsSoonAsFree(t, ann, 1)
	if second == no {
		t.Error("the old order came back")
	}
	// Money for the expired order is late, although another buyer has the unit
	// now.
	pay(t, e, order)
	refundedOnce(t, e, no, price, "late")
	await(t, ann, second, "cancelled")
	settled(t, e, 1, "the stock is whole again", func(f api.Stats) bool {
		return free(f) == 1 && reserved(f) == 0 && f.Store.Stock == 1 && f.Store.Cancelled == 2
	})
	balanced(t, e, 1)
}

func TestPurchase_CancelReturnsUnitsAndLimitOnce(t *testing.T) {
	t.Parallel()
	overEach(t, purchaseCancelReturnsUnitsAndLimitOnce)
}

func purchaseCancelReturnsUnitsAndLimitOnce(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 3, PerUserLimit: 3}))
	ann := e.Buyer("ann")
	no := buy(t, ann, 1, engine.Purchase{Quantity: 3})
	order, err := ann.Cancel(t.Context(), no)
	if err != nil || order.Status != "cancelled" || order.Reason != "by_buyer" {
		t.Fatalf("cancel: %+v (%v)", order, err)
	}
	_, err = ann.Cancel(t.Context(), no)
	refused(t, "cancel twice", err, seckill.CodeWrongState)
	settled(t, e, 1, "all units are back", func(f api.Stats) bool {
		return free(f) == 3 && reserved(f) == 0 && f.Store.Stock == 3
	})
	buy(t, ann, 1, engine.Purchase{Quantity: 3})
	balanced(t, e, 1)
}

func TestPurchase_ReturnedUnitIsSoldWithinASecond(t *testing.T) {
	t.Parallel()
	overEach(t, purchaseReturnedUnitIsSoldWithinASecond)
}

func purchaseReturnedUnitIsSoldWithinASecond(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 1}))
	ann, bob := e.Buyer("ann"), e.Buyer("bob")
	no := buy(t, ann, 1, engine.Purchase{Quantity: 1})
	_, err := claim(t, bob, 1, engine.Purchase{Quantity: 1})
	refused(t, "buy a sold unit", err, seckill.CodeSoldOut)
	if got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/products/1", nil, ""); member(t, got.Text, "status") != "sold_out" {
		t.Errorf("the product says %s", got.Text)
	}
	cancelled(t, ann, no)
	buyAsSoonAsFree(t, bob, 1)
	balanced(t, e, 1)
}
