package storetest

import (
	"strings"
	"testing"

	"seckill"
	"seckill/internal/store"
)

var limitTests = []test{
	{"a buyer over the limit gets a failed order and a release is owed", overLimit},
	{"the same buyer twice in one request counts both", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(2))
		s.confirm(t, []store.Item{
			s.item(t, p, "buyer"), s.item(t, p, "other"), s.item(t, p, "buyer"), s.item(t, p, "buyer"),
		}, store.ConfirmNew, store.ConfirmNew, store.ConfirmNew, store.ConfirmOverLimit)
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-3)
	}},
	{"a limit above one counts units", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(3))
		first := s.buy(t, p, "buyer", quantity(2))
		s.confirm(t, []store.Item{s.item(t, p, "buyer", quantity(2)), s.item(t, p, "buyer")}, store.ConfirmOverLimit, store.ConfirmNew)
		s.confirm(t, []store.Item{s.item(t, p, "buyer")}, store.ConfirmOverLimit)
		s.cancel(t, first)
		s.confirm(t, []store.Item{s.item(t, p, "buyer", quantity(2)), s.item(t, p, "buyer")}, store.ConfirmNew, store.ConfirmOverLimit)
	}},
	{"paid units count against the limit, refunded ones do not", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.pay(t, s.buy(t, p, "buyer"))
		s.confirm(t, []store.Item{s.item(t, p, "buyer")}, store.ConfirmOverLimit)
		_, err := s.Store.Refund(t.Context(), order.OrderNo, operator)
		must(t, err)
		s.confirm(t, []store.Item{s.item(t, p, "buyer")}, store.ConfirmNew)
	}},
	{"products of a limit group share the limit and the keys", groupLimit},
	{"a key that belongs to another order fails as a duplicate", duplicateKey},
	{"a key stays its order's after that order is dead", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		s.cancel(t, s.buy(t, p, "buyer", key("k")))
		s.confirm(t, []store.Item{s.item(t, p, "buyer", key("k"))}, store.ConfirmDuplicate)
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
	}},
	{"a key stays its order's across epochs", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(2))
		s.buy(t, p, "buyer", key("k"))
		p = s.openEpoch(t, p.ID)
		s.confirm(t, []store.Item{s.item(t, p, "buyer", key("k"))}, store.ConfirmDuplicate)
	}},
	{"the same key twice in one request is one order and one duplicate", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(3))
		second := s.item(t, p, "buyer", key("k"))
		s.confirm(t, []store.Item{s.item(t, p, "buyer", key("k")), second}, store.ConfirmNew, store.ConfirmDuplicate)
		equal(t, "reason", s.order(t, second.Claim.OrderNo).Reason, seckill.ReasonDuplicate)
	}},
	{"a limit that was edited in the ledger is ignored", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(2))
		s.buy(t, p, "buyer", quantity(2))
		edited := s.item(t, p, "buyer")
		edited.Limit = 9
		s.confirm(t, []store.Item{edited}, store.ConfirmOverLimit)
		equal(t, "reason", s.order(t, edited.Claim.OrderNo).Reason, seckill.ReasonLimit)
	}},
	{"keys of different buyers differ, and an empty key is no key", func(t *testing.T, s *suite) {
		p := s.preheated(t, perUser(3))
		s.confirm(t, []store.Item{
			s.item(t, p, "a", key("k")), s.item(t, p, "b", key("k")), s.item(t, p, "a", key("K")),
			s.item(t, p, "c"), s.item(t, p, "c"),
		}, store.ConfirmNew, store.ConfirmNew, store.ConfirmNew, store.ConfirmNew, store.ConfirmNew)
	}},
	{"buyers are compared byte by byte", binaryBuyers},
	{"buyer, key, ref and name keep their greatest lengths", longClaim},
	{"an amount beyond 32 bits is kept", func(t *testing.T, s *suite) {
		p := s.preheated(t, stock(seckill.MaxPerUserLimit), perUser(seckill.MaxPerUserLimit), func(p *seckill.Product) { p.PriceCents = seckill.MaxPriceCents })
		order := s.buy(t, p, "buyer", quantity(seckill.MaxPerUserLimit))
		equal(t, "amount", order.AmountCents(), int64(seckill.MaxPriceCents)*seckill.MaxPerUserLimit)
		s.pay(t, order)
	}},
}

