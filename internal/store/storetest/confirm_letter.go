package storetest

import (
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

var confirmLetterTests = []test{
	{"a claim is parked in the same transaction", parkedBeside},
	{"a claim can be parked alone", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer")
		must(t, s.park(t, p, item, far))
		s.letterOf(t, item)
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
	}},
	{"a claim parked again has one letter", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer")
		must(t, s.park(t, p, item, far))
		first := s.letterOf(t, item)
		must(t, s.park(t, p, item, far))
		equal(t, "letter", s.letterOf(t, item).ID, first.ID)
		equal(t, "letters", s.figures(t, p.ID).Letters, 1)
	}},
	{"a claim whose letter was closed can be parked again", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parked(t, p, "buyer")
		must(t, s.Store.CloseLetter(t.Context(), item.LetterID, item.Epoch)) // it was adopted
		p = s.openEpoch(t, p.ID)
		item.LetterID, item.Epoch = 0, p.Epoch
		must(t, s.park(t, p, item, far))
		l := s.letterOf(t, item)
		equal(t, "epoch", l.Item.Epoch, p.Epoch)
		item.LetterID = l.ID
		s.confirm(t, []store.Item{item}, store.ConfirmNew)
		s.noLetter(t, item)
	}},
	{"a confirmed claim closes its letter", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parked(t, p, "buyer")
		s.confirm(t, []store.Item{item}, store.ConfirmNew)
		s.noLetter(t, item)
	}},
	{"a replayed claim closes its letter", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parked(t, p, "buyer")
		redelivered := item
		redelivered.LetterID = 0
		s.confirm(t, []store.Item{redelivered}, store.ConfirmNew)
		s.confirm(t, []store.Item{item}, store.ConfirmReplay)
		s.noLetter(t, item)
	}},
	{"a failed claim closes its letter", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		s.buy(t, p, "buyer")
		item := s.parked(t, p, "buyer")
		s.confirm(t, []store.Item{item}, store.ConfirmOverLimit)
		s.noLetter(t, item)
	}},
	{"a claim of an older epoch keeps its letter until it is adopted", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parkedLate(t, p, "buyer")
		s.wantUnchanged(t, p.ID, func() { s.confirm(t, []store.Item{item}, store.ConfirmOldEpoch) })
		s.letterOf(t, item)
		must(t, s.Store.CloseLetter(t.Context(), item.LetterID, item.Epoch))
		s.noLetter(t, item)
	}},
	{"a letter takes nothing of stock or limit before it is confirmed", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		parked := s.parked(t, p, "buyer")
		s.buy(t, p, "buyer")
		s.confirm(t, []store.Item{parked}, store.ConfirmOverLimit)
	}},
}

// park parks one item in a request of its own.
func (s *suite) park(t *testing.T, p seckill.Product, item store.Item, delay time.Duration) error {
	t.Helper()
	req := store.ConfirmRequest{ProductID: p.ID, ExpireAfter: far}
	req.Park = []store.Parked{{Item: item, Reason: "does not fit", Delay: delay}}
	_, err := s.Store.Confirm(t.Context(), req)
	return err
}

// parked returns a new parked claim that is not due, as an item from its letter.
func (s *suite) parked(t *testing.T, p seckill.Product, buyer string) store.Item {
	t.Helper()
	item := s.item(t, p, buyer)
	must(t, s.park(t, p, item, far))
	item.LetterID = s.letterOf(t, item).ID
	return item
}

// parkedLate returns a claim that came in one epoch and was parked in the next, which reserves
// nothing for it.
func (s *suite) parkedLate(t *testing.T, p seckill.Product, buyer string) store.Item {
	t.Helper()
	item := s.item(t, p, buyer)
	s.openEpoch(t, p.ID)
	must(t, s.park(t, p, item, far))
	item.LetterID = s.letterOf(t, item).ID
	return item
}

func (s *suite) letterOf(t *testing.T, item store.Item) store.Letter {
	t.Helper()
	l, err := s.Store.LetterByOrder(t.Context(), item.Claim.OrderNo)
	must(t, err)
	return l
}

func (s *suite) noLetter(t *testing.T, item store.Item) {
	t.Helper()
	_, err := s.Store.LetterByOrder(t.Context(), item.Claim.OrderNo)
	wantCode(t, err, seckill.CodeNotFound)
}

func parkedBeside(t *testing.T, s *suite) {
	p, before := s.preheated(t, sharded(4), perUser(3)), s.now(t)
	bad := s.item(t, p, "bad 坏", quantity(2), key("k"), ref("r"))
	req := request(s.item(t, p, "good"))
	req.Park = []store.Parked{{Item: bad, Reason: "does not fit 不合", Delay: far}}
	_, err := s.Store.Confirm(t.Context(), req)
	must(t, err)
	equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-1)

	l := s.letterOf(t, bad)
	want := bad
	want.LetterID = l.Item.LetterID // the letter's own id, or 0: both identify the letter
	if want.LetterID != 0 {
		equal(t, "letter id of the item", want.LetterID, l.ID)
	}
	equal(t, "item", l.Item, want)
	equal(t, "reason", l.Reason, "does not fit 不合")
	equal(t, "dead", l.Dead, false)
	equal(t, "dead_at is zero", l.DeadAt.IsZero(), true)
	if !around(l.CreatedAt, before, s.now(t)) || !around(l.NextAt, before.Add(far), s.now(t).Add(far)) {
		t.Errorf("created at %s, next try at %s", l.CreatedAt, l.NextAt)
	}
	_, err = s.Store.Order(t.Context(), bad.Claim.OrderNo)
	wantCode(t, err, seckill.CodeNotFound)
}
