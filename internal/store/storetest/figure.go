package storetest

import (
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

var figureTests = []test{
	{"figures count units by status", figuresByStatus},
	{"figures count every stock change", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		equal(t, "changes", s.figures(t, p.ID).Changes, 0)
		for i, delta := range []int64{5, -5, -1} {
			change := s.change(t, p, delta)
			_, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, delta == -1)
			must(t, err)
			equal(t, "changes", s.figures(t, p.ID).Changes, int64(i+1))
		}
		equal(t, "offered", s.figures(t, p.ID).Product.Offered, p.Offered)
	}},
	{"a tally has the units of orders by status", tallied},
	{"a wrong sum is found and repaired", mendedTally},
	{"an end is uncounted until a report follows it", uncountedEnds},
	{"shard figures count all rows, dead ones, and settled dead ones", figuresByShard},
	{"shard figures count the present epoch only", figuresByEpoch},
	{"a refused adoption does not change the ledger's expected figures", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		late := s.item(t, p, "late")
		p = s.openEpoch(t, p.ID)
		s.buy(t, p, "buyer")
		must(t, s.Store.Fail(t.Context(), []store.Item{late}, seckill.ReasonLost))
		shard := s.shard(t, p.ID, 0)
		equal(t, "units that the ledger should hold", shard.Rows-shard.SettledDead, 1)
	}},
	{"reports are stored and listed newest first", keptReports},
}

func uncountedEnds(t *testing.T, s *suite) {
	uncounted := func(id uint32) bool {
		ids, err := s.Store.UncountedEnds(t.Context(), all)
		must(t, err)
		return slices.Contains(ids, id)
	}
	report := func(id uint32, at time.Time) {
		_, err := s.Store.SaveReconciliation(t.Context(), store.Reconciliation{ProductID: id, At: at, Body: []byte("{}")})
		must(t, err)
	}
	clocked, operated, never := s.preheated(t), s.preheated(t), s.create(t)
	report(clocked.ID, s.now(t).Add(-time.Second)) // before the end
	equal(t, "uncounted before the end", uncounted(clocked.ID), false)
	_, err := s.Store.Announce(t.Context(), clocked.ID, seckill.EventSaleEnded)
	must(t, err)
	s.setState(t, operated.ID, seckill.SaleEnded)
	s.setState(t, never.ID, seckill.SaleEnded)
	for _, id := range []uint32{clocked.ID, operated.ID} {
		equal(t, "uncounted after the end", uncounted(id), true)
		report(id, s.now(t).Add(time.Second))
		equal(t, "uncounted after the report", uncounted(id), false)
	}
	equal(t, "uncounted though never preheated", uncounted(never.ID), false)
}

func figuresByStatus(t *testing.T, s *suite) {
	p := s.preheated(t, stock(100), perUser(20))
	s.buy(t, p, "pending", quantity(2))
	s.pay(t, s.buy(t, p, "paid", quantity(3)))
	s.cancel(t, s.buy(t, p, "cancelled", quantity(4)))
	order := s.pay(t, s.buy(t, p, "refunded", quantity(5)))
	_, err := s.Store.Refund(t.Context(), order.OrderNo, operator)
	must(t, err)
	must(t, s.Store.Fail(t.Context(), []store.Item{s.item(t, p, "failed", quantity(6))}, seckill.ReasonLost))
	before := s.now(t)
	must(t, s.park(t, p, s.item(t, p, "parked", quantity(7)), far))
	s.advance(t, tick)
	must(t, s.park(t, p, s.item(t, p, "parked too", quantity(8)), far))
	s.change(t, p, 1)

	f := s.figures(t, p.ID)
	equal(t, "product", f.Product, s.product(t, p.ID))
	equal(t, "pending", f.Pending, 2)
	equal(t, "paid", f.Paid, 3)
	equal(t, "cancelled", f.Cancelled, 4)
	equal(t, "refunded", f.Refunded, 5)
	equal(t, "failed", f.Failed, 6)
	equal(t, "letters", f.Letters, 2)
	equal(t, "units of letters", f.LetterUnits, 15)
	if !around(f.OldestLetter, before, before.Add(tick)) && !s.OwnClock {
		t.Errorf("oldest letter is of %s, want %s", f.OldestLetter, before)
	}
	equal(t, "open changes", f.OpenChanges, 1)
	equal(t, "releases due", f.ReleasesDue, 2)

	empty := s.figures(t, s.create(t, stock(0)).ID)
	equal(t, "oldest letter of none is zero", empty.OldestLetter.IsZero(), true)
	equal(t, "letters of none", empty.Letters, 0)
}

