package storetest

import (
	"slices"
	"testing"

	"seckill"
	"seckill/internal/store"
)

var letterTests = []test{
	{"a letter is due when its time has come", dueLetters},
	{"a failed retry is counted, and parks the letter again", failedTry},
	{"a failed retry without a delay makes the letter dead", deadLetter},
	{"a retry is not counted for a letter that is not parked", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.dead(t, p, "buyer")
		before := s.letterOf(t, item)
		must(t, s.Store.LetterFailed(t.Context(), item.LetterID, "again", far))
		equal(t, "letter", s.letterOf(t, item), before)
		must(t, s.Store.CloseLetter(t.Context(), item.LetterID, item.Epoch))
		must(t, s.Store.LetterFailed(t.Context(), item.LetterID, "again", far))
		s.noLetter(t, item)
	}},
	{"letters are listed by buyer", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parked(t, p, "buyer")
		s.parked(t, p, "Buyer")
		letters, err := s.Store.Letters(t.Context(), store.LetterFilter{Buyer: "buyer", ProductID: p.ID, Limit: all})
		must(t, err)
		equal(t, "letters", letters, []store.Letter{s.letterOf(t, item)})
	}},
	{"closing a letter removes it", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parked(t, p, "buyer")
		for range 2 {
			must(t, s.Store.CloseLetter(t.Context(), item.LetterID, item.Epoch))
			s.noLetter(t, item)
		}
	}},
	{"letters are listed by product, dead only, and by page", listedLetters},
	{"RetryLetter makes a letter due now and its attempts start anew", retriedLetter},
	{"discard makes the order failed and owes the release", discardedLetter},
	{"discard never touches a confirmed order", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parked(t, p, "buyer")
		redelivered := item
		redelivered.LetterID = 0
		s.confirm(t, []store.Item{redelivered}, store.ConfirmNew)
		// The adapter may return an error or not. The order stays.
		_, _ = s.Store.DiscardLetter(t.Context(), item.LetterID, operator)
		equal(t, "status", s.order(t, item.Claim.OrderNo).Status, seckill.OrderPending)
		equal(t, "owed", len(s.owed(t, p.ID)), 0)
	}},
	{"an unknown letter is not_found", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.parked(t, p, "buyer")
		must(t, s.Store.CloseLetter(t.Context(), item.LetterID, item.Epoch))
		_, err := s.Store.RetryLetter(t.Context(), item.LetterID, operator)
		wantCode(t, err, seckill.CodeNotFound)
		_, err = s.Store.DiscardLetter(t.Context(), item.LetterID, operator)
		wantCode(t, err, seckill.CodeNotFound)
	}},
	{"only dead letters older than the age are discarded", discardedDead},
	{"DiscardDead discards at most its limit", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		for i := range 3 {
			s.dead(t, p, numbered("buyer", i))
		}
		s.advance(t, 2*tick)
		for rounds := 0; s.figures(t, p.ID).Letters > 0; rounds++ {
			n, err := s.Store.DiscardDead(t.Context(), tick, 1)
			must(t, err)
			if n != 1 || rounds > all {
				t.Fatalf("discarded %d at once, want 1", n)
			}
		}
		equal(t, "failed", s.figures(t, p.ID).Failed, 3)
	}},
}

// dead returns a claim with a dead letter, as an item from that letter.
func (s *suite) dead(t *testing.T, p seckill.Product, buyer string) store.Item {
	t.Helper()
	item := s.parked(t, p, buyer)
	must(t, s.Store.LetterFailed(t.Context(), item.LetterID, "no hope", -1))
	return item
}

func (s *suite) due(t *testing.T, id int64) bool {
	t.Helper()
	letters, err := s.Store.LettersDue(t.Context(), all)
	must(t, err)
	return slices.ContainsFunc(letters, func(l store.Letter) bool { return l.ID == id })
}

func dueLetters(t *testing.T, s *suite) {
	p := s.preheated(t)
	later := s.parked(t, p, "later")
	var soon []store.Item
	for i := range 3 {
		item := s.item(t, p, numbered("soon", i))
		must(t, s.park(t, p, item, tick))
		soon = append(soon, item)
	}
	if !s.OwnClock {
		equal(t, "due at once", s.due(t, s.letterOf(t, soon[0]).ID), false)
	}
	s.advance(t, 2*tick)
	for _, item := range soon {
		l := s.letterOf(t, item)
		equal(t, "due", s.due(t, l.ID), true)
	}
	equal(t, "due long before its time", s.due(t, later.LetterID), false)
	letters, err := s.Store.LettersDue(t.Context(), 2)
	must(t, err)
	equal(t, "listed with a limit", len(letters), 2)
}

func failedTry(t *testing.T, s *suite) {
	p := s.preheated(t)
	item := s.item(t, p, "buyer", key("k"))
	must(t, s.park(t, p, item, tick))
	s.advance(t, 2*tick)
	first, before := s.letterOf(t, item), s.now(t)
	must(t, s.Store.LetterFailed(t.Context(), first.ID, "still bad", far))

	again := s.letterOf(t, item)
	equal(t, "attempts", again.Attempts, first.Attempts+1)
	equal(t, "reason", again.Reason, "still bad")
	equal(t, "item", again.Item, first.Item)
	equal(t, "dead", again.Dead, false)
	if !around(again.NextAt, before.Add(far), s.now(t).Add(far)) {
		t.Errorf("next try at %s, want %s from now", again.NextAt, far)
	}
	equal(t, "due", s.due(t, first.ID), false)
}

