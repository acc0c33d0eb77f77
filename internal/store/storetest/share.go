package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/store"
)

var shareTests = []test{
	{"the share is the fraction of the stock, floored, as it was written", func(t *testing.T, s *suite) {
		for _, c := range []struct {
			stock int64
			share float64
			want  int64
		}{{1000, 0.1, 100}, {100, 0.29, 29}, {10, 0.999, 9}, {3, 0.3333333333333333, 0}, {7, 1, 7}, {0, 0.5, 0}, {seckill.MaxStock, 0.07, 7_000_000}} {
			p := s.create(t, stock(c.stock), share(c.share))
			equal(t, "share", p.ShareLeft, c.want)
			equal(t, "share read", s.product(t, p.ID).ShareLeft, c.want)
			equal(t, "stock", p.Stock, c.stock)
		}
	}},
	{"a direct product has no share", func(t *testing.T, s *suite) {
		draft := s.draft(t)
		draft.Strategy, draft.FallbackShare = seckill.StrategyDirect, 0.1
		_, err := s.Store.CreateProduct(t.Context(), draft, operator)
		refused(t, err, seckill.CodeBadRequest)
		p := s.preheated(t, direct)
		equal(t, "share", p.ShareLeft, 0)
		equal(t, "allottable", p.Allottable(), 0)
	}},
	{"direct products share a limit with direct ones only", func(t *testing.T, s *suite) {
		head, ledgers := s.create(t, direct), s.create(t)
		s.create(t, direct, inGroup(head.ID))
		for group, edit := range map[uint32]func(*seckill.Product){head.ID: share(0), ledgers.ID: direct} {
			draft := s.draft(t)
			edit(&draft)
			draft.Group = group
			_, err := s.Store.CreateProduct(t.Context(), draft, operator)
			refused(t, err, seckill.CodeBadRequest)
		}
	}},
	{"before the first preheat the share follows the stock", func(t *testing.T, s *suite) {
		p := s.create(t, stock(10), share(0.5))
		for _, step := range []struct{ delta, share int64 }{{5, 7}, {-15, 0}, {9, 4}} {
			s.change(t, p, step.delta)
			equal(t, "share", s.product(t, p.ID).ShareLeft, step.share)
		}
		s.openEpoch(t, p.ID)
		s.change(t, p, 100)
		equal(t, "share after a change of a preheated product", s.product(t, p.ID).ShareLeft, 4)
	}},
	{"a change down takes nothing of the share", func(t *testing.T, s *suite) {
		p := s.preheated(t, stock(10), share(0.4))
		s.unchanged(t, p.ID, func() {
			_, err := s.Store.BeginStockChange(t.Context(), store.StockChange{ID: numbered("deep", int(p.ID)), ProductID: p.ID, Delta: -7, Actor: operator})
			refused(t, err, seckill.CodeBadRequest)
		})
		change := s.change(t, p, -6)
		s.buy(t, p, "buyer")
		s.unchanged(t, p.ID, func() {
			_, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
			fails(t, err, store.ErrShort)
		})
	}},
	{"a stock change of a direct product is done at once, up and down", func(t *testing.T, s *suite) {
		p := s.preheated(t, direct)
		for _, delta := range []int64{5, -12} {
			equal(t, "status", s.change(t, p, delta).Status, store.ChangeDone)
		}
		s.stockIs(t, p.ID, 3, 3)
		equal(t, "open by the figures", s.figures(t, p.ID).OpenChanges, 0)
		equal(t, "changes by the figures", s.figures(t, p.ID).Changes, 2)
		_, err := s.Store.BeginStockChange(t.Context(), store.StockChange{ID: numbered("deep", int(p.ID)), ProductID: p.ID, Delta: -4, Actor: operator})
		refused(t, err, seckill.CodeBadRequest)
	}},
	{"what is left of a share is taken as an open change that adds nothing", tookShare},
	{"a share that is taken again under its id is taken once", func(t *testing.T, s *suite) {
		p := s.preheated(t, share(0.5))
		first := s.takeShare(t, p, "one")
		s.unchanged(t, p.ID, func() { equal(t, "again", s.takeShare(t, p, "one"), first) })
		s.openEpoch(t, p.ID)
		done, err := s.Store.FinishStockChange(t.Context(), first.ID, first.Epoch, false)
		must(t, err)
		s.unchanged(t, p.ID, func() { equal(t, "again when done", s.takeShare(t, p, "one"), done) })
	}},
	{"with nothing left there is nothing to take", func(t *testing.T, s *suite) {
		for _, p := range []seckill.Product{s.preheated(t), s.preheated(t, direct), s.preheated(t, share(0.01))} {
			s.unchanged(t, p.ID, func() {
				change := s.takeShare(t, p, "one")
				equal(t, "status", change.Status, store.ChangeDone)
				equal(t, "delta", change.Delta, 0)
			})
		}
	}},
	{"units that return after the share was taken can be taken again", func(t *testing.T, s *suite) {
		p := s.preheated(t, stock(10), share(0.2))
		order := s.buyOver(t, p, "buyer")
		equal(t, "taken", s.takeShare(t, p, "one").Delta, 1)
		s.cancel(t, order)
		equal(t, "share", s.product(t, p.ID).ShareLeft, 1)
		equal(t, "taken again", s.takeShare(t, p, "two").Delta, 1)
		equal(t, "open changes", s.figures(t, p.ID).OpenChanges, 2)
	}},
	{"the ledger may sell what was taken", func(t *testing.T, s *suite) {
		p := s.preheated(t, stock(2), share(0.5))
		s.buy(t, p, "a")
		item := s.item(t, p, "b")
		_, err := s.Store.Confirm(t.Context(), request(item))
		fails(t, err, store.ErrShort)
		s.takeShare(t, p, "one")
		s.confirm(t, []store.Item{item}, store.ConfirmNew)
	}},
	{"a snapshot after the share was taken allots it", func(t *testing.T, s *suite) {
		p := s.preheated(t, stock(10), share(0.5))
		equal(t, "allottable", p.Allottable(), 5)
		change := s.takeShare(t, p, "one")
		next := s.openEpoch(t, p.ID)
		equal(t, "allottable in the next epoch", next.Allottable(), 10)
		equal(t, "epoch of the change", change.Epoch, p.Epoch)
	}},
	{"a change id of another change is wrong_state", func(t *testing.T, s *suite) {
		p, other := s.preheated(t, share(0.5)), s.preheated(t, share(0.5))
		operators := s.change(t, p, 3)
		taken := s.takeShare(t, other, "one")
		for _, id := range []string{operators.ID, taken.ID} {
			s.unchanged(t, p.ID, func() {
				_, err := s.Store.TakeShare(t.Context(), p.ID, id, operator)
				refused(t, err, seckill.CodeWrongState)
			})
		}
	}},
	{"a share needs an id, a product and a preheat", func(t *testing.T, s *suite) {
		cold := s.create(t, share(0.5))
		for _, c := range []struct {
			product uint32
			id      string
			want    seckill.Code
		}{
			{cold.ID, "", seckill.CodeBadRequest},
			{cold.ID, numbered("cold", int(cold.ID)), seckill.CodeWrongState},
			{newProductID(), numbered("none", int(cold.ID)), seckill.CodeNotFound},
		} {
			_, err := s.Store.TakeShare(t.Context(), c.product, c.id, operator)
			refused(t, err, c.want)
		}
	}},
}

