package storetest

import (
	"testing"

	"seckill"
)

// A row whose order number was overwritten must not block rows of other products in lists that
// serve all products.
var unreadableTests = []test{
	{"an unreadable order does not keep other products' orders from expiring", func(t *testing.T, s *suite) {
		p, other := s.damageable(t), s.preheated(t)
		no := s.buyFor(t, p, "altered", tick).OrderNo
		s.advance(t, tick)
		due := s.buyFor(t, other, "buyer", tick)
		s.alter(t, "tb_seckill_order", no)
		s.advance(t, 2*tick)
		expired, err := s.Store.Expire(t.Context(), 1)
		must(t, err)
		equal(t, "expired", numbersOf(expired), []seckill.OrderNo{due.OrderNo})
	}},
	{"an unreadable release does not block others", func(t *testing.T, s *suite) {
		before, err := s.Store.ReleasesDue(t.Context(), all) // of other tests
		must(t, err)
		must(t, s.Store.SettleReleases(t.Context(), before))
		p, other := s.damageable(t), s.preheated(t)
		altered := s.cancel(t, s.buy(t, p, "altered"))
		s.advance(t, tick)
		owed := s.cancel(t, s.buy(t, other, "buyer"))
		s.alter(t, "tb_seckill_order", altered.OrderNo)
		due, err := s.Store.ReleasesDue(t.Context(), all)
		must(t, err)
		equal(t, "due", len(due), 1)
		equal(t, "number", due[0].OrderNo, owed.OrderNo)
		s.settleReleases(t, other.ID)
	}},
	{"an unreadable letter does not block others", func(t *testing.T, s *suite) {
		p, other := s.damageable(t), s.preheated(t)
		altered, item := s.item(t, p, "altered"), s.item(t, other, "buyer")
		must(t, s.park(t, p, altered, 0))
		must(t, s.park(t, other, item, 0))
		bad, letter := s.letterOf(t, altered), s.letterOf(t, item)
		s.alter(t, "tb_dead_letter", altered.Claim.OrderNo)
		s.advance(t, tick)
		due, err := s.Store.LettersDue(t.Context(), all)
		must(t, err)
		equal(t, "letters", len(due), 1)
		equal(t, "id", due[0].ID, letter.ID)
		for _, id := range []int64{bad.ID, letter.ID} {
			must(t, s.Store.LetterFailed(t.Context(), id, "no hope", -1))
		}
		s.advance(t, tick)
		discarded, err := s.Store.DiscardDead(t.Context(), 0, 1)
		must(t, err)
		equal(t, "discarded", discarded, 1)
		equal(t, "status", s.order(t, item.Claim.OrderNo).Status, seckill.OrderFailed)
	}},
}

// alter overwrites an order number in a table until the test ends.
func (s *suite) alter(t *testing.T, table string, no seckill.OrderNo) {
	t.Helper()
	s.Exec(t, "UPDATE "+table+" SET order_no = 'none' WHERE order_no = ?", no.String())
	t.Cleanup(func() { s.Exec(t, "UPDATE "+table+" SET order_no = ? WHERE order_no = 'none'", no.String()) })
}

func numbersOf(orders []seckill.Order) (nos []seckill.OrderNo) {
	for _, order := range orders {
		nos = append(nos, order.OrderNo)
	}
	return nos
}
