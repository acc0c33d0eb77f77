package storetest

import (
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

var refundTests = []test{
	{"a settled refund stays settled", func(t *testing.T, s *suite) {
		refund, before := s.owedRefund(t, s.preheated(t), "buyer"), s.now(t)
		for range 2 {
			must(t, s.Store.RefundDone(t.Context(), refund.ID))
		}
		equal(t, "due", s.refundDue(t, refund.ID), false)
		done := s.refund(t, refund)
		equal(t, "status", done.Status, "done")
		if !around(done.DoneAt, before, s.now(t)) {
			t.Errorf("done at %s, want the store's now", done.DoneAt)
		}
		// A late failure of another attempt must not cause a second refund.
		for _, delay := range []time.Duration{0, -1} {
			// The adapter may return an error or not.
			_ = s.Store.RefundFailed(t.Context(), refund.ID, "late", delay)
			equal(t, "status", s.refund(t, refund).Status, "done")
			equal(t, "due", s.refundDue(t, refund.ID), false)
		}
	}},
	{"a refund that failed is due again after its delay", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		soon, later := s.owedRefund(t, p, "soon"), s.owedRefund(t, p, "later")
		must(t, s.Store.RefundFailed(t.Context(), soon.ID, "provider is down", tick))
		must(t, s.Store.RefundFailed(t.Context(), later.ID, "provider is down", far))
		s.advance(t, 2*tick)
		equal(t, "due after its delay", s.refundDue(t, soon.ID), true)
		equal(t, "due before its delay", s.refundDue(t, later.ID), false)
		for _, refund := range []store.Payment{soon, later} {
			got := s.refund(t, refund)
			equal(t, "attempts", got.Attempts, refund.Attempts+1)
			equal(t, "status", got.Status, "due")
		}
	}},
	{"a refund that failed for good needs care", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		refund := s.owedRefund(t, p, "buyer")
		must(t, s.Store.RefundFailed(t.Context(), refund.ID, "refused", -1))
		s.advance(t, tick)
		equal(t, "due", s.refundDue(t, refund.ID), false)
		equal(t, "status", s.refund(t, refund).Status, "failed")

		findings, err := s.Store.CheckMoney(t.Context(), p.ID, all)
		must(t, err)
		equal(t, "findings", len(findings), 1)
		n, err := s.Store.RetryRefunds(t.Context(), p.ID, all, operator)
		must(t, err)
		equal(t, "tried again", n, 1)
		equal(t, "due again", s.refundDue(t, refund.ID), true)
		must(t, s.Store.RefundDone(t.Context(), refund.ID))
	}},
	{"a refund that needs care can be retried", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		refund := s.owedRefund(t, p, "buyer")
		again := func() error {
			_, err := s.Store.RetryRefund(t.Context(), refund.ID, operator)
			return err
		}
		wantCode(t, again(), seckill.CodeWrongState) // it will be retried anyway
		must(t, s.Store.RefundFailed(t.Context(), refund.ID, "refused", -1))
		s.wantAudited(t, p.ID, func() {
			due, err := s.Store.RetryRefund(t.Context(), refund.ID, operator)
			must(t, err)
			equal(t, "answered", due, s.refund(t, refund))
		})
		equal(t, "due again", s.refundDue(t, refund.ID), true)
		equal(t, "attempts", s.refund(t, refund).Attempts, 0)
		must(t, s.Store.RefundDone(t.Context(), refund.ID))
		wantCode(t, again(), seckill.CodeWrongState)
		for _, id := range []string{"RF-nobody", refund.PaymentID} {
			_, err := s.Store.RetryRefund(t.Context(), id, operator)
			wantCode(t, err, seckill.CodeNotFound)
		}
	}},
	{"a refund for an unknown order that needs care can be retried", func(t *testing.T, s *suite) {
		stray := notice(s.buy(t, s.preheated(t), "stray"), "-nobody")
		stray.OrderNo = "an order of nobody"
		s.record(t, stray, store.PaymentExcess)
		refund := s.refundOf(t, stray)
		must(t, s.Store.RefundFailed(t.Context(), refund.ID, "refused", -1))
		_, err := s.Store.RetryRefund(t.Context(), refund.ID, operator)
		must(t, err)
		equal(t, "due again", s.refundDue(t, refund.ID), true)
	}},
	{"at most limit refunds are listed", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		for i := range 3 {
			s.owedRefund(t, p, numbered("buyer", i))
		}
		due, err := s.Store.RefundsDue(t.Context(), 2)
		must(t, err)
		equal(t, "listed", len(due), 2)
	}},
	{"payments are listed by order and type, within a limit", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.cancel(t, s.buy(t, p, "buyer"))
		for i := range 3 {
			s.record(t, notice(order, numbered("", i)), store.PaymentExcess)
		}
		s.owedRefund(t, p, "other")
		no := order.OrderNo.String()
		equal(t, "payments", len(s.payments(t, no, "payment")), 3)
		equal(t, "refunds", len(s.payments(t, no, "refund")), 3)
		equal(t, "both", len(s.payments(t, no, "")), 6)
		page, err := s.Store.Payments(t.Context(), store.PaymentFilter{OrderNo: no, Limit: 2})
		must(t, err)
		equal(t, "with a limit", len(page), 2)
		if everything := s.payments(t, "", ""); len(everything) < 8 {
			t.Errorf("without a filter %d are listed, want at least 8", len(everything))
		}
	}},
	{"payments are listed page by page", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		for i := range 3 {
			s.owedRefund(t, p, numbered("buyer", i)) // in one millisecond or in several
		}
		for _, filter := range []store.PaymentFilter{{ProductID: p.ID}, {ProductID: p.ID, Type: "refund"}} {
			filter.Limit = all
			want, err := s.Store.Payments(t.Context(), filter)
			must(t, err)
			var got []store.Payment
			for filter.Limit = 1; ; filter.Before = got[len(got)-1].ID {
				page, err := s.Store.Payments(t.Context(), filter)
				must(t, err)
				if len(page) == 0 {
					break
				}
				got = append(got, page...)
			}
			equal(t, "pages", got, want)
		}
		_, err := s.Store.Payments(t.Context(), store.PaymentFilter{Before: "nobody's", Limit: 1})
		wantCode(t, err, seckill.CodeNotFound)
	}},
	{"payments are listed by product, and those without a product apart", func(t *testing.T, s *suite) {
		p, other := s.preheated(t), s.preheated(t)
		refund, _ := s.owedRefund(t, p, "buyer"), s.owedRefund(t, other, "buyer")
		stray := notice(s.buy(t, p, "stray"), "-stray")
		stray.OrderNo = "the shop's own number"
		s.record(t, stray, store.PaymentExcess)
		of := func(filter store.PaymentFilter) []store.Payment {
			list, err := s.Store.Payments(t.Context(), filter)
			must(t, err)
			return list
		}
		equal(t, "of the product", len(of(store.PaymentFilter{ProductID: p.ID, Limit: all})), 2)
		equal(t, "its refunds", of(store.PaymentFilter{ProductID: p.ID, Type: "refund", Limit: all}), []store.Payment{refund})
		for _, money := range of(store.PaymentFilter{OfNone: true, Limit: all}) {
			if _, err := seckill.ParseOrderNo(money.OrderNo); err == nil {
				t.Errorf("%+v is listed as of no product", money)
			}
		}
		equal(t, "of none", len(of(store.PaymentFilter{OfNone: true, OrderNo: stray.OrderNo, Limit: all})), 2)
		equal(t, "with another product's order", len(of(store.PaymentFilter{ProductID: other.ID, OrderNo: refund.OrderNo, Limit: all})), 0)
	}},
}

// owedRefund makes a late payment, whose refund is owed.
func (s *suite) owedRefund(t *testing.T, p seckill.Product, buyer string) store.Payment {
	t.Helper()
	order := s.cancel(t, s.buy(t, p, buyer))
	n := notice(order, "-late")
	s.record(t, n, store.PaymentExcess)
	return s.refundOf(t, n)
}

func (s *suite) refundDue(t *testing.T, id string) bool {
	t.Helper()
	due, err := s.Store.RefundsDue(t.Context(), all)
	must(t, err)
	return slices.ContainsFunc(due, func(p store.Payment) bool { return p.ID == id })
}

// refund reads a refund again.
func (s *suite) refund(t *testing.T, refund store.Payment) store.Payment {
	t.Helper()
	for _, got := range s.payments(t, refund.OrderNo, "refund") {
		if got.ID == refund.ID {
			return got
		}
	}
	t.Fatalf("refund %s is gone", refund.ID)
	return store.Payment{}
}
