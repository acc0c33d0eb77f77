package storetest

import (
	"testing"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/payment"
	"seckill/internal/store"
)

var paymentTests = []test{
	{"one exact payment pays a pending order", paid},
	{"a repeated notice changes nothing", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buy(t, p, "buyer")
		n := notice(order, "-1")
		s.record(t, n, store.PaymentPaid)
		for range 3 {
			s.wantUnchanged(t, p.ID, func() { s.record(t, n, store.PaymentRepeated) })
		}
		for _, alter := range []func(*payment.Notice){
			func(n *payment.Notice) { n.AmountCents++ },
			func(n *payment.Notice) { n.Currency = "USD" },
			func(n *payment.Notice) { n.OrderNo = s.buy(t, p, "other").OrderNo.String() },
		} {
			other := n
			alter(&other)
			s.wantUnchanged(t, p.ID, func() { s.record(t, other, store.PaymentConflict) })
		}
		equal(t, "payments", len(s.payments(t, n.OrderNo, "payment")), 1)
		equal(t, "refunds", len(s.payments(t, n.OrderNo, "refund")), 0)
	}},
	{"a repeated excess notice is refunded once", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.cancel(t, s.buy(t, p, "buyer"))
		s.record(t, notice(order, "-1"), store.PaymentExcess)
		s.record(t, notice(order, "-1"), store.PaymentRepeated)
		equal(t, "refunds", len(s.payments(t, order.OrderNo.String(), "refund")), 1)
	}},
	{"money that does not pay is recorded and owed back", excessMoney},
	{"money of test products can be left out of a list", func(t *testing.T, s *suite) {
		order := s.pay(t, s.buy(t, s.preheated(t, isTest), "buyer"))
		sold := s.pay(t, s.buy(t, s.preheated(t), "buyer"))
		listed := make(map[string]bool)
		money, err := s.Store.Payments(t.Context(), store.PaymentFilter{NoTests: true, Limit: all})
		must(t, err)
		for _, m := range money {
			listed[m.OrderNo] = true
		}
		equal(t, "the test's is listed", listed[order.OrderNo.String()], false)
		equal(t, "the other is listed", listed[sold.OrderNo.String()], true)
	}},
	{"money for an unknown order is owed back", unknownMoney},
	{"after a wrong amount the right one still pays", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buy(t, p, "buyer")
		wrong := notice(order, "-wrong")
		wrong.AmountCents--
		s.record(t, wrong, store.PaymentExcess)
		equal(t, "status", s.order(t, order.OrderNo).Status, seckill.OrderPending)
		s.pay(t, order)
		equal(t, "refunds", len(s.payments(t, wrong.OrderNo, "refund")), 1)
	}},
	{"equal trade numbers of two providers differ", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buy(t, p, "buyer")
		s.record(t, notice(order, "-1"), store.PaymentPaid)
		second := notice(order, "-1")
		second.Provider = "wechat"
		s.record(t, second, store.PaymentExcess)
		s.record(t, second, store.PaymentRepeated)
		refunds := s.payments(t, second.OrderNo, "refund")
		equal(t, "refunds", len(refunds), 1)
		equal(t, "provider of the refund", refunds[0].Provider, "wechat")
	}},
	{"trade numbers are compared byte by byte", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buy(t, p, "buyer")
		s.record(t, notice(order, "-a"), store.PaymentPaid)
		s.record(t, notice(order, "-A"), store.PaymentExcess)
		s.record(t, notice(order, "-a "), store.PaymentExcess)
	}},
	{"a pending order can be paid until it is expired", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buyFor(t, p, "buyer", tick)
		s.advance(t, 2*tick)
		equal(t, "status", s.pay(t, order).Status, seckill.OrderPaid)
		equal(t, "expired", len(s.expireAll(t, p.ID)), 0)
	}},
	{"one notice delivered many times at once counts once", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buy(t, p, "buyer")
		results := s.recordAtOnce(t, func(int) payment.Notice { return notice(order, "-1") })
		equal(t, "results", results, map[store.PaymentResult]int{store.PaymentPaid: 1, store.PaymentRepeated: rivals - 1})
	}},
	{"many payments at once: one pays, the others are owed back", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buy(t, p, "buyer")
		results := s.recordAtOnce(t, func(i int) payment.Notice { return notice(order, numbered("", i)) })
		equal(t, "results", results, map[store.PaymentResult]int{store.PaymentPaid: 1, store.PaymentExcess: rivals - 1})
		equal(t, "refunds", len(s.payments(t, order.OrderNo.String(), "refund")), rivals-1)
	}},
}

// rivals is the number of concurrent goroutines in a test.
const rivals = 8

func (s *suite) recordAtOnce(t *testing.T, notices func(int) payment.Notice) map[store.PaymentResult]int {
	t.Helper()
	got := make([]store.PaymentResult, rivals)
	var group errgroup.Group
	for i := range rivals {
		group.Go(func() (err error) {
			got[i], err = s.Store.RecordPayment(t.Context(), notices(i))
			return err
		})
	}
	must(t, group.Wait())
	results := map[store.PaymentResult]int{}
	for _, result := range got {
		results[result]++
	}
	return results
}

