package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

var takeoverParkedTests = []test{
	{"a parked claim reserves its units against sales of the store", func(t *testing.T, s *suite) {
		old := s.preheated(t, stock(3), perUser(2))
		s.parkClaim(t, old, "parked", quantity(2))
		p := s.takeOver(t, old.ID)
		got := s.sell(t, p, s.claim(t, p, "a", quantity(2)), s.claim(t, p, "b"), s.claim(t, p, "c"))
		equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictSoldOut, ledger.VerdictAccepted, ledger.VerdictSoldOut})
		equal(t, "free", got.Free, 0)
		equal(t, "stock", s.product(t, p.ID).Stock, 2)
	}},
	{"a parked claim reserves limit and key against sales of the store", func(t *testing.T, s *suite) {
		old := s.preheated(t, perUser(2))
		parked := s.parkClaim(t, old, "buyer", key("k"))
		p := s.takeOver(t, old.ID)
		first := s.buyFromStore(t, p, "buyer")
		got := s.sell(t, p, s.claim(t, p, "buyer", key("k")), s.claim(t, p, "buyer"))
		equal(t, "the same key", got.Verdicts[0], sold(ledger.VerdictRepeated, parked.Claim.OrderNo, seckill.OrderQueued))
		equal(t, "over the limit", got.Verdicts[1].Code, ledger.VerdictOverLimit)
		equal(t, "held", got.Verdicts[1].Held, []seckill.OrderNo{first.OrderNo, parked.Claim.OrderNo})
	}},
	{"a parked claim reserves limit and key against sales of the group's other products", func(t *testing.T, s *suite) {
		first := s.preheated(t)
		second := s.preheated(t, inGroup(first.ID))
		parked := s.parkClaim(t, second, "buyer", key("k"))
		second, first = s.beginTakeover(t, second.ID), s.beginTakeover(t, first.ID)
		s.openStore(t, first)
		got := s.sell(t, first, s.claim(t, first, "buyer"), s.claim(t, first, "buyer", key("k")), s.claim(t, first, "other"))
		equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictOverLimit, ledger.VerdictRepeated, ledger.VerdictAccepted})
		equal(t, "held", got.Verdicts[0].Held, []seckill.OrderNo{parked.Claim.OrderNo})
		equal(t, "free", got.Free, 9)
	}},
	{"a change down cannot take units of parked claims", func(t *testing.T, s *suite) {
		old := s.preheated(t, stock(5))
		asked := s.change(t, old, -5)
		s.parkClaim(t, old, "parked")
		p := s.takeOver(t, old.ID)
		_, err := s.Store.BeginStockChange(t.Context(), store.StockChange{ID: numbered("parked", int(p.ID)), ProductID: p.ID, Delta: -5, Actor: operator})
		wantCode(t, err, seckill.CodeBadRequest)
		asked, err = s.Store.RestampStockChange(t.Context(), asked.ID)
		must(t, err)
		asked, err = s.Store.FinishStockChange(t.Context(), asked.ID, asked.Epoch, false)
		must(t, err)
		equal(t, "status of the change that was owed to the ledger", asked.Status, store.ChangeRefused)
		equal(t, "status", s.change(t, p, -4).Status, store.ChangeDone)
		s.stockIs(t, p.ID, 1, 1)
	}},
	{"a parked claim reserves units, limit and key against old entries", whileStoreSells(func(t *testing.T, s *suite, seller takeover) {
		old := s.preheated(t, stock(3), perUser(2))
		s.parkClaim(t, old, "buyer", key("k"), quantity(2))
		seller(t, old.ID)
		s.confirm(t, []store.Item{s.item(t, old, "buyer", key("k")), s.item(t, old, "buyer"), s.item(t, old, "a", quantity(2)), s.item(t, old, "b")},
			store.ConfirmDuplicate, store.ConfirmOverLimit, store.ConfirmSoldOut, store.ConfirmNew)
	})},
	{"the retry of a parked claim gets its unit, and closes the letter", whileStoreSells(func(t *testing.T, s *suite, seller takeover) {
		old := s.preheated(t, stock(1))
		parked := s.parkClaim(t, old, "parked", key("k"))
		p := seller(t, old.ID)
		retried := s.letterOf(t, parked).Item
		equal(t, "epoch of the letter", retried.Epoch, p.Epoch)
		s.confirm(t, []store.Item{s.item(t, old, "other"), retried}, store.ConfirmSoldOut, store.ConfirmNew)
		s.noLetter(t, parked)
	})},
	{"a claim parked while the store is the seller reserves its unit", whileStoreSells(func(t *testing.T, s *suite, seller takeover) {
		old := s.preheated(t, stock(1))
		p := seller(t, old.ID)
		parked := s.parkClaim(t, old, "parked")
		equal(t, "epoch of the letter", s.letterOf(t, parked).Item.Epoch, p.Epoch)
		s.confirm(t, []store.Item{s.item(t, old, "other")}, store.ConfirmSoldOut)
		if p.StoreOpen {
			equal(t, "verdict", s.sell(t, p, s.claim(t, p, "another")).Verdicts[0].Code, ledger.VerdictSoldOut)
		}
		s.confirm(t, []store.Item{parked}, store.ConfirmNew)
		s.noLetter(t, parked)
	})},
	{"a claim without a reserved unit is decided at its retry", func(t *testing.T, s *suite) {
		old := s.preheated(t, stock(1))
		first, second := s.parkClaim(t, old, "a"), s.parkClaim(t, old, "b")
		p := s.takeOver(t, old.ID)
		equal(t, "epoch of the first letter", s.letterOf(t, first).Item.Epoch, p.Epoch)
		equal(t, "epoch of the second letter", s.letterOf(t, second).Item.Epoch, old.Epoch)
		s.confirm(t, []store.Item{s.letterOf(t, second).Item}, store.ConfirmSoldOut)
		s.confirm(t, []store.Item{s.letterOf(t, first).Item}, store.ConfirmNew)
		s.noLetter(t, second)
	}},
	{"a parked claim that the store sells uses its unit once", func(t *testing.T, s *suite) {
		old := s.preheated(t, stock(3), perUser(2))
		parked := s.parkClaim(t, old, "buyer")
		p := s.takeOver(t, old.ID)
		got := s.sell(t, p, s.claim(t, p, "buyer", quantity(2)), parked.Claim)
		equal(t, "verdicts", codes(got), []ledger.VerdictCode{ledger.VerdictOverLimit, ledger.VerdictAccepted})
		equal(t, "free", got.Free, 2)
		s.noLetter(t, parked)
		s.buyFromStore(t, p, "buyer")
		s.buyFromStore(t, p, "other")
	}},
	{"a discarded letter reserves nothing", func(t *testing.T, s *suite) {
		old := s.preheated(t, stock(1))
		parked := s.parkClaim(t, old, "buyer", key("k"))
		p := s.takeOver(t, old.ID)
		_, err := s.Store.DiscardLetter(t.Context(), s.letterOf(t, parked).ID, operator)
		must(t, err)
		s.buyFromStore(t, p, "buyer")
	}},
	{"a claim parked in a takeover has its unit in the ledger after the return", func(t *testing.T, s *suite) {
		old := s.preheated(t, stock(2))
		s.beginTakeover(t, old.ID)
		parked := s.parkClaim(t, old, "parked")
		next, queued := s.reopen(t, old.ID)
		_, held := queued[parked.Claim.OrderNo]
		equal(t, "held", held, true)
		s.confirm(t, []store.Item{s.letterOf(t, parked).Item}, store.ConfirmNew)
		equal(t, "epoch", s.order(t, parked.Claim.OrderNo).Epoch, next.Epoch)
	}},
}

// parkClaim parks a claim of the product's epoch for a long time.
func (s *suite) parkClaim(t *testing.T, p seckill.Product, buyer string, edits ...func(*store.Item)) store.Item {
	t.Helper()
	item := s.item(t, p, buyer, edits...)
	must(t, s.park(t, p, item, far))
	return item
}