func overLimit(t *testing.T, s *suite) {
	p := s.preheated(t, sharded(4))
	s.buy(t, p, "buyer")
	before := s.product(t, p.ID)
	over := s.item(t, p, "buyer", ref("r"))
	s.confirm(t, []store.Item{over}, store.ConfirmOverLimit)

	order := s.order(t, over.Claim.OrderNo)
	equal(t, "status", order.Status, seckill.OrderFailed)
	equal(t, "reason", order.Reason, seckill.ReasonLimit)
	equal(t, "pay_before is set", order.PayBefore.IsZero(), true)
	equal(t, "closed_at is missing", order.ClosedAt.IsZero(), false)
	equal(t, "stock", s.product(t, p.ID).Stock, before.Stock)
	equal(t, "owed", s.owed(t, p.ID), []store.Release{{
		OrderNo: over.Claim.OrderNo, Buyer: "buyer", ProductID: p.ID, Group: p.Group, Shard: over.Shard, Epoch: p.Epoch,
		Since: order.ClosedAt,
	}})
	events := s.events(t, p.ID)
	event := events[len(events)-1]
	equal(t, "event", event.Kind, seckill.EventOrderFailed)
	equal(t, "reason of the event", event.Reason, seckill.ReasonLimit)
	equal(t, "order of the event", event.OrderNo, over.Claim.OrderNo)

	s.settleReleases(t, p.ID)
	s.confirm(t, []store.Item{over}, store.ConfirmReplay)
	equal(t, "owed after a replay", len(s.owed(t, p.ID)), 1)
}

func groupLimit(t *testing.T, s *suite) {
	head := s.preheated(t, perUser(2))
	member := s.preheated(t, inGroup(head.ID), perUser(2))
	s.buy(t, head, "buyer", key("k1"))
	second := s.buy(t, member, "buyer", key("k2"))
	s.confirm(t, []store.Item{s.item(t, head, "buyer")}, store.ConfirmOverLimit)
	s.confirm(t, []store.Item{s.item(t, member, "buyer")}, store.ConfirmOverLimit)
	s.confirm(t, []store.Item{s.item(t, member, "other", quantity(2))}, store.ConfirmNew)

	s.cancel(t, second)
	duplicate := s.item(t, head, "buyer", key("k2"))
	s.confirm(t, []store.Item{duplicate, s.item(t, head, "buyer")}, store.ConfirmDuplicate, store.ConfirmNew)
	equal(t, "reason", s.order(t, duplicate.Claim.OrderNo).Reason, seckill.ReasonDuplicate)
	equal(t, "stock of the head", s.product(t, head.ID).Stock, head.Stock-2)
	equal(t, "stock of the member", s.product(t, member.ID).Stock, member.Stock-2)
}

func duplicateKey(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(5))
	first := s.buy(t, p, "buyer", key("k"))
	for range 2 { // the second duplicate must not fail because of the first one's row
		duplicate := s.item(t, p, "buyer", key("k"))
		s.confirm(t, []store.Item{duplicate}, store.ConfirmDuplicate)
		order := s.order(t, duplicate.Claim.OrderNo)
		equal(t, "status", order.Status, seckill.OrderFailed)
		equal(t, "reason", order.Reason, seckill.ReasonDuplicate)
	}
	equal(t, "releases owed", len(s.owed(t, p.ID)), 2)
	equal(t, "the first order", s.order(t, first.OrderNo), first)
	equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-1)
}

func binaryBuyers(t *testing.T, s *suite) {
	buyers := []string{
		"Bob", "bob", "bob ", " bob", "BOB", "bób", "bo\u0301b", "鲍勃", "ß", "ss", "0", "00", "1e1", "10", "%", "_", "'", `\`, "ﬀ", "😀", "😁",
	}
	p := s.preheated(t, stock(int64(len(buyers))))
	orders := map[string]seckill.Order{}
	for _, buyer := range buyers {
		orders[buyer] = s.buy(t, p, buyer)
	}
	for _, buyer := range buyers {
		found, err := s.Store.SearchOrders(t.Context(), store.OrderFilter{Buyer: buyer, ProductID: p.ID, Limit: all})
		must(t, err)
		equal(t, "orders of "+buyer, found, []seckill.Order{orders[buyer]})
	}
}

func longClaim(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3))
	buyer := strings.Repeat("鲍", 20) + "😀"
	long := s.item(t, p, buyer, key(strings.Repeat("é", 32)), ref(strings.Repeat("😀", 32)))
	long.Name = strings.Repeat("名", 66) + "ab"
	must(t, seckill.CheckBuyer(buyer))
	must(t, seckill.CheckKey(long.Claim.Key))
	must(t, seckill.CheckRef(long.Claim.Ref))
	// The values of near differ from those of long only in the last byte.
	near := s.item(t, p, buyer[:60]+"😁", key(long.Claim.Key[:62]+"è"), ref(long.Claim.Ref))
	s.confirm(t, []store.Item{long, near}, store.ConfirmNew, store.ConfirmNew)

	order := s.order(t, long.Claim.OrderNo)
	equal(t, "buyer", order.Buyer, buyer)
	equal(t, "key", order.Key, long.Claim.Key)
	equal(t, "ref", order.Ref, long.Claim.Ref)
	equal(t, "name", order.ProductName, long.Name)
	s.confirm(t, []store.Item{s.item(t, p, buyer, key(long.Claim.Key))}, store.ConfirmDuplicate)
	event := s.events(t, p.ID)[len(s.events(t, p.ID))-1]
	equal(t, "buyer of the event", event.Buyer, buyer)
}
