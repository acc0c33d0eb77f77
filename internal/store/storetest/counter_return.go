package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

var counterReturnTests = []test{
	{"a dead order's units return to whoever sold them, and the ledger is owed nothing", returnedOver},
	{"what expires together may have been sold by any", expiredTogether},
	{"a buyer may buy again after a return", func(t *testing.T, s *suite) {
		p := s.preheated(t, share(0.1))
		equal(t, "share", p.ShareLeft, 1)
		s.cancel(t, s.buyOver(t, p, "buyer", key("k1")))
		s.buyOver(t, p, "buyer", key("k2"))
	}},
	{"of live orders the snapshot of an epoch has the ledger's only", func(t *testing.T, s *suite) {
		p := s.preheated(t, share(0.5))
		marked := s.buy(t, p, "a")
		counted := s.buyOver(t, p, "b")
		var handed []seckill.OrderNo
		next, err := s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(order seckill.Order) error {
			handed = append(handed, order.OrderNo)
			return nil
		})
		must(t, err)
		equal(t, "handed over", handed, []seckill.OrderNo{marked.OrderNo})
		equal(t, "allottable", next.Allottable(), p.Allottable()-1)
		equal(t, "epoch of an order without a mark", s.order(t, counted.OrderNo).Epoch, 0)
		s.cancel(t, counted)
		equal(t, "owed", len(s.owed(t, p.ID)), 0)
	}},
	{"figures keep the counter's orders apart", figuresApart},
	{"a claim that the ledger sold under the same number is released", doubleSold},
	{"a ledger's claim whose key the share has sold fails as a duplicate and owes its release", duplicateOfShare},
}

func returnedOver(t *testing.T, s *suite) {
	returns := map[string]func(seckill.Order){
		"cancel": func(order seckill.Order) { s.cancel(t, order) },
		"refund": func(order seckill.Order) {
			_, err := s.Store.Refund(t.Context(), s.pay(t, order).OrderNo, operator)
			must(t, err)
		},
		"expire": func(order seckill.Order) {
			s.advance(t, 2*tick)
			equal(t, "expired", numbers(s.expireAll(t, order.ProductID)), numbers([]seckill.Order{order}))
		},
	}
	for _, p := range []seckill.Product{s.preheated(t, direct, perUser(2)), s.preheated(t, share(0.5), perUser(2))} {
		for name, end := range returns {
			claim := s.claim(t, p, "buyer", quantity(2))
			req := s.over(p, claim)
			if name == "expire" {
				req.ExpireAfter = tick
			}
			_, err := s.Store.Sell(t.Context(), req)
			must(t, err)
			end(s.order(t, claim.OrderNo))
			now := s.product(t, p.ID)
			equal(t, "stock after "+name, now.Stock, p.Stock)
			equal(t, "share after "+name, now.ShareLeft, p.ShareLeft)
			equal(t, "owed after "+name, len(s.owed(t, p.ID)), 0)
		}
	}
}

func expiredTogether(t *testing.T, s *suite) {
	p, other := s.preheated(t, share(0.5)), s.preheated(t, direct)
	s.buyFor(t, p, "a", tick)
	for _, of := range []seckill.Product{p, other} {
		req := s.over(of, s.claim(t, of, "b"))
		req.ExpireAfter = tick
		_, err := s.Store.Sell(t.Context(), req)
		must(t, err)
	}
	s.advance(t, 2*tick)
	s.expireAll(t, p.ID)
	for _, before := range []seckill.Product{p, other} {
		now := s.product(t, before.ID)
		equal(t, "stock", now.Stock, before.Stock)
		equal(t, "share", now.ShareLeft, before.ShareLeft)
	}
	equal(t, "owed", len(s.owed(t, p.ID)), 1)
	equal(t, "owed by a direct product", len(s.owed(t, other.ID)), 0)
}

