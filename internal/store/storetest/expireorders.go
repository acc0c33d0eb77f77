package storetest

import (
	"slices"
	"testing"

	"seckill"
)

var expireOrdersTests = []test{
	{"due orders expire as Expire would, all others stay", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(2))
		due := s.buyFor(t, p, "due", tick, quantity(2))
		unnamed := s.buyFor(t, p, "unnamed", tick)
		paid := s.pay(t, s.buyFor(t, p, "paid", tick))
		gone := s.buyFor(t, p, "gone", tick)
		s.cancel(t, gone)
		gone = s.order(t, gone.OrderNo)
		later := s.buy(t, p, "later")
		unknown := s.item(t, p, "unknown").Claim.OrderNo
		s.advance(t, 2*tick)

		got := s.expireOrders(t, due.OrderNo, paid.OrderNo, gone.OrderNo, later.OrderNo, unknown)
		equal(t, "expired", numbers(got), []string{due.OrderNo.String()})
		equal(t, "status", got[0].Status, seckill.OrderCancelled)
		equal(t, "reason", got[0].Reason, seckill.ReasonExpired)
		equal(t, "what is read", s.order(t, due.OrderNo), got[0])
		for what, order := range map[string]seckill.Order{"unnamed": unnamed, "paid": paid, "cancelled before": gone, "later": later} {
			equal(t, what, s.order(t, order.OrderNo), order)
		}
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-3)
		equal(t, "owed", len(s.owed(t, p.ID)), 2)
		equal(t, "order.cancelled", s.count(t, p.ID, seckill.EventOrderCancelled), 2)
		s.buy(t, p, "due", quantity(2))
	}},
	{"an order given several times expires once", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		no := s.buyFor(t, p, "buyer", tick).OrderNo
		s.advance(t, 2*tick)
		equal(t, "expired", numbersOf(s.expireOrders(t, no, no, no)), []seckill.OrderNo{no})
		s.wantUnchanged(t, p.ID, func() { equal(t, "expired again", len(s.expireOrders(t, no)), 0) })
		equal(t, "expired of none", len(s.expireOrders(t)), 0)
		equal(t, "order.cancelled", s.count(t, p.ID, seckill.EventOrderCancelled), 1)
	}},
	{"orders of several products expire in one call", func(t *testing.T, s *suite) {
		const each = 300 // more than one statement takes
		var nos []seckill.OrderNo
		var products []seckill.Product
		for range 2 {
			p := s.preheated(t, stock(each))
			products = append(products, p)
			req := request()
			req.ProductID, req.ExpireAfter = p.ID, tick
			for i := range each {
				item := s.item(t, p, numbered("buyer", i))
				req.Items, nos = append(req.Items, item), append(nos, item.Claim.OrderNo)
			}
			_, err := s.Store.Confirm(t.Context(), req)
			must(t, err)
		}
		s.advance(t, 2*tick)
		got := numbersOf(s.expireOrders(t, nos...))
		slices.SortFunc(got, seckill.NewestFirst)
		slices.SortFunc(nos, seckill.NewestFirst)
		equal(t, "expired", got, nos)
		for _, p := range products {
			equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
			equal(t, "order.cancelled", s.count(t, p.ID, seckill.EventOrderCancelled), each)
		}
	}},
	{"orders of the store's own sale expire", func(t *testing.T, s *suite) {
		p := s.preheated(t, direct)
		no := s.item(t, p, "buyer").Claim.OrderNo
		req := s.sellRequest(p, seckill.Claim{OrderNo: no, Buyer: "buyer", Quantity: 1})
		req.ExpireAfter = tick
		_, err := s.Store.Sell(t.Context(), req)
		must(t, err)
		s.advance(t, 2*tick)
		equal(t, "expired", numbersOf(s.expireOrders(t, no)), []seckill.OrderNo{no})
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
		equal(t, "owed", len(s.owed(t, p.ID)), 0)
	}},
}

func (s *suite) expireOrders(t TB, nos ...seckill.OrderNo) []seckill.Order {
	t.Helper()
	got, err := s.Store.ExpireOrders(t.Context(), nos)
	must(t, err)
	return got
}
