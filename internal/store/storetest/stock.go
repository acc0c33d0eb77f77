package storetest

import (
	"slices"
	"testing"

	"seckill"
	"seckill/internal/store"
)

var stockTests = []test{
	{"a change up grows stock and offered at once and owes the ledger", changeUp},
	{"a change down takes its units when it is finished", changeDown},
	{"a change down that is refused has no effect", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		change := s.change(t, p, -4)
		got, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, true)
		must(t, err)
		equal(t, "status", got.Status, "refused")
		s.stockIs(t, p.ID, p.Stock, p.Offered)
		equal(t, "due", s.changeDue(t, change.ID), false)
	}},
	{"a change down beyond the stock is bad_request", func(t *testing.T, s *suite) {
		p, cold := s.preheated(t), s.create(t)
		s.buy(t, p, "buyer")
		for id, delta := range map[uint32]int64{p.ID: -p.Stock, cold.ID: -cold.Stock - 1} {
			s.wantUnchanged(t, id, func() {
				change := store.StockChange{ID: numbered("beyond", int(id)), ProductID: id, Delta: delta, Actor: operator}
				_, err := s.Store.BeginStockChange(t.Context(), change)
				wantCode(t, err, seckill.CodeBadRequest)
				equal(t, "due", s.changeDue(t, change.ID), false)
			})
		}
	}},
	{"beginning a change again returns the recorded change", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		for _, delta := range []int64{5, -5} {
			first := s.change(t, p, delta)
			s.wantUnchanged(t, p.ID, func() { equal(t, "recorded", s.change(t, p, delta), first) })
			other := first
			other.Delta, other.Actor = 2*delta, store.Actor{Name: "else"}
			s.wantUnchanged(t, p.ID, func() {
				got, err := s.Store.BeginStockChange(t.Context(), other)
				must(t, err)
				equal(t, "recorded", got, first)
			})
			done, err := s.Store.FinishStockChange(t.Context(), first.ID, first.Epoch, false)
			must(t, err)
			s.wantUnchanged(t, p.ID, func() { equal(t, "recorded", s.change(t, p, delta), done) })
		}
	}},
	{"finishing a change again changes nothing", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		for _, delta := range []int64{5, -5} {
			change := s.change(t, p, delta)
			first, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
			must(t, err)
			s.wantUnchanged(t, p.ID, func() {
				again, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
				must(t, err)
				equal(t, "finished", again, first)
			})
		}
		s.stockIs(t, p.ID, p.Stock, p.Offered)
	}},
	{"a change down is settled only in its epoch, and can be restamped", restampedChange},
	{"a change up is finished at any epoch", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		change := s.change(t, p, 5)
		s.openEpoch(t, p.ID)
		got, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
		must(t, err)
		equal(t, "status", got.Status, "done")
		s.stockIs(t, p.ID, p.Stock+5, p.Offered+5)
	}},
	{"before the first preheat a change is done at once", func(t *testing.T, s *suite) {
		p := s.create(t)
		for _, delta := range []int64{7, -12} {
			change := s.change(t, p, delta)
			equal(t, "status", change.Status, "done")
			equal(t, "due", s.changeDue(t, change.ID), false)
		}
		s.stockIs(t, p.ID, 5, 5)
		s.change(t, p, -5)
		s.stockIs(t, p.ID, 0, 0)
	}},
	{"added units can be sold", func(t *testing.T, s *suite) {
		p := s.preheated(t, stock(1))
		s.buy(t, p, "a")
		s.change(t, p, 1)
		s.buy(t, p, "b")
		equal(t, "stock", s.product(t, p.ID).Stock, 0)
	}},
	{"a stock change writes the audit", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		before := len(s.audit(t, p.ID))
		for _, delta := range []int64{3, -3} {
			_, err := s.Store.FinishStockChange(t.Context(), s.change(t, p, delta).ID, p.Epoch, false)
			must(t, err)
		}
		lines := s.audit(t, p.ID)
		if len(lines) < before+2 {
			t.Fatalf("audit has %d lines, want at least two more than %d", len(lines), before)
		}
		equal(t, "who", lines[0].Actor, operator.Name)
		equal(t, "why", lines[0].Reason, operator.Reason)
	}},
	{"an unknown change is not_found", func(t *testing.T, s *suite) {
		id := numbered("unknown", int(newProductID()))
		_, err := s.Store.FinishStockChange(t.Context(), id, 1, false)
		wantCode(t, err, seckill.CodeNotFound)
		_, err = s.Store.RestampStockChange(t.Context(), id)
		wantCode(t, err, seckill.CodeNotFound)
	}},
	{"at most limit changes are listed", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		for delta := range int64(3) {
			s.change(t, p, delta+1)
		}
		due, err := s.Store.StockChangesDue(t.Context(), 2)
		must(t, err)
		equal(t, "listed", len(due), 2)
	}},
}