func figuresApart(t *testing.T, s *suite) {
	p := s.preheated(t, share(0.5), stock(40), perUser(5))
	s.buy(t, p, "a", quantity(2))
	s.buyOver(t, p, "b", quantity(3))
	s.pay(t, s.buyOver(t, p, "c", quantity(4)))
	s.cancel(t, s.buyOver(t, p, "d", quantity(5)))
	f := s.figures(t, p.ID)
	equal(t, "fallback", f.Fallback, 7)
	equal(t, "pending", f.Pending, 5)
	equal(t, "paid", f.Paid, 4)
	equal(t, "cancelled", f.Cancelled, 5)
	equal(t, "share", f.Product.ShareLeft, 13)
	equal(t, "shard", s.shard(t, p.ID, 0), store.ShardFigures{Rows: 2})
	equal(t, "releases due", f.ReleasesDue, 0)

	p = s.preheated(t, direct)
	s.buyOver(t, p, "a")
	equal(t, "fallback of a direct product", s.figures(t, p.ID).Fallback, 0)
	equal(t, "shard of a direct product", s.shard(t, p.ID, 0), store.ShardFigures{})
}

// doubleSold: the ledger's reply was lost, its claim was sold from the share,
// and then the entry turned out to be there.
func doubleSold(t *testing.T, s *suite) {
	p := s.preheated(t, share(0.5))
	for _, die := range []bool{false, true} {
		item := s.item(t, p, numbered("buyer", len(s.events(t, p.ID))))
		equal(t, "verdict", s.sell(t, p, item.Claim).Verdicts[0].Code, ledger.VerdictAccepted)
		if die {
			s.cancel(t, s.order(t, item.Claim.OrderNo))
		}
		before := s.product(t, p.ID)
		s.confirm(t, []store.Item{item}, store.ConfirmReplay)
		equal(t, "product", s.product(t, p.ID), before)
		owed := s.owed(t, p.ID)
		equal(t, "owed", len(owed), 1)
		equal(t, "order to release", owed[0].OrderNo, item.Claim.OrderNo)
		equal(t, "epoch of the release", owed[0].Epoch, p.Epoch)
		shard := s.shard(t, p.ID, 0)
		equal(t, "units that the ledger may hold", shard.Rows-shard.HeardDead, 1)
		equal(t, "units that it must", shard.Rows-shard.Dead, 0)
		if !die {
			equal(t, "owed though it was cancelled since", s.cancel(t, s.order(t, item.Claim.OrderNo)).Status, seckill.OrderCancelled)
			equal(t, "owed", len(s.owed(t, p.ID)), 1)
		}
		s.hear(t, p.ID)
		shard = s.shard(t, p.ID, 0)
		equal(t, "units that the ledger may hold when it heard", shard.Rows-shard.HeardDead, 0)
		equal(t, "share", s.product(t, p.ID).ShareLeft, p.ShareLeft)
	}
}

// duplicateOfShare: the ledger promised a key, and the share sold it at an
// instance that could not know. The buyer may have more, so that the key alone
// makes the difference; and whatever became of the share's order, it stays its
// own.
func duplicateOfShare(t *testing.T, s *suite) {
	for name, then := range map[string]func(*testing.T, seckill.Order){
		"pending":   func(*testing.T, seckill.Order) {},
		"paid":      func(t *testing.T, order seckill.Order) { s.pay(t, order) },
		"cancelled": func(t *testing.T, order seckill.Order) { s.cancel(t, order) },
	} {
		t.Run(name, func(t *testing.T) {
			p := s.preheated(t, share(0.5), perUser(3))
			promised := s.item(t, p, "buyer", key("k"))
			order := s.buyOver(t, p, "buyer", key("k"))
			then(t, order)
			stock := s.product(t, p.ID).Stock
			s.confirm(t, []store.Item{s.item(t, p, "other", key("k")), promised}, store.ConfirmNew, store.ConfirmDuplicate)
			failed := s.order(t, promised.Claim.OrderNo)
			equal(t, "status", failed.Status, seckill.OrderFailed)
			equal(t, "reason", failed.Reason, seckill.ReasonDuplicate)
			equal(t, "stock", s.product(t, p.ID).Stock, stock-1) // the other's
			owed := s.owed(t, p.ID)
			equal(t, "owed", len(owed), 1)
			equal(t, "owed release", owed[0].OrderNo, promised.Claim.OrderNo)
			found := sold(ledger.VerdictRepeated, order.OrderNo, s.order(t, order.OrderNo).Status)
			s.knows(t, p, []seckill.Claim{s.claim(t, p, "buyer", key("k"))}, found)
			equal(t, "asked once more", s.sell(t, p, s.claim(t, p, "buyer", key("k"))).Verdicts[0], found)
		})
	}
}