func deadLetter(t *testing.T, s *suite) {
	p := s.preheated(t)
	item := s.item(t, p, "buyer")
	must(t, s.park(t, p, item, 0))
	first, before := s.letterOf(t, item), s.now(t)
	must(t, s.Store.LetterFailed(t.Context(), first.ID, "no hope", -1))

	l := s.letterOf(t, item)
	equal(t, "dead", l.Dead, true)
	equal(t, "attempts", l.Attempts, first.Attempts+1)
	equal(t, "reason", l.Reason, "no hope")
	if !around(l.DeadAt, before, s.now(t)) {
		t.Errorf("dead at %s, want the store's now", l.DeadAt)
	}
	s.advance(t, tick)
	equal(t, "due", s.due(t, l.ID), false)
	equal(t, "letters by the figures", s.figures(t, p.ID).Letters, 1)
}

func listedLetters(t *testing.T, s *suite) {
	p, other := s.preheated(t), s.preheated(t)
	s.parked(t, other, "elsewhere")
	var ids, dead []int64
	for i := range 5 {
		item := s.parked(t, p, numbered("buyer", i))
		ids = append(ids, item.LetterID)
		if i%2 == 1 {
			must(t, s.Store.LetterFailed(t.Context(), item.LetterID, "no hope", -1))
			dead = append(dead, item.LetterID)
		}
	}
	list := func(filter store.LetterFilter) (listed []int64) {
		t.Helper()
		letters, err := s.Store.Letters(t.Context(), filter)
		must(t, err)
		for _, l := range letters {
			listed = append(listed, l.ID)
		}
		return listed
	}
	equal(t, "of the product", list(store.LetterFilter{ProductID: p.ID, Limit: all}), ids)
	equal(t, "dead ones", list(store.LetterFilter{ProductID: p.ID, DeadOnly: true, Limit: all}), dead)
	equal(t, "first page", list(store.LetterFilter{ProductID: p.ID, Limit: 2}), ids[:2])
	equal(t, "next page", list(store.LetterFilter{ProductID: p.ID, After: ids[1], Limit: 2}), ids[2:4])
	equal(t, "last page", list(store.LetterFilter{ProductID: p.ID, After: ids[4], Limit: 2}), nil)
	if everywhere := list(store.LetterFilter{Limit: all}); len(everywhere) < 6 {
		t.Errorf("without a filter %d letters are listed, want at least 6", len(everywhere))
	}
}

func retriedLetter(t *testing.T, s *suite) {
	p := s.preheated(t)
	for name, item := range map[string]store.Item{"dead": s.dead(t, p, "dead"), "parked": s.parked(t, p, "parked")} {
		t.Run(name, func(t *testing.T) {
			s.wantAudited(t, p.ID, func() {
				l, err := s.Store.RetryLetter(t.Context(), item.LetterID, operator)
				must(t, err)
				equal(t, "dead", l.Dead, false)
				equal(t, "attempts", l.Attempts, 0)
				equal(t, "what is read", s.letterOf(t, item), l)
			})
			equal(t, "due", s.due(t, item.LetterID), true)
			s.confirm(t, []store.Item{item}, store.ConfirmNew)
			s.noLetter(t, item)
		})
	}
}

func discardedLetter(t *testing.T, s *suite) {
	p := s.preheated(t, sharded(4))
	for name, item := range map[string]store.Item{"dead": s.dead(t, p, "dead"), "parked": s.parked(t, p, "parked")} {
		t.Run(name, func(t *testing.T) {
			var order seckill.Order
			s.wantAudited(t, p.ID, func() {
				var err error
				order, err = s.Store.DiscardLetter(t.Context(), item.LetterID, operator)
				must(t, err)
			})
			equal(t, "order", order.OrderNo, item.Claim.OrderNo)
			equal(t, "status", order.Status, seckill.OrderFailed)
			equal(t, "reason", order.Reason, seckill.ReasonDiscarded)
			equal(t, "what is read", s.order(t, order.OrderNo), order)
			s.noLetter(t, item)
			equal(t, "owed", s.owed(t, p.ID), []store.Release{{
				OrderNo: order.OrderNo, Buyer: order.Buyer, ProductID: p.ID, Group: p.Group, Shard: item.Shard, Epoch: p.Epoch,
				Since: order.ClosedAt,
			}})
			events := s.events(t, p.ID)
			equal(t, "event", events[len(events)-1].Kind, seckill.EventOrderFailed)
			equal(t, "stock", s.product(t, p.ID).Stock, p.Stock)
			s.settleReleases(t, p.ID)
		})
	}
}

func discardedDead(t *testing.T, s *suite) {
	p := s.preheated(t)
	parked, dead := s.parked(t, p, "parked"), s.dead(t, p, "dead")
	s.advance(t, 2*tick)
	_, err := s.Store.DiscardDead(t.Context(), far, all)
	must(t, err)
	s.letterOf(t, dead)
	for {
		n, err := s.Store.DiscardDead(t.Context(), tick, 100)
		must(t, err)
		if n == 0 {
			break
		}
	}
	s.noLetter(t, dead)
	s.letterOf(t, parked)
	order := s.order(t, dead.Claim.OrderNo)
	equal(t, "status", order.Status, seckill.OrderFailed)
	equal(t, "reason", order.Reason, seckill.ReasonDiscarded)
	equal(t, "owed", len(s.owed(t, p.ID)), 1)
}
