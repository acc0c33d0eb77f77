package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/store"
)

var directReturnTests = []test{
	{"a dead order's units return to the stock, and the ledger is owed nothing", byStore(returnedOver)},
	{"orders of store and ledger expire together, and releases are owed for the ledger's", expiredTogether},
	{"a buyer may buy again after a return", byStore(func(t *testing.T, s *suite, open soldBy) {
		p := open(t, stock(1))
		s.cancel(t, s.buyFromStore(t, p, "buyer", key("k1")))
		s.buyFromStore(t, p, "buyer", key("k2"))
	})},
	{"the snapshot of a direct product has no live orders", func(t *testing.T, s *suite) {
		p := s.preheated(t, direct)
		order := s.buyFromStore(t, p, "buyer")
		_, err := s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(order seckill.Order) error {
			t.Errorf("%s was handed over", order.OrderNo)
			return nil
		})
		must(t, err)
		equal(t, "epoch of the order", s.order(t, order.OrderNo).Epoch, 0)
	}},
	{"figures count the store's orders like the ledger's", byStore(figuresOver)},
}

func returnedOver(t *testing.T, s *suite, open soldBy) {
	p := open(t, perUser(2))
	for name, end := range map[string]func(seckill.Order){
		"cancel": func(order seckill.Order) { s.cancel(t, order) },
		"refund": func(order seckill.Order) {
			_, err := s.Store.Refund(t.Context(), s.pay(t, order).OrderNo, operator)
			must(t, err)
		},
		"expire": func(order seckill.Order) {
			s.advance(t, 2*tick)
			equal(t, "expired", numbers(s.expireAll(t, order.ProductID)), numbers([]seckill.Order{order}))
		},
	} {
		claim := s.claim(t, p, "buyer", quantity(2))
		req := s.sellRequest(p, claim)
		if name == "expire" {
			req.ExpireAfter = tick
		}
		_, err := s.Store.Sell(t.Context(), req)
		must(t, err)
		end(s.order(t, claim.OrderNo))
		equal(t, "stock after "+name, s.product(t, p.ID).Stock, p.Stock)
		equal(t, "owed after "+name, len(s.owed(t, p.ID)), 0)
	}
}

func expiredTogether(t *testing.T, s *suite) {
	ledgers, takenOver, direct := s.preheated(t), s.takenOver(t), s.preheated(t, direct)
	s.buyFor(t, ledgers, "a", tick)
	for _, p := range []seckill.Product{takenOver, direct} {
		req := s.sellRequest(p, s.claim(t, p, "b"))
		req.ExpireAfter = tick
		_, err := s.Store.Sell(t.Context(), req)
		must(t, err)
	}
	s.advance(t, 2*tick)
	s.expireAll(t, ledgers.ID)
	for _, p := range []seckill.Product{ledgers, takenOver, direct} {
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
	}
	equal(t, "owed", len(s.owed(t, ledgers.ID)), 1)
	equal(t, "owed after a takeover", len(s.owed(t, takenOver.ID)), 0)
	equal(t, "owed by a direct product", len(s.owed(t, direct.ID)), 0)
}

func figuresOver(t *testing.T, s *suite, open soldBy) {
	p := open(t, stock(40), perUser(5))
	s.buyFromStore(t, p, "b", quantity(3))
	s.pay(t, s.buyFromStore(t, p, "c", quantity(4)))
	s.cancel(t, s.buyFromStore(t, p, "d", quantity(5)))
	f := s.figures(t, p.ID)
	equal(t, "pending", f.Pending, 3)
	equal(t, "paid", f.Paid, 4)
	equal(t, "cancelled", f.Cancelled, 5)
	equal(t, "releases due", f.ReleasesDue, 0)
	if !p.HasLedger() {
		equal(t, "shard of a direct product", s.shard(t, p.ID, 0), store.ShardFigures{})
	}
}