// shard returns one shard's figures. A store may leave out a shard without rows.
func (s *suite) shard(t *testing.T, product uint32, index int) store.ShardFigures {
	t.Helper()
	found := store.ShardFigures{Index: index}
	for _, shard := range s.figures(t, product).Shards {
		if shard.Index == index {
			found = shard
		}
	}
	return found
}

// buyerOn returns a buyer whose home is the given shard.
func buyerOn(p *seckill.Product, shard int, name string) string {
	for i := 0; ; i++ {
		if buyer := numbered(name, i); seckill.HomeShard(p, buyer) == shard {
			return buyer
		}
	}
}

func figuresByShard(t *testing.T, s *suite) {
	p := s.preheated(t, sharded(3), perUser(5), stock(50))
	s.buy(t, p, buyerOn(&p, 0, "a"), quantity(2))
	s.pay(t, s.buy(t, p, buyerOn(&p, 0, "b"), quantity(3)))
	s.cancel(t, s.buy(t, p, buyerOn(&p, 1, "c"), quantity(4)))
	must(t, s.park(t, p, s.item(t, p, buyerOn(&p, 1, "d")), far))
	over := s.item(t, p, buyerOn(&p, 0, "b"), quantity(5))
	s.confirm(t, []store.Item{over}, store.ConfirmOverLimit)
	equal(t, "shard 0", s.shard(t, p.ID, 0), store.ShardFigures{Index: 0, Rows: 10, Dead: 5})
	equal(t, "shard 1", s.shard(t, p.ID, 1), store.ShardFigures{Index: 1, Rows: 5, Dead: 4})
	equal(t, "shard 2", s.shard(t, p.ID, 2), store.ShardFigures{Index: 2})

	s.settleReleases(t, p.ID)
	equal(t, "shard 0 when heard", s.shard(t, p.ID, 0), store.ShardFigures{Index: 0, Rows: 10, Dead: 5, SettledDead: 5})
	equal(t, "shard 1 when heard", s.shard(t, p.ID, 1), store.ShardFigures{Index: 1, Rows: 5, Dead: 4, SettledDead: 4})
}

func figuresByEpoch(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(5))
	s.buy(t, p, "live", quantity(2))
	s.cancel(t, s.buy(t, p, "dead", quantity(3)))
	s.parked(t, p, "parked")
	s.parkedLate(t, p, "parked too late for the new epoch")
	p = s.product(t, p.ID)
	s.buy(t, p, "new")
	equal(t, "shard", s.shard(t, p.ID, 0), store.ShardFigures{Rows: 4})
	equal(t, "letters of any epoch", s.figures(t, p.ID).Letters, 2)
}

