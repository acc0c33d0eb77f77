package storetest

import (
	"slices"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// Rows whose order number somebody altered into none hold up no other row:
// these tests put several of them, of one product, before one of another
// product.
var unreadableTests = []test{
	{"an order that cannot be read keeps no other from expiring", func(t *testing.T, s *suite) {
		p, other := s.exposed(t), s.preheated(t)
		var nos []seckill.OrderNo
		for i := range len(noNumbers) {
			nos = append(nos, s.buyFor(t, p, numbered("altered", i), tick).OrderNo)
		}
		s.advance(t, tick)
		due := s.buyFor(t, other, "buyer", tick)
		s.alter(t, "tb_seckill_order", nos)
		s.advance(t, 2*tick)
		expired, err := s.Store.Expire(t.Context(), all)
		must(t, err)
		equal(t, "expired", numbersOf(expired), []seckill.OrderNo{due.OrderNo})
		equal(t, "expired by number", len(s.expireOrders(t, append(nos, due.OrderNo)...)), 0)
	}},
	{"an order that cannot be read keeps no other from being warned of", func(t *testing.T, s *suite) {
		p, other := s.exposed(t), s.preheated(t)
		s.alter(t, "tb_seckill_order", s.buyMany(t, p))
		s.advance(t, tick)
		soon := s.buy(t, other, "buyer")
		warned, err := s.Store.WarnExpiring(t.Context(), 2*far, all)
		must(t, err)
		equal(t, "warned", warned, 1)
		equal(t, "events", s.count(t, other.ID, seckill.EventOrderExpiring), 1)
		s.cancel(t, soon)
	}},
	{"an order that cannot be read is left out of a search", func(t *testing.T, s *suite) {
		p := s.exposed(t)
		first, second := s.buy(t, p, "first"), s.buy(t, p, "second")
		s.alter(t, "tb_seckill_order", s.buyMany(t, p))
		found, err := s.Store.SearchOrders(t.Context(), store.OrderFilter{ProductID: p.ID, Limit: all})
		must(t, err)
		equal(t, "found", numbersOf(found), []seckill.OrderNo{second.OrderNo, first.OrderNo})
	}},
	{"a release that cannot be read holds up no other", func(t *testing.T, s *suite) {
		before, err := s.Store.ReleasesDue(t.Context(), all) // of other tests
		must(t, err)
		must(t, s.Store.ReleasesHeard(t.Context(), before))
		p, other := s.exposed(t), s.preheated(t)
		nos := s.buyMany(t, p)
		for _, no := range nos {
			s.cancel(t, s.order(t, no))
		}
		s.advance(t, tick)
		owed := s.cancel(t, s.buy(t, other, "buyer"))
		s.alter(t, "tb_seckill_order", nos)
		due, err := s.Store.ReleasesDue(t.Context(), all)
		must(t, err)
		equal(t, "due", len(due), 1)
		equal(t, "number", due[0].OrderNo, owed.OrderNo)
		s.hear(t, other.ID)
	}},
	{"a letter that cannot be read holds up no other", unreadableLetters},
	{"an event that cannot be read does not stop the feed", func(t *testing.T, s *suite) {
		p, other := s.exposed(t), s.preheated(t)
		start := s.lastEvent(t)
		nos := s.buyMany(t, p)
		order := s.buy(t, other, "buyer")
		s.alter(t, "tb_event", nos)
		events, err := s.Store.Events(t.Context(), start, all)
		must(t, err)
		equal(t, "events", len(events), 1)
		equal(t, "order", events[0].OrderNo, order.OrderNo)
		equal(t, "id", events[0].ID, start+int64(len(nos))+1)
	}},
	{"who is over the limit is told of the orders that can be read", func(t *testing.T, s *suite) {
		p := s.exposed(t)
		altered, held := s.buy(t, p, "buyer", quantity(2)), s.buy(t, p, "buyer")
		s.alter(t, "tb_seckill_order", []seckill.OrderNo{altered.OrderNo})
		p = s.takeOver(t, p.ID)
		got := s.sell(t, p, s.claim(t, p, "buyer")).Verdicts[0]
		equal(t, "verdict", got.Code, ledger.VerdictOverLimit)
		equal(t, "held", got.Held, []seckill.OrderNo{held.OrderNo})
	}},
}

// noNumbers are texts that are no order numbers.
var noNumbers = []string{"none", "x", "SK" + strings.Repeat("I", 26), "sk" + strings.Repeat("0", 25) + "1"}

// alter overwrites order numbers of a table until the test ends.
func (s *suite) alter(t *testing.T, table string, nos []seckill.OrderNo) {
	t.Helper()
	for i, no := range nos {
		s.Exec(t, "UPDATE "+table+" SET order_no = ? WHERE order_no = ?", noNumbers[i], no.String())
		t.Cleanup(func() { s.Exec(t, "UPDATE "+table+" SET order_no = ? WHERE order_no = ?", no.String(), noNumbers[i]) })
	}
}

// buyMany buys as many orders as there are texts to alter them.
func (s *suite) buyMany(t *testing.T, p seckill.Product) (nos []seckill.OrderNo) {
	t.Helper()
	for i := range noNumbers {
		nos = append(nos, s.buy(t, p, numbered("altered", i)).OrderNo)
	}
	return nos
}

func numbersOf(orders []seckill.Order) (nos []seckill.OrderNo) {
	for _, order := range orders {
		nos = append(nos, order.OrderNo)
	}
	return nos
}

func unreadableLetters(t *testing.T, s *suite) {
	p, other := s.exposed(t), s.preheated(t)
	var nos []seckill.OrderNo
	var ids []int64
	for i := range noNumbers {
		item := s.item(t, p, numbered("altered", i))
		must(t, s.park(t, p, item, 0))
		ids, nos = append(ids, s.letterOf(t, item).ID), append(nos, item.Claim.OrderNo)
	}
	s.advance(t, tick)
	item := s.item(t, other, "buyer")
	must(t, s.park(t, other, item, 0))
	letter := s.letterOf(t, item)
	s.alter(t, "tb_dead_letter", nos)
	s.advance(t, tick)
	only := func(letters []store.Letter, err error) {
		t.Helper()
		must(t, err)
		equal(t, "letters", len(letters), 1)
		equal(t, "id", letters[0].ID, letter.ID)
	}
	only(s.Store.LettersDue(t.Context(), all))
	only(s.Store.Letters(t.Context(), store.LetterFilter{After: slices.Min(ids) - 1, Limit: all}))
	if _, err := s.Store.RetryLetter(t.Context(), ids[0], operator); err == nil {
		t.Error("a letter that cannot be read was retried")
	}
	for _, id := range append(ids, letter.ID) {
		must(t, s.Store.LetterFailed(t.Context(), id, "no hope", -1))
	}
	s.advance(t, tick)
	discarded, err := s.Store.DiscardDead(t.Context(), 0, all)
	must(t, err)
	equal(t, "discarded", discarded, 1)
	equal(t, "status", s.order(t, item.Claim.OrderNo).Status, seckill.OrderFailed)
}
