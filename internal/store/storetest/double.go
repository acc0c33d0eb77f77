package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/store"
)

// doubleTests are about claims that several parts process at once: a redelivered entry, a
// letter, a remembered promise. One part may have had the claim adopted, so that the ledger has
// a mark, while another part ends the claim.
var doubleTests = []test{
	{"Fail owes the release of a claim whose letter it closes", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		late := s.item(t, p, "buyer")
		p = s.readopted(t, late)
		must(t, s.Store.Fail(t.Context(), []store.Item{late, s.item(t, p, "other")}, seckill.ReasonLost))
		s.wantOneRelease(t, p, late)
	}},
	{"parking a claim whose order has failed owes its release", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		late := s.item(t, p, "buyer")
		p = s.openEpoch(t, p.ID)
		must(t, s.Store.Fail(t.Context(), []store.Item{late}, seckill.ReasonLost))
		equal(t, "owed", len(s.owed(t, p.ID)), 0)
		late.Epoch = p.Epoch // it was adopted before
		must(t, s.park(t, p, late, far))
		s.wantOneRelease(t, p, late)
	}},
	{"parking a claim that has its order owes nothing", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer")
		s.confirm(t, []store.Item{item}, store.ConfirmNew)
		s.wantUnchanged(t, p.ID, func() { must(t, s.park(t, p, item, far)) })
		s.noLetter(t, item)
	}},
	{"a letter of a lower epoch starts anew when its claim is parked", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		old := s.parkedLate(t, p, "buyer")
		must(t, s.Store.LetterFailed(t.Context(), old.LetterID, "no hope", -1))
		p = s.product(t, p.ID)
		adopted := old
		adopted.Epoch = p.Epoch
		must(t, s.park(t, p, adopted, far))
		l := s.letterOf(t, old)
		equal(t, "id", l.ID, old.LetterID)
		equal(t, "epoch", l.Item.Epoch, p.Epoch)
		equal(t, "dead", l.Dead, false)
		equal(t, "attempts", l.Attempts, 1)
		must(t, s.park(t, p, old, far)) // the old entry is delivered again
		equal(t, "letter", s.letterOf(t, old), l)
		s.confirm(t, []store.Item{l.Item}, store.ConfirmNew)
		s.noLetter(t, old)
	}},
	{"a letter is closed only for the claim that was adopted from it", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		old := s.parkedLate(t, p, "buyer")
		p = s.product(t, p.ID)
		adopted := old
		adopted.Epoch = p.Epoch
		must(t, s.park(t, p, adopted, far))
		must(t, s.Store.CloseLetter(t.Context(), old.LetterID, old.Epoch))
		equal(t, "epoch of the letter that is left", s.letterOf(t, old).Item.Epoch, p.Epoch)
		must(t, s.Store.CloseLetter(t.Context(), old.LetterID, p.Epoch))
		s.noLetter(t, old)
	}},
}

// readopted opens the next epoch, in which the claim was adopted and its new entry was parked.
func (s *suite) readopted(t *testing.T, late store.Item) seckill.Product {
	t.Helper()
	p := s.openEpoch(t, late.ProductID)
	late.Epoch = p.Epoch
	must(t, s.park(t, p, late, far))
	return p
}

// wantOneRelease expects that only the release of the claim's mark is owed, under the present
// epoch, and that there is no letter.
func (s *suite) wantOneRelease(t *testing.T, p seckill.Product, item store.Item) {
	t.Helper()
	s.noLetter(t, item)
	owed := s.owed(t, p.ID)
	if len(owed) != 1 || owed[0].OrderNo != item.Claim.OrderNo || owed[0].Epoch != p.Epoch {
		t.Fatalf("owed are %+v, want order %s in epoch %d", owed, item.Claim.OrderNo, p.Epoch)
	}
	shard := s.shard(t, p.ID, item.Shard)
	equal(t, "units that the ledger may hold", shard.Rows-shard.SettledDead, 1)
	s.settleReleases(t, p.ID)
	shard = s.shard(t, p.ID, item.Shard)
	equal(t, "units that the ledger may hold when it was heard", shard.Rows-shard.SettledDead, 0)
}