func keptReports(t *testing.T, s *suite) {
	p, other := s.create(t), s.create(t)
	var saved []store.Reconciliation
	for i, balanced := range []*bool{ptr(true), ptr(false), nil} {
		report := store.Reconciliation{ProductID: p.ID, At: s.now(t), Balanced: balanced, Body: []byte(`{"note":"` + numbered("第", i) + `"}`)}
		got, err := s.Store.SaveReconciliation(t.Context(), report)
		must(t, err)
		if got.ID == 0 || got.At.IsZero() {
			t.Errorf("report without id or time: %+v", got)
		}
		report.ID, report.At = got.ID, got.At
		equal(t, "saved", got, report)
		saved = append([]store.Reconciliation{got}, saved...)
		s.advance(t, tick)
	}
	_, err := s.Store.SaveReconciliation(t.Context(), store.Reconciliation{ProductID: other.ID, At: s.now(t), Body: []byte("{}")})
	must(t, err)

	list, err := s.Store.Reconciliations(t.Context(), p.ID, 0, all)
	must(t, err)
	equal(t, "reports", len(list), len(saved))
	for i := range list {
		equal(t, "balanced is known", list[i].Balanced != nil, saved[i].Balanced != nil)
		equal(t, "body", string(list[i].Body), string(saved[i].Body))
		equal(t, "report", list[i], saved[i])
	}
	list, err = s.Store.Reconciliations(t.Context(), p.ID, 0, 2)
	must(t, err)
	equal(t, "reports within a limit", len(list), 2)
	list, err = s.Store.Reconciliations(t.Context(), p.ID, list[0].ID, all)
	must(t, err)
	equal(t, "reports before another", list, saved[1:])
}

// tallied moves orders in every possible way.
func tallied(t *testing.T, s *suite) {
	p := s.preheated(t, func(p *seckill.Product) { p.PerUserLimit = 9 })
	none, err := s.Store.Tally(t.Context(), p.ID)
	must(t, err)
	equal(t, "before any order", none, store.Tally{Product: p})
	two := func(i *store.Item) { i.Claim.Quantity = 2 }
	s.buy(t, p, "pending", two)
	s.pay(t, s.buy(t, p, "paid", two))
	s.cancel(t, s.buy(t, p, "cancelled"))
	_, err = s.Store.Refund(t.Context(), s.pay(t, s.buy(t, p, "refunded")).OrderNo, operator)
	must(t, err)
	must(t, s.Store.Fail(t.Context(), []store.Item{s.item(t, p, "failed")}, seckill.ReasonLost))
	s.dead(t, p, "parked")
	tally, err := s.Store.Tally(t.Context(), p.ID)
	must(t, err)
	equal(t, "units", tally.Counted, seckill.Counted{Pending: 2, Paid: 2, Cancelled: 1, Failed: 1, Refunded: 1})
	equal(t, "letters", tally.Letters, int64(1))
	equal(t, "since when", tally.OldestLetter, s.figures(t, p.ID).OldestLetter)
	equal(t, "product", tally.Product, s.product(t, p.ID))
	_, err = s.Store.Tally(t.Context(), p.ID+1_000_000)
	wantCode(t, err, seckill.CodeNotFound)
}

func mendedTally(t *testing.T, s *suite) {
	p := s.preheated(t)
	s.pay(t, s.buy(t, p, "paid"))
	s.buy(t, p, "pending")
	s.Exec(t, `DELETE FROM tb_order_units WHERE product_id = ? AND status = 1`, p.ID)
	s.Exec(t, `UPDATE tb_order_units SET units = units + 5 WHERE product_id = ? AND status = 0`, p.ID)
	findings, err := s.Store.CheckTally(t.Context(), p.ID)
	must(t, err)
	equal(t, "findings", len(findings), 2)
	var n int
	s.wantAudited(t, p.ID, func() {
		n, err = s.Store.RepairTally(t.Context(), p.ID, operator)
		must(t, err)
	})
	equal(t, "set right", n, 2)
	tally, err := s.Store.Tally(t.Context(), p.ID)
	must(t, err)
	equal(t, "units", tally.Counted, seckill.Counted{Pending: 1, Paid: 1})
	s.wantUnchanged(t, p.ID, func() {
		n, err = s.Store.RepairTally(t.Context(), p.ID, operator)
		must(t, err)
	})
	equal(t, "set right again", n, 0)
}
