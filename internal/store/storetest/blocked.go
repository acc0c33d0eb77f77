package storetest

import (
	"testing"

	"seckill"
)

// A due row that cannot be settled must not block rows of other products. These tests put
// several such rows before a row of another product, and ask for fewer rows than that.
var blockedTests = []test{
	{"orders of a missing product do not block warnings for others", func(t *testing.T, s *suite) {
		p, other := s.damageable(t), s.preheated(t)
		s.buy(t, p, "held up")
		s.buy(t, other, "buyer")
		mend := s.disown(t, p, "tb_seckill_order")
		_, err := s.Store.WarnExpiring(t.Context(), 2*far, all)
		must(t, err)
		equal(t, "warned", s.count(t, other.ID, seckill.EventOrderExpiring), 1)
		mend()
	}},
	{"orders of a missing product do not keep others from expiring", func(t *testing.T, s *suite) {
		blockedOrders(t, s, func(p seckill.Product) (mend func()) { return s.disown(t, p, "tb_seckill_order") })
	}},
}

const (
	// heldUp is the number of rows that cannot be settled.
	heldUp = 4
	// nobody is the id of a product that does not exist.
	nobody = 4_000_000_000
)

// blockedOrders makes due orders that harm keeps from expiring, and a later order of another
// product, which expires. The first ones expire after mend.
func blockedOrders(t *testing.T, s *suite, harm func(p seckill.Product) (mend func())) {
	t.Helper()
	p, other := s.damageable(t), s.preheated(t)
	var nos []seckill.OrderNo
	for i := range heldUp {
		nos = append(nos, s.buyFor(t, p, numbered("held up", i), 2*tick).OrderNo)
	}
	s.advance(t, tick)
	due := s.buyFor(t, other, "buyer", 2*tick)
	mend := harm(p)
	s.advance(t, 3*tick)
	for _, want := range [][]seckill.OrderNo{{due.OrderNo}, nil} {
		expired, err := s.Store.Expire(t.Context(), 1)
		must(t, err)
		equal(t, "expired", numbersOf(expired), want)
	}
	equal(t, "stock", s.product(t, other.ID).Stock, other.Stock)
	for _, no := range nos {
		equal(t, "status of the waiting order", s.order(t, no).Status, seckill.OrderPending)
	}
	mend()
	expired, err := s.Store.Expire(t.Context(), all)
	must(t, err)
	equal(t, "expired after the mend", len(expired), heldUp)
	CheckPromises(t, s.Store, p.ID)
}

// disown moves rows of a product to a product that does not exist.
func (s *suite) disown(t *testing.T, p seckill.Product, table string) (mend func()) {
	t.Helper()
	s.Exec(t, "UPDATE "+table+" SET product_id = ? WHERE product_id = ?", nobody, p.ID)
	return func() { s.Exec(t, "UPDATE "+table+" SET product_id = ? WHERE product_id = ?", p.ID, nobody) }
}
