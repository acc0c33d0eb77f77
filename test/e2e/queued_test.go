package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

// The workers are slow. An order that they have not written yet is a promised
// order all the same.
func TestQueuedOrder_OperatorAndPaymentKnowIt(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"worker.rate_per_second": "1"})
	openSale(t, e, engine.Product{ID: 1, Stock: 100})
	operator := e.Operator()
	const least = 12 // the worker writes one a second
	bought := 0
	buyOne := func() (b *engine.Buyer, no string) {
		bought++
		b = e.Buyer(fmt.Sprintf("b-%d", bought))
		no, err := claim(t, b, 1, engine.Purchase{Quantity: 1})
		if err != nil {
			t.Fatalf("buy: %v", err)
		}
		return b, no
	}
	for bought < least {
		buyOne()
	}

	var buyer *engine.Buyer
	var no string
	// If the order was queued before and after the requests, it was queued during
	// them.
	eventually(t, "an order waits for as long as it takes to ask", func() bool {
		buyer, no = buyOne()
		told := askWhileQueued(t, e, buyer.Name, no)
		still, err := buyer.Order(t.Context(), no)
		if err != nil && !undecided(err) {
			t.Fatalf("read order: %v", err)
		}
		if err != nil || still.Status != "queued" {
			return false
		}
		told(t)
		return true
	})

	// When the order is written, the callback is no longer busy: the money pays
	// the order.
	order := await(t, buyer, no, "pending")
	pay(t, e, order)
	await(t, buyer, no, "paid")
	payments, err := operator.Payments(t.Context(), no)
	if err != nil || len(payments) != 1 || payments[0].Status != "applied" {
		t.Errorf("payments %+v (%v)", payments, err)
	}
	story, err := operator.Order(t.Context(), no)
	if err != nil || story.Status != "paid" {
		t.Errorf("the operator reads %+v (%v)", story, err)
	}
	balanced(t, e, 1)
}

// askWhileQueued sends all requests about an order. The result checks the
// answers; call it if the order was queued all the time.
func askWhileQueued(t *testing.T, e *engine.Engine, buyer, no string) func(t *testing.T) {
	t.Helper()
	operator := e.Operator()
	read, readErr := operator.Order(t.Context(), no)
	_, cancelErr := operator.Cancel(t.Context(), no)
	_, refundErr := operator.Refund(t.Context(), no)
	found, searchErr := operator.Orders(t.Context(), url.Values{"buyer": {buyer}})
	callback := notify(t, e, engine.SandboxSecret, money{no, "T-" + no, price, ""})
	payments, paymentsErr := operator.Payments(t.Context(), no)
	return func(t *testing.T) {
		t.Helper()
		if readErr != nil || read.Status != "queued" || read.Buyer != buyer {
			t.Errorf("the operator reads %+v (%v)", read, readErr)
		}
		refused(t, "cancel", cancelErr, seckill.CodeWrongState)
		refused(t, "refund", refundErr, seckill.CodeWrongState)
		if searchErr != nil || len(found) != 1 || found[0].OrderNo != no || found[0].Status != "queued" {
			t.Errorf("the operator finds %+v (%v)", found, searchErr)
		}
		if callback.Status != http.StatusServiceUnavailable || callback.Code != seckill.CodeBusy {
			t.Errorf("its money is answered %d %s", callback.Status, callback.Text)
		}
		if paymentsErr != nil || len(payments) > 0 {
			t.Errorf("recorded %+v (%v)", payments, paymentsErr)
		}
	}
}

// The callback changes nothing.
func TestPayment_TradeWithOtherDataIs409(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 1})
	ann := e.Buyer("ann")
	no := buy(t, ann, 1, engine.Purchase{Quantity: 1})
	pay(t, e, api.Order{OrderNo: no, AmountCents: price})
	got := notify(t, e, engine.SandboxSecret, money{no, "T-" + no, price + 1, ""})
	if got.Status != http.StatusConflict || got.Code != seckill.CodeWrongState {
		t.Errorf("the trade with another sum: %d %s", got.Status, got.Text)
	}
	await(t, ann, no, "paid")
	receivedOnce(t, e, money{OrderNo: no, TradeNo: "T-" + no})
}
