package seckill_test

import (
	"errors"
	"testing"
	"time"

	"seckill"
)

var allStatuses = []seckill.OrderStatus{
	seckill.OrderQueued, seckill.OrderPending, seckill.OrderPaid,
	seckill.OrderCancelled, seckill.OrderFailed, seckill.OrderRefunded,
}

// TestOrder_Moves is the full table of statuses and moves. Any other move is wrong_state and
// does not change the order.
func TestOrder_Moves(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000).UTC()
	moves := map[string]func(*seckill.Order) error{
		"confirm": func(o *seckill.Order) error { return o.Confirm(now, time.Minute) },
		"pay":     func(o *seckill.Order) error { return o.Pay(now) },
		"cancel":  func(o *seckill.Order) error { return o.Cancel(now, "why") },
		"fail":    func(o *seckill.Order) error { return o.Fail(now, "why") },
		"refund":  func(o *seckill.Order) error { return o.Refund(now, "why") },
	}
	legal := map[seckill.OrderStatus]map[string]seckill.Order{
		seckill.OrderQueued: {
			"confirm": {Status: seckill.OrderPending, PayBefore: now.Add(time.Minute)},
			"fail":    {Status: seckill.OrderFailed, ClosedAt: now, Reason: "why"},
		},
		seckill.OrderPending: {
			"pay":    {Status: seckill.OrderPaid, PaidAt: now},
			"cancel": {Status: seckill.OrderCancelled, ClosedAt: now, Reason: "why"},
		},
		seckill.OrderPaid: {
			"refund": {Status: seckill.OrderRefunded, ClosedAt: now, Reason: "why"},
		},
	}
	for _, from := range allStatuses {
		for name, move := range moves {
			t.Run(from.String()+" "+name, func(t *testing.T) {
				order := seckill.Order{Status: from}
				err := move(&order)
				want, allowed := legal[from][name]
				if allowed {
					if err != nil || order != want {
						t.Errorf("got %+v, %v; want %+v", order, err, want)
					}
					return
				}
				if seckill.CodeOf(err) != seckill.CodeWrongState {
					t.Errorf("error is %v, want wrong_state", err)
				}
				if order != (seckill.Order{Status: from}) {
					t.Errorf("a refused move left %+v", order)
				}
			})
		}
	}
}

func TestOrderStatus_NumbersAreFixed(t *testing.T) {
	want := map[seckill.OrderStatus]struct {
		number int8
		name   string
		live   bool
	}{
		seckill.OrderQueued:    {-1, "queued", true},
		seckill.OrderPending:   {0, "pending", true},
		seckill.OrderPaid:      {1, "paid", true},
		seckill.OrderCancelled: {2, "cancelled", false},
		seckill.OrderFailed:    {3, "failed", false},
		seckill.OrderRefunded:  {4, "refunded", false},
	}
	for _, status := range allStatuses {
		w := want[status]
		if int8(status) != w.number || status.String() != w.name || status.Live() != w.live {
			t.Errorf("status %d is %q, live %v; want %+v", int8(status), status, status.Live(), w)
		}
		if back, err := seckill.ParseOrderStatus(w.name); err != nil || back != status {
			t.Errorf("%q reads as %v, %v", w.name, back, err)
		}
	}
	for _, name := range []string{"", "Paid", "expired", "0"} {
		if _, err := seckill.ParseOrderStatus(name); seckill.CodeOf(err) != seckill.CodeBadRequest || err == nil {
			t.Errorf("%q reads with %v, want bad_request", name, err)
		}
	}
	if got := seckill.OrderStatus(9).String(); got != "OrderStatus(9)" {
		t.Errorf("an unknown status is %q", got)
	}
}

func TestOrder_Amount(t *testing.T) {
	order := seckill.Order{PriceCents: seckill.MaxPriceCents, Quantity: seckill.MaxPerUserLimit}
	if got, want := order.AmountCents(), int64(100_000_000_000_000); got != want {
		t.Errorf("the greatest amount is %d, want %d", got, want)
	}
}

func TestOrder_ErrorNamesMoveAndStatus(t *testing.T) {
	order := seckill.Order{Status: seckill.OrderPaid}
	var e *seckill.Error
	if err := order.Cancel(time.Time{}, ""); !errors.As(err, &e) || e.Detail != "cannot cancel an order that is paid" {
		t.Errorf("refusal is %v", err)
	}
}

func TestOrder_AsOf(t *testing.T) {
	at := func(minute int64) time.Time { return time.UnixMilli(1_700_000_000_000 + minute*60_000).UTC() }
	order := func(edit func(*seckill.Order)) seckill.Order {
		o := seckill.Order{
			OrderNo: seckill.NewOrderNo(at(0), 7, 1), Buyer: "bob", ProductID: 7, PriceCents: 5, Quantity: 2,
			Status: seckill.OrderPending, CreatedAt: at(0), PayBefore: at(30), Epoch: 3, Shard: 1,
		}
		edit(&o)
		return o
	}
	pending := order(func(*seckill.Order) {})
	paid := order(func(o *seckill.Order) { o.Status, o.PaidAt = seckill.OrderPaid, at(1) })
	refunded := order(func(o *seckill.Order) {
		o.Status, o.PaidAt, o.ClosedAt, o.Reason = seckill.OrderRefunded, at(1), at(2), "broken"
	})
	cancelled := order(func(o *seckill.Order) {
		o.Status, o.ClosedAt, o.Reason = seckill.OrderCancelled, at(31), seckill.ReasonExpired
	})
	failed := order(func(o *seckill.Order) {
		o.Status, o.PayBefore, o.ClosedAt, o.Reason = seckill.OrderFailed, time.Time{}, at(0), seckill.ReasonLimit
	})
	for _, c := range []struct {
		kind      seckill.EventKind
		now, then seckill.Order
	}{
		{seckill.EventOrderConfirmed, pending, pending},
		{seckill.EventOrderConfirmed, paid, pending},
		{seckill.EventOrderConfirmed, cancelled, pending},
		{seckill.EventOrderConfirmed, refunded, pending},
		{seckill.EventOrderExpiring, pending, pending},
		{seckill.EventOrderExpiring, cancelled, pending},
		{seckill.EventOrderExpiring, refunded, pending},
		{seckill.EventOrderPaid, paid, paid},
		{seckill.EventOrderPaid, refunded, paid},
		{seckill.EventOrderRefunded, refunded, refunded},
		{seckill.EventOrderCancelled, cancelled, cancelled},
		{seckill.EventOrderFailed, failed, failed},
		{seckill.EventRefundRequired, cancelled, cancelled}, // the kind does not imply a status
		{seckill.EventSaleEnded, refunded, refunded},
	} {
		t.Run(string(c.kind)+" of one now "+c.now.Status.String(), func(t *testing.T) {
			before := c.now
			if got := c.now.AsOf(c.kind); got != c.then {
				t.Errorf("got  %+v\nwant %+v", got, c.then)
			}
			if c.now != before {
				t.Error("the order itself was changed")
			}
		})
	}
}
