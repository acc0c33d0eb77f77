package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/store"
)

var returnTests = []test{
	{"a cancelled order returns its units and owes the release", cancelled},
	{"only a pending order can be cancelled", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(5))
		s.wantRefusedIn(t, p, func(no seckill.OrderNo) error {
			_, err := s.Store.Cancel(t.Context(), no, "x", operator)
			return err
		}, seckill.OrderPaid, seckill.OrderCancelled, seckill.OrderFailed, seckill.OrderRefunded)
	}},
	{"a cancel after a new epoch owes the release under it", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buy(t, p, "buyer")
		next := s.openEpoch(t, p.ID)
		s.cancel(t, order)
		equal(t, "epoch of the release", s.owed(t, p.ID)[0].Epoch, next.Epoch)
	}},
	{"a refunded order returns its units and owes release and money", refunded},
	{"only a paid order can be refunded", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(5))
		s.wantRefusedIn(t, p, func(no seckill.OrderNo) error {
			_, err := s.Store.Refund(t.Context(), no, operator)
			return err
		}, seckill.OrderPending, seckill.OrderCancelled, seckill.OrderFailed, seckill.OrderRefunded)
	}},
	{"operator cancel and refund write the audit", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		a, b := s.buy(t, p, "a"), s.pay(t, s.buy(t, p, "b"))
		s.wantAudited(t, p.ID, func() { s.cancel(t, a) })
		s.wantAudited(t, p.ID, func() {
			_, err := s.Store.Refund(t.Context(), b.OrderNo, operator)
			must(t, err)
		})
		lines, err := s.Store.Audit(t.Context(), store.AuditFilter{OrderNo: a.OrderNo.String(), Limit: all})
		must(t, err)
		equal(t, "audit lines of the order", len(lines), 1)
	}},
	{"orders expire when pay_before has passed, not earlier", expired},
	{"Expire cancels at most its limit", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		for i := range 5 {
			s.buyFor(t, p, numbered("buyer", i), tick)
		}
		s.advance(t, 2*tick)
		for rounds := 0; s.figures(t, p.ID).Pending > 0; rounds++ {
			got, err := s.Store.Expire(t.Context(), 2)
			must(t, err)
			if len(got) == 0 || len(got) > 2 || rounds > all {
				t.Fatalf("expired %d orders at once, want 1 or 2", len(got))
			}
		}
		equal(t, "cancelled", s.figures(t, p.ID).Cancelled, 5)
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
	}},
	{"orders near their end are warned once", warned},
	{"an order with a warning still expires", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buyFor(t, p, "buyer", 20*tick)
		_, err := s.Store.WarnExpiring(t.Context(), far, all)
		must(t, err)
		equal(t, "order.expiring", s.count(t, p.ID, seckill.EventOrderExpiring), 1)
		s.advance(t, 21*tick)
		equal(t, "expired", numbers(s.expireAll(t, p.ID)), numbers([]seckill.Order{order}))
	}},
	{"WarnExpiring warns at most its limit", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		for i := range 3 {
			s.buy(t, p, numbered("buyer", i))
		}
		for rounds := 0; s.count(t, p.ID, seckill.EventOrderExpiring) < 3; rounds++ {
			n, err := s.Store.WarnExpiring(t.Context(), 2*far, 1)
			must(t, err)
			if n != 1 || rounds > all {
				t.Fatalf("warned %d orders at once, want 1", n)
			}
		}
	}},
}

func cancelled(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3), sharded(4))
	bought := s.buy(t, p, "buyer", quantity(2), ref("r"))
	before := s.now(t)
	order, err := s.Store.Cancel(t.Context(), bought.OrderNo, "not wanted 不要了", operator)
	must(t, err)

	if !around(order.ClosedAt, before, s.now(t)) {
		t.Errorf("closed at %s, want the store's now", order.ClosedAt)
	}
	want := bought
	want.Status, want.Reason, want.ClosedAt = seckill.OrderCancelled, "not wanted 不要了", order.ClosedAt
	equal(t, "returned", order, want)
	equal(t, "read", s.order(t, order.OrderNo), want)
	equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
	equal(t, "owed", s.owed(t, p.ID), []store.Release{{
		OrderNo: order.OrderNo, Buyer: "buyer", ProductID: p.ID, Group: p.Group, Shard: order.Shard, Epoch: p.Epoch,
		Since: order.ClosedAt,
	}})
	events := s.events(t, p.ID)
	event := events[len(events)-1]
	equal(t, "event", event.Kind, seckill.EventOrderCancelled)
	equal(t, "reason of the event", event.Reason, "not wanted 不要了")
	equal(t, "ref of the event", event.Ref, "r")
	s.buy(t, p, "buyer", quantity(3)) // the whole limit is free again
}

