package storetest

import (
	"errors"
	"slices"
	"testing"

	"seckill"
	"seckill/internal/store"
)

var traceTests = []test{
	{"a walk hands over what a ledger can know of the orders", walkedOrders},
	{"a walk ends with the error of who walks", func(t *testing.T, s *suite) {
		p := s.history(t)
		enough, met := errors.New("enough"), 0
		err := s.Store.WalkOrders(t.Context(), p.ID, func(store.Trace) error { met++; return enough })
		if !errors.Is(err, enough) || met != 1 {
			t.Errorf("%v after %d orders", err, met)
		}
	}},
	{"a walk goes on over a number that is none", func(t *testing.T, s *suite) {
		p := s.damaged(t)
		order := s.buy(t, p, "altered")
		s.Exec(t, "UPDATE tb_seckill_order SET order_no = 'none' WHERE order_no = ?", order.OrderNo.String())
		t.Cleanup(func() { s.Exec(t, "DELETE FROM tb_seckill_order WHERE order_no = 'none'") }) // others list them all
		found := false
		must(t, s.Store.WalkOrders(t.Context(), p.ID, func(trace store.Trace) error {
			found = found || trace == store.Trace{Buyer: "altered", Quantity: 1, Marked: true}
			return nil
		}))
		equal(t, "found", found, true)
	}},
	{"a walk over nothing", func(t *testing.T, s *suite) {
		must(t, s.Store.WalkOrders(t.Context(), s.create(t).ID, func(trace store.Trace) error {
			t.Errorf("met %+v", trace)
			return nil
		}))
	}},
}

func walkedOrders(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3), share(0.5))
	other := s.preheated(t)
	s.buy(t, other, "elsewhere")
	keyed := key("k")
	of := func(o seckill.Order, marked bool) store.Trace {
		return store.Trace{OrderNo: o.OrderNo, Buyer: o.Buyer, Quantity: o.Quantity, Key: o.Key, Marked: marked}
	}
	known := func(trace store.Trace) store.Trace {
		trace.Known = true
		return trace
	}
	want := []store.Trace{
		of(s.buy(t, p, "pending", func(i *store.Item) { i.Claim.Quantity = 2 }), true),
		of(s.pay(t, s.buy(t, p, "paid", keyed)), true),
		known(of(s.cancel(t, s.buy(t, p, "dead, with a key", keyed)), false)),
		of(s.buyOver(t, p, "over the counter"), false),
		of(s.cancel(t, s.buyOver(t, p, "dead, over the counter", keyed)), false),
	}
	s.cancel(t, s.buy(t, p, "dead and heard"))
	s.hear(t, p.ID)
	want = append(want, of(s.cancel(t, s.buy(t, p, "dead and owed")), false))
	var got []store.Trace
	must(t, s.Store.WalkOrders(t.Context(), p.ID, func(trace store.Trace) error {
		got = append(got, trace)
		return nil
	}))
	for _, list := range [][]store.Trace{got, want} {
		slices.SortFunc(list, func(a, b store.Trace) int { return slices.Compare(a.OrderNo[:], b.OrderNo[:]) })
	}
	if !slices.Equal(got, want) {
		t.Errorf("met %+v\nwant %+v", got, want)
	}
}
