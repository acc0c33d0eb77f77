package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/api"

	"seckill/test/engine"
)

// I8 from the provider's side. Every callback comes three times.
func TestPayment_ExcessMoneyIsRefundedOnce(t *testing.T) {
	t.Parallel()
	overSome(t, paymentExcessMoneyIsRefundedOnce)
}

func paymentExcessMoneyIsRefundedOnce(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 100, PerUserLimit: 2}))
	const amount = 2 * price
	unknown := unknownNumber(t, e)
	for _, c := range []struct {
		name   string
		before func(t *testing.T, b *engine.Buyer, order api.Order) // runs before the callback
		money  money
		status string // of the order, afterwards
		reason string // of the refund; "" for none
	}{
		{"exact", nil, money{Amount: amount}, "paid", ""},
		{"exact, with its currency", nil, money{Amount: amount, Currency: "CNY"}, "paid", ""},
		{"too little", nil, money{Amount: amount - 1}, "pending", "wrong_amount"},
		{"too much", nil, money{Amount: amount + 1}, "pending", "wrong_amount"},
		{"nothing", nil, money{Amount: 0}, "pending", "wrong_amount"},
		{"another currency", nil, money{Amount: amount, Currency: "USD"}, "pending", "wrong_amount"},
		{"doubled", func(t *testing.T, _ *engine.Buyer, order api.Order) { pay(t, e, order) }, money{Amount: amount}, "paid", "doubled"},
		{"after a cancel", cancelFirst, money{Amount: amount}, "cancelled", "late"},
		{"after a refund", func(t *testing.T, _ *engine.Buyer, order api.Order) {
			pay(t, e, order)
			if _, err := e.Operator().Refund(t.Context(), order.OrderNo); err != nil {
				t.Fatal(err)
			}
		}, money{Amount: amount}, "refunded", "doubled"},
		{"for an order of nobody", nil, money{OrderNo: unknown, Amount: amount}, "pending", "unknown_order"},
		{"for no order number", nil, money{OrderNo: "invoice-4711", Amount: amount}, "pending", "unknown_order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			buyer := e.Buyer(c.name)
			no := buy(t, buyer, 1, engine.Purchase{Quantity: 2})
			order := await(t, buyer, no, "pending")
			if c.before != nil {
				c.before(t, buyer, order)
			}
			if c.money.OrderNo == "" {
				c.money.OrderNo = no
			}
			c.money.TradeNo = "M-" + no
			for range 3 {
				if got := deliver(t, e, c.money); got.Status != http.StatusOK {
					t.Fatalf("callback: %d %s", got.Status, got.Text)
				}
			}
			await(t, buyer, no, c.status)
			if c.reason != "" {
				refundedOnce(t, e, c.money.OrderNo, c.money.Amount, c.reason)
			}
			receivedOnce(t, e, c.money)
		})
	}
	balanced(t, e, 1)
}

func cancelFirst(t *testing.T, b *engine.Buyer, order api.Order) {
	if _, err := b.Cancel(t.Context(), order.OrderNo); err != nil {
		t.Fatal(err)
	}
}

// unknownNumber is the number of an order that does not exist.
func unknownNumber(t *testing.T, e *engine.Engine) string {
	t.Helper()
	no := buy(t, e.Buyer("somebody"), 1, engine.Purchase{Quantity: 1})
	last := byte('0')
	if no[len(no)-1] == last {
		last = '1'
	}
	return no[:len(no)-1] + string(last)
}

// receivedOnce checks that a callback delivered several times is one payment.
func receivedOnce(t *testing.T, e *engine.Engine, m money) {
	t.Helper()
	payments, err := e.Operator().Payments(t.Context(), m.OrderNo)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, p := range payments {
		if p.Type == "payment" && p.TradeNo == m.TradeNo {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d payments of trade %s: %+v", count, m.TradeNo, payments)
	}
}

func TestPayment_UnsignedCallbackIs403AndChangesNothing(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 1})
	ann := e.Buyer("ann")
	no := buy(t, ann, 1, engine.Purchase{Quantity: 1})
	body := `{"order_no":"` + no + `","trade_no":"T-1","amount_cents":100}`
	good := engine.Signature(engine.SandboxSecret, []byte(body))
	before := figures(t, e, 1)
	for name, header := range map[string]http.Header{
		"none":            {},
		"empty":           {"X-Signature": {""}},
		"no hex":          {"X-Signature": {"zz" + good[2:]}},
		"short":           {"X-Signature": {good[:62]}},
		"long":            {"X-Signature": {good + "00"}},
		"another secret":  {"X-Signature": {engine.Signature(engine.JWTSecret, []byte(body))}},
		"of another body": {"X-Signature": {engine.Signature(engine.SandboxSecret, []byte(body+" "))}},
		"twice":           {"X-Signature": {good, good}},
	} {
		got := send(t, e, http.MethodPost, e.ShopURL+"/api/v1/payments/sandbox/notify", header, body)
		if got.Status != http.StatusForbidden || got.Code != "token_invalid" {
			t.Errorf("%s: %d %s", name, got.Status, got.Text)
		}
	}
	unchanged(t, e, 1, before)
	if payments, err := e.Operator().Payments(t.Context(), no); err != nil || len(payments) > 0 {
		t.Errorf("payments %+v (%v)", payments, err)
	}
	await(t, ann, no, "pending")
	settled(t, e, 1, "nothing is paid", func(f api.Stats) bool { return f.Store.Paid == 0 })
}

// If the payment is first, the cancel is refused. If the cancel is first, the
// payment is refunded.
func TestPayment_ConcurrentCancelHasOneOutcome(t *testing.T) {
	t.Parallel()
	overSome(t, paymentConcurrentCancelHasOneOutcome)
}

func paymentConcurrentCancelHasOneOutcome(t *testing.T, w way) {
	e := w.start(t, nil)
	const orders = 10
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: orders}))
	ended := map[string]int{}
	for i := range orders {
		b := e.Buyer(fmt.Sprintf("b-%d", i))
		order := await(t, b, buy(t, b, 1, engine.Purchase{Quantity: 1}), "pending")
		var both sync.WaitGroup
		var cancelled error
		both.Go(func() { _, cancelled = b.Cancel(t.Context(), order.OrderNo) })
		pay(t, e, order)
		both.Wait()
		now, err := b.Order(t.Context(), order.OrderNo)
		if err != nil {
			t.Fatal(err)
		}
		switch ended[now.Status]++; now.Status {
		case "paid":
			refused(t, "cancel a paid order", cancelled, seckill.CodeWrongState)
			refundTogether(t, e, order.OrderNo)
		case "cancelled":
			if cancelled != nil {
				t.Errorf("the order is cancelled, but the cancel request got %v", cancelled)
			}
			refundedOnce(t, e, order.OrderNo, price, "late")
		default:
			t.Errorf("the order is %s", now.Status)
		}
	}
	t.Logf("%v", ended)
	settled(t, e, 1, "the stock is whole again", func(f api.Stats) bool { return free(f) == orders && f.Store.Stock == orders })
	balanced(t, e, 1)
}

// refundTogether has three operators refund one order: one does.
func refundTogether(t *testing.T, e *engine.Engine, no string) {
	t.Helper()
	var together sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		together.Go(func() { _, errs[i] = e.Operator().Refund(t.Context(), no) })
	}
	together.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else if engine.CodeOf(err) != seckill.CodeWrongState {
			t.Errorf("refund: %v", err)
		}
	}
	if done != 1 {
		t.Errorf("refunded by %d: %v", done, errs)
	}
	refundedOnce(t, e, no, price, "operator")
}