func paid(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3))
	order, before := s.buy(t, p, "buyer", quantity(3)), s.now(t)
	s.advance(t, tick)
	n := notice(order, "-1")
	s.record(t, n, store.PaymentPaid)

	got := s.order(t, order.OrderNo)
	if got.PaidAt.IsZero() || got.PaidAt.Before(before) && !got.PaidAt.Equal(n.PaidAt) {
		t.Errorf("paid at %s", got.PaidAt)
	}
	want := order
	want.Status, want.PaidAt = seckill.OrderPaid, got.PaidAt
	equal(t, "order", got, want)
	equal(t, "order.paid", s.count(t, p.ID, seckill.EventOrderPaid), 1)
	equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-3)
	equal(t, "owed", len(s.owed(t, p.ID)), 0)

	payments := s.payments(t, n.OrderNo, "")
	equal(t, "payments", len(payments), 1)
	m := payments[0]
	if m.ID == "" || m.CreatedAt.IsZero() {
		t.Errorf("payment without id or time: %+v", m)
	}
	equal(t, "payment", store.Payment{
		Type: m.Type, OrderNo: m.OrderNo, Provider: m.Provider, TradeNo: m.TradeNo,
		AmountCents: m.AmountCents, Currency: m.Currency, Status: m.Status,
	}, store.Payment{
		Type: "payment", OrderNo: n.OrderNo, Provider: n.Provider, TradeNo: n.TradeNo,
		AmountCents: n.AmountCents, Currency: n.Currency, Status: "applied",
	})
}

func excessMoney(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(10), stock(20))
	cases := []struct {
		name   string
		status seckill.OrderStatus
		edit   func(*payment.Notice)
		reason string // "" if the contract gives none
	}{
		{"late: the order was cancelled", seckill.OrderCancelled, nil, "late"},
		{"late: the order failed", seckill.OrderFailed, nil, "late"},
		{"doubled: the order was paid", seckill.OrderPaid, nil, "doubled"},
		{"after a refund", seckill.OrderRefunded, nil, ""},
		{"too little", seckill.OrderPending, func(n *payment.Notice) { n.AmountCents-- }, "wrong_amount"},
		{"too much", seckill.OrderPending, func(n *payment.Notice) { n.AmountCents++ }, "wrong_amount"},
		{"another currency", seckill.OrderPending, func(n *payment.Notice) { n.Currency = "USD" }, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			order := s.inState(t, p, c.status)
			before, known := s.figures(t, p.ID), len(s.payments(t, order.OrderNo.String(), "refund"))
			n := notice(order, "-excess")
			if c.edit != nil {
				c.edit(&n)
			}
			s.record(t, n, store.PaymentExcess)
			equal(t, "order", s.order(t, order.OrderNo), order)
			equal(t, "figures", s.figures(t, p.ID), before)

			refund := s.refundOf(t, n)
			equal(t, "amount", refund.AmountCents, n.AmountCents)
			equal(t, "currency", refund.Currency, n.Currency)
			equal(t, "status", refund.Status, "due")
			if c.reason != "" && refund.Reason != c.reason || refund.Reason == "" {
				t.Errorf("reason is %q, want %q", refund.Reason, c.reason)
			}
			equal(t, "refunds", len(s.payments(t, n.OrderNo, "refund")), known+1)
		})
	}
}

// refundOf finds the refund of a notice's payment, which must be due.
func (s *suite) refundOf(t *testing.T, n payment.Notice) store.Payment {
	t.Helper()
	due, err := s.Store.RefundsDue(t.Context(), all)
	must(t, err)
	for _, refund := range due {
		if refund.Provider == n.Provider && refund.TradeNo == n.TradeNo {
			equal(t, "type", refund.Type, "refund")
			equal(t, "order", refund.OrderNo, n.OrderNo)
			return refund
		}
	}
	t.Fatalf("no refund is due of trade %s", n.TradeNo)
	return store.Payment{}
}

func unknownMoney(t *testing.T, s *suite) {
	p := s.create(t)
	for name, no := range map[string]string{
		"never made": s.item(t, p, "nobody").Claim.OrderNo.String(),
		"not ours":   numbered("ORDER 订单", int(p.ID)),
		"lower case": "sk" + numbered("", int(p.ID)),
		"empty":      "",
	} {
		t.Run(name, func(t *testing.T) {
			n := payment.Notice{
				Provider: "sandbox", TradeNo: numbered(name, int(p.ID)), OrderNo: no, AmountCents: 5, Currency: "CNY", PaidAt: s.now(t),
			}
			s.record(t, n, store.PaymentExcess)
			s.record(t, n, store.PaymentRepeated)
			refund := s.refundOf(t, n)
			equal(t, "reason", refund.Reason, "unknown_order")
			equal(t, "amount", refund.AmountCents, 5)
		})
	}
}
