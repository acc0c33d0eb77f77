package paymenttest

import (
	"context"
	"sync"
	"testing"

	"seckill/internal/payment"
)

// owed makes a refund of half of a payment that the gateway took.
func owed(t *testing.T, h Harness, i int, cents int64) payment.Refund {
	t.Helper()
	money := number(t).money(i, 2*cents)
	h.Callback(t, money)
	return payment.Refund{
		ID: "R" + money.TradeNo, TradeNo: money.TradeNo, OrderNo: money.OrderNo,
		AmountCents: cents, Currency: money.Currency, Reason: "late",
	}
}

func returned(t *testing.T, h Harness, id string, want int64) {
	t.Helper()
	if got := h.Returned(t, id); got != want {
		t.Errorf("refund %s returned %d cents, want %d", id, got, want)
	}
}

func testRefund(t *testing.T, h Harness) {
	refund := owed(t, h, 0, 699900)
	returned(t, h, refund.ID, 0)
	if err := h.Provider.Refund(t.Context(), refund); err != nil {
		t.Fatal(err)
	}
	returned(t, h, refund.ID, refund.AmountCents)
}

func testRefundRepeated(t *testing.T, h Harness) {
	refund := owed(t, h, 0, 699900)
	for range 5 {
		if err := h.Provider.Refund(t.Context(), refund); err != nil {
			t.Fatal(err)
		}
	}
	returned(t, h, refund.ID, refund.AmountCents)
}

// A call may fail because another one with the same id runs. Then a later call
// must succeed.
func testRefundConcurrent(t *testing.T, h Harness) {
	refund := owed(t, h, 0, 699900)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { _ = h.Provider.Refund(t.Context(), refund) })
	}
	wg.Wait()
	if err := h.Provider.Refund(t.Context(), refund); err != nil {
		t.Fatal(err)
	}
	returned(t, h, refund.ID, refund.AmountCents)
}

func testRefundUnheard(t *testing.T, h Harness) {
	refund := owed(t, h, 0, 699900)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Provider.Refund(ctx, refund); err == nil {
		returned(t, h, refund.ID, refund.AmountCents)
	}
	if err := h.Provider.Refund(t.Context(), refund); err != nil {
		t.Fatal(err)
	}
	returned(t, h, refund.ID, refund.AmountCents)
}

func testRefundOtherMoney(t *testing.T, h Harness) {
	refund := owed(t, h, 0, 100)
	if err := h.Provider.Refund(t.Context(), refund); err != nil {
		t.Fatal(err)
	}
	more := refund
	more.AmountCents++
	_ = h.Provider.Refund(t.Context(), more) // refused, or taken for the first: no money is returned in either case
	returned(t, h, refund.ID, refund.AmountCents)
}

func testRefundsApart(t *testing.T, h Harness) {
	first := owed(t, h, 0, 100)
	second := first // the other half of the same payment
	second.ID += "b"
	third := owed(t, h, 1, 300)
	for _, refund := range []payment.Refund{first, second, third} {
		if err := h.Provider.Refund(t.Context(), refund); err != nil {
			t.Fatal(err)
		}
	}
	for _, refund := range []payment.Refund{first, second, third} {
		returned(t, h, refund.ID, refund.AmountCents)
	}
}