// inState creates an order and moves it to a state.
func (s *suite) inState(t *testing.T, p seckill.Product, status seckill.OrderStatus) seckill.Order {
	t.Helper()
	buyer := status.String()
	if status == seckill.OrderFailed {
		item := s.item(t, p, buyer)
		must(t, s.Store.Fail(t.Context(), []store.Item{item}, seckill.ReasonLost))
		return s.order(t, item.Claim.OrderNo)
	}
	order := s.buy(t, p, buyer)
	switch status {
	case seckill.OrderPaid:
		s.pay(t, order)
	case seckill.OrderCancelled:
		s.cancel(t, order)
	case seckill.OrderRefunded:
		s.pay(t, order)
		_, err := s.Store.Refund(t.Context(), order.OrderNo, operator)
		must(t, err)
	}
	return s.order(t, order.OrderNo)
}

// wantRefusedIn expects that a move is wrong_state, and changes nothing, in each of the states.
func (s *suite) wantRefusedIn(t *testing.T, p seckill.Product, move func(seckill.OrderNo) error, states ...seckill.OrderStatus) {
	t.Helper()
	for _, status := range states {
		t.Run(status.String(), func(t *testing.T) {
			order := s.inState(t, p, status)
			equal(t, "status", order.Status, status)
			s.wantUnchanged(t, p.ID, func() { wantCode(t, move(order.OrderNo), seckill.CodeWrongState) })
			equal(t, "order", s.order(t, order.OrderNo), order)
		})
	}
}

func refunded(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(2))
	paid := s.pay(t, s.buy(t, p, "buyer", quantity(2)))
	order, err := s.Store.Refund(t.Context(), paid.OrderNo, operator)
	must(t, err)
	want := paid
	want.Status, want.Reason, want.ClosedAt = seckill.OrderRefunded, order.Reason, order.ClosedAt
	equal(t, "returned", order, want)
	equal(t, "read", s.order(t, order.OrderNo), want)
	equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
	equal(t, "owed", len(s.owed(t, p.ID)), 1)
	equal(t, "order.refunded", s.count(t, p.ID, seckill.EventOrderRefunded), 1)

	payments := s.payments(t, order.OrderNo.String(), "payment")
	refunds := s.payments(t, order.OrderNo.String(), "refund")
	equal(t, "payments", len(payments), 1)
	equal(t, "refunds", len(refunds), 1)
	equal(t, "payment that is returned", refunds[0].PaymentID, payments[0].ID)
	equal(t, "amount", refunds[0].AmountCents, order.AmountCents())
	equal(t, "reason", refunds[0].Reason, "operator")
	equal(t, "status", refunds[0].Status, "due")
	equal(t, "trade", refunds[0].TradeNo, payments[0].TradeNo)
	s.buy(t, p, "buyer", quantity(2))
}

// expireAll expires all due orders, and returns those of the product.
func (s *suite) expireAll(t *testing.T, product uint32) []seckill.Order {
	t.Helper()
	var mine []seckill.Order
	for {
		got, err := s.Store.Expire(t.Context(), 100)
		must(t, err)
		if len(got) == 0 {
			return mine
		}
		for _, order := range got {
			if order.ProductID == product {
				mine = append(mine, order)
			}
		}
	}
}

func expired(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(2))
	due := s.buyFor(t, p, "due", tick, quantity(2))
	paid := s.pay(t, s.buyFor(t, p, "paid", tick))
	later := s.buy(t, p, "later")
	s.advance(t, 2*tick)

	got := s.expireAll(t, p.ID)
	equal(t, "expired", numbers(got), []string{due.OrderNo.String()})
	equal(t, "status", got[0].Status, seckill.OrderCancelled)
	equal(t, "reason", got[0].Reason, seckill.ReasonExpired)
	equal(t, "what is read", s.order(t, due.OrderNo), got[0])
	equal(t, "paid", s.order(t, paid.OrderNo), paid)
	equal(t, "later", s.order(t, later.OrderNo), later)
	equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-2)
	equal(t, "owed", len(s.owed(t, p.ID)), 1)
	equal(t, "order.cancelled", s.count(t, p.ID, seckill.EventOrderCancelled), 1)
	s.buy(t, p, "due", quantity(2))
}

func warned(t *testing.T, s *suite) {
	p := s.preheated(t)
	near := s.buyFor(t, p, "near", far)
	s.pay(t, s.buyFor(t, p, "paid", far))
	s.buyFor(t, p, "later", 10*far)
	warn := func() {
		t.Helper()
		for {
			n, err := s.Store.WarnExpiring(t.Context(), 2*far, 100)
			must(t, err)
			if n == 0 {
				return
			}
		}
	}
	_, err := s.Store.WarnExpiring(t.Context(), far/2, all)
	must(t, err)
	equal(t, "order.expiring long before", s.count(t, p.ID, seckill.EventOrderExpiring), 0)
	warn()
	warn()
	equal(t, "order.expiring", s.count(t, p.ID, seckill.EventOrderExpiring), 1)
	events := s.events(t, p.ID)
	equal(t, "order of the event", events[len(events)-1].OrderNo, near.OrderNo)
	equal(t, "status", s.order(t, near.OrderNo).Status, seckill.OrderPending)
}