// takeShare takes what is left of the share; the same name is the same id.
func (s *suite) takeShare(t *testing.T, p seckill.Product, name string) store.StockChange {
	t.Helper()
	change, err := s.Store.TakeShare(t.Context(), p.ID, numbered("share-"+name, int(p.ID)), operator)
	must(t, err)
	return change
}

func tookShare(t *testing.T, s *suite) {
	p := s.preheated(t, stock(10), share(0.5))
	s.buyOver(t, p, "buyer")
	var change store.StockChange
	s.audited(t, p.ID, func() { change = s.takeShare(t, p, "one") })
	equal(t, "change", change, store.StockChange{
		ID: change.ID, ProductID: p.ID, Delta: 4, Epoch: p.Epoch, Status: store.ChangeOpen, FromShare: true,
		Actor: operator, CreatedAt: change.CreatedAt,
	})
	now := s.product(t, p.ID)
	equal(t, "share", now.ShareLeft, 0)
	s.stockIs(t, p.ID, 9, 10)
	if now.Version <= p.Version {
		t.Errorf("version is %d, was %d", now.Version, p.Version)
	}
	equal(t, "due", s.changeDue(t, change.ID), true)
	equal(t, "open by the figures", s.figures(t, p.ID).OpenChanges, 1)
	equal(t, "changes by the figures", s.figures(t, p.ID).Changes, 1)

	_, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, true)
	refused(t, err, seckill.CodeWrongState)
	done, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
	must(t, err)
	equal(t, "status", done.Status, store.ChangeDone)
	s.stockIs(t, p.ID, 9, 10)
	equal(t, "share", s.product(t, p.ID).ShareLeft, 0)
}
