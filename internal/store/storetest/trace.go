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
	{"a walk says what no engine wrote", wrongRows},
	{"a walk over nothing", func(t *testing.T, s *suite) {
		must(t, s.Store.WalkOrders(t.Context(), s.create(t).ID, func(trace store.Trace) error {
			t.Errorf("met %+v", trace)
			return nil
		}))
	}},
}

func walkedOrders(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3))
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
		of(s.failed(t, p, "failed, with a key", keyed), false),
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

// failed is an order that was refused adoption.
func (s *suite) failed(t *testing.T, p seckill.Product, buyer string, edits ...func(*store.Item)) seckill.Order {
	t.Helper()
	item := s.item(t, p, buyer, edits...)
	must(t, s.Store.Fail(t.Context(), []store.Item{item}, seckill.ReasonLost))
	return s.order(t, item.Claim.OrderNo)
}

func wrongRows(t *testing.T, s *suite) {
	p := s.damaged(t)
	for name, c := range map[string]struct{ set, wrong string }{
		"group":            {"limit_group = limit_group + 1", "a limit group that is not the product's"},
		"shard":            {"shard = shard + 1", "a shard that is not its buyer's"},
		"owed for ever":    {"release_epoch = 1, release_time = NULL", "a release that is owed and not due, or due and not owed"},
		"due, not owed":    {"status = 2, release_epoch = NULL, release_time = 1", "a release that is owed and not due, or due and not owed"},
		"pending for ever": {"pay_before = NULL", "no end of its time to pay"},
		"status":           {"status = 9", "an unknown status"},
		"sound":            {"reason = 'a word'", ""},
	} {
		order := s.buy(t, p, name)
		s.Exec(t, "UPDATE tb_seckill_order SET "+c.set+" WHERE order_no = ?", order.OrderNo.String())
		wrong := "nothing, it was not met"
		must(t, s.Store.WalkOrders(t.Context(), p.ID, func(trace store.Trace) error {
			if trace.OrderNo == order.OrderNo {
				wrong = trace.Wrong
			}
			return nil
		}))
		equal(t, name, wrong, c.wrong)
		s.Exec(t, "DELETE FROM tb_seckill_order WHERE order_no = ?", order.OrderNo.String()) // others list them all
	}
}