// change begins a change. The same delta of the same product gives the same id.
func (s *suite) change(t *testing.T, p seckill.Product, delta int64) store.StockChange {
	t.Helper()
	got, err := s.Store.BeginStockChange(t.Context(), store.StockChange{
		ID: numbered(numbered("change", int(p.ID)), int(delta)), ProductID: p.ID, Delta: delta, Actor: operator,
	})
	must(t, err)
	return got
}

func (s *suite) changeDue(t *testing.T, id string) bool {
	t.Helper()
	due, err := s.Store.StockChangesDue(t.Context(), all)
	must(t, err)
	return slices.ContainsFunc(due, func(c store.StockChange) bool { return c.ID == id })
}

func (s *suite) stockIs(t *testing.T, id uint32, stock, offered int64) {
	t.Helper()
	p := s.product(t, id)
	equal(t, "stock", p.Stock, stock)
	equal(t, "offered", p.Offered, offered)
}

func changeUp(t *testing.T, s *suite) {
	p, before := s.preheated(t), s.now(t)
	change := s.change(t, p, 5)
	if !around(change.CreatedAt, before, s.now(t)) {
		t.Errorf("created at %s, want the store's now", change.CreatedAt)
	}
	equal(t, "change", change, store.StockChange{
		ID: change.ID, ProductID: p.ID, Delta: 5, Epoch: p.Epoch, Status: "open", Actor: operator, CreatedAt: change.CreatedAt,
	})
	s.stockIs(t, p.ID, p.Stock+5, p.Offered+5)
	if version := s.product(t, p.ID).Version; version <= p.Version {
		t.Errorf("version is %d, was %d", version, p.Version)
	}
	equal(t, "due", s.changeDue(t, change.ID), true)
	equal(t, "open by the figures", s.figures(t, p.ID).OpenChanges, 1)

	done, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
	must(t, err)
	equal(t, "status", done.Status, "done")
	s.stockIs(t, p.ID, p.Stock+5, p.Offered+5)
	equal(t, "due", s.changeDue(t, change.ID), false)
	equal(t, "open by the figures", s.figures(t, p.ID).OpenChanges, 0)
}

func changeDown(t *testing.T, s *suite) {
	p := s.preheated(t)
	change := s.change(t, p, -4)
	equal(t, "status", change.Status, "open")
	equal(t, "epoch", change.Epoch, p.Epoch)
	s.stockIs(t, p.ID, p.Stock, p.Offered)
	equal(t, "due", s.changeDue(t, change.ID), true)

	done, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
	must(t, err)
	equal(t, "status", done.Status, "done")
	s.stockIs(t, p.ID, p.Stock-4, p.Offered-4)
	if version := s.product(t, p.ID).Version; version <= p.Version {
		t.Errorf("version is %d, was %d", version, p.Version)
	}
	equal(t, "due", s.changeDue(t, change.ID), false)
}

func restampedChange(t *testing.T, s *suite) {
	p := s.preheated(t)
	change := s.change(t, p, -4)
	next := s.openEpoch(t, p.ID)
	s.wantUnchanged(t, p.ID, func() {
		_, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
		wantError(t, err, store.ErrEpoch)
	})
	equal(t, "due", s.changeDue(t, change.ID), true)

	again, err := s.Store.RestampStockChange(t.Context(), change.ID)
	must(t, err)
	equal(t, "epoch", again.Epoch, next.Epoch)
	equal(t, "status", again.Status, "open")
	for _, refused := range []bool{false, true} { // the decision of an old ledger
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, refused)
			wantError(t, err, store.ErrEpoch)
		})
	}
	equal(t, "due", s.changeDue(t, change.ID), true)
	done, err := s.Store.FinishStockChange(t.Context(), change.ID, again.Epoch, false)
	must(t, err)
	equal(t, "status", done.Status, "done")
	s.stockIs(t, p.ID, p.Stock-4, p.Offered-4)
	late, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, true)
	must(t, err)
	equal(t, "a change that is done", late, done)

	s.openEpoch(t, p.ID)
	still, err := s.Store.RestampStockChange(t.Context(), change.ID)
	must(t, err)
	equal(t, "a change that is done", still, done)
}
