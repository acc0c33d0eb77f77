package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

var takeoverEntryTests = []test{
	{"an old entry is decided by stock, limit and key while the store is the seller", whileStoreSells(oldEntries)},
	{"an old entry written again is a replay", whileStoreSells(func(t *testing.T, s *suite, seller takeover) {
		old := s.preheated(t)
		before, late := s.item(t, old, "before"), s.item(t, old, "late")
		s.confirm(t, []store.Item{before}, store.ConfirmNew)
		seller(t, old.ID)
		s.confirm(t, []store.Item{before, late, late}, store.ConfirmReplay, store.ConfirmNew, store.ConfirmReplay)
		equal(t, "pending", s.figures(t, old.ID).Pending, 2)
	})},
	{"an entry above the epoch is ErrEpoch", whileStoreSells(func(t *testing.T, s *suite, seller takeover) {
		p := seller(t, s.preheated(t).ID)
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.Confirm(t.Context(), request(s.item(t, p, "buyer", atEpoch(p.Epoch+1))))
			wantError(t, err, store.ErrEpoch)
		})
	})},
	{"an entry of a claim that the store sold is a replay", func(t *testing.T, s *suite) {
		old := s.preheated(t)
		live, dead := s.item(t, old, "live"), s.item(t, old, "dead")
		p := s.takeOver(t, old.ID)
		s.sell(t, p, live.Claim, dead.Claim)
		s.cancel(t, s.order(t, dead.Claim.OrderNo))
		s.wantUnchanged(t, p.ID, func() { s.confirm(t, []store.Item{live, dead}, store.ConfirmReplay, store.ConfirmReplay) })
		equal(t, "owed", len(s.owed(t, p.ID)), 0)
	}},
	{"a key of an order of the store stays its own, whatever its status", func(t *testing.T, s *suite) {
		for name, then := range map[string]func(seckill.Order){
			"pending":   func(seckill.Order) {},
			"paid":      func(order seckill.Order) { s.pay(t, order) },
			"cancelled": func(order seckill.Order) { s.cancel(t, order) },
		} {
			t.Run(name, func(t *testing.T) {
				old := s.preheated(t, perUser(3))
				late := s.item(t, old, "buyer", key("k"))
				p := s.takeOver(t, old.ID)
				order := s.buyFromStore(t, p, "buyer", key("k"))
				then(order)
				s.confirm(t, []store.Item{s.item(t, old, "other", key("k")), late}, store.ConfirmNew, store.ConfirmDuplicate)
				equal(t, "reason", s.order(t, late.Claim.OrderNo).Reason, seckill.ReasonDuplicate)
				equal(t, "asked once more", s.sell(t, p, s.claim(t, p, "buyer", key("k"))).Verdicts[0],
					sold(ledger.VerdictRepeated, order.OrderNo, s.order(t, order.OrderNo).Status))
			})
		}
	}},
	{"the last unit that an old entry takes writes sale.sold_out", func(t *testing.T, s *suite) {
		old := s.preheated(t, stock(1))
		s.beginTakeover(t, old.ID)
		s.confirm(t, []store.Item{s.item(t, old, "a"), s.item(t, old, "b")}, store.ConfirmNew, store.ConfirmSoldOut)
		equal(t, "sale.sold_out", s.count(t, old.ID, seckill.EventSaleSoldOut), 1)
	}},
	{"no release is owed while the store is the seller", whileStoreSells(nothingOwed)},
	{"a release that was owed before a takeover stays owed", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.cancel(t, s.buy(t, p, "buyer"))
		taken := s.takeOver(t, p.ID)
		owed := s.owed(t, p.ID)
		equal(t, "owed", len(owed), 1)
		equal(t, "epoch", owed[0].Epoch, p.Epoch)
		s.confirm(t, []store.Item{s.item(t, taken, "other")}, store.ConfirmNew)
		equal(t, "order", owed[0].OrderNo, order.OrderNo)
		s.settleReleases(t, p.ID)
	}},
}

// takeover is beginTakeover or takeOver.
type takeover func(t TB, id uint32) seckill.Product

// whileStoreSells runs a story with a store that is open, and with one that is not open yet.
func whileStoreSells(story func(t *testing.T, s *suite, seller takeover)) func(t *testing.T, s *suite) {
	return func(t *testing.T, s *suite) {
		t.Run("not open", func(t *testing.T) { story(t, s, s.beginTakeover) })
		t.Run("open", func(t *testing.T) { story(t, s, s.takeOver) })
	}
}

func oldEntries(t *testing.T, s *suite, seller takeover) {
	old := s.preheated(t, stock(4), perUser(2))
	s.buy(t, old, "had one", key("k"))
	p := seller(t, s.openEpoch(t, old.ID).ID)
	items := []store.Item{
		s.item(t, old, "new", quantity(2), key("k")), // two epochs old
		s.item(t, p, "had one", atEpoch(p.Epoch-1), key("k")),
		s.item(t, p, "had one", atEpoch(p.Epoch-1), quantity(2)),
		s.item(t, p, "too many", quantity(2)), // of the present epoch
		s.item(t, p, "last"),
	}
	s.confirm(t, items, store.ConfirmNew, store.ConfirmDuplicate, store.ConfirmOverLimit, store.ConfirmSoldOut, store.ConfirmNew)
	for i, reason := range map[int]string{1: seckill.ReasonDuplicate, 2: seckill.ReasonLimit, 3: seckill.ReasonLost} {
		order := s.order(t, items[i].Claim.OrderNo)
		equal(t, "status", order.Status, seckill.OrderFailed)
		equal(t, "reason", order.Reason, reason)
	}
	order := s.order(t, items[0].Claim.OrderNo)
	equal(t, "status", order.Status, seckill.OrderPending)
	equal(t, "epoch", order.Epoch, p.Epoch)
	equal(t, "stock", s.product(t, p.ID).Stock, 0)
	equal(t, "failed events", s.count(t, p.ID, seckill.EventOrderFailed), 3)
}

func nothingOwed(t *testing.T, s *suite, seller takeover) {
	old := s.preheated(t, stock(20))
	cancelled, refunded := s.buy(t, old, "cancelled"), s.pay(t, s.buy(t, old, "refunded"))
	s.buyFor(t, old, "expired", tick)
	discarded, dead := s.dead(t, old, "discarded"), s.dead(t, old, "dead")
	failed, limited, parked := s.item(t, old, "failed"), s.item(t, old, "expired"), s.item(t, old, "cancelled")
	seller(t, old.ID)

	s.confirm(t, []store.Item{limited}, store.ConfirmOverLimit)
	s.cancel(t, cancelled)
	_, err := s.Store.Refund(t.Context(), refunded.OrderNo, operator)
	must(t, err)
	s.advance(t, 2*tick)
	s.expireAll(t, old.ID)
	must(t, s.Store.Fail(t.Context(), []store.Item{failed}, seckill.ReasonLost))
	_, err = s.Store.DiscardLetter(t.Context(), discarded.LetterID, operator)
	must(t, err)
	_, err = s.Store.DiscardDead(t.Context(), tick, all)
	must(t, err)
	s.noLetter(t, dead)
	parked.Claim.OrderNo = cancelled.OrderNo
	must(t, s.park(t, old, parked, far)) // a claim whose order is dead
	s.confirm(t, []store.Item{limited, failed, parked}, store.ConfirmReplay, store.ConfirmReplay, store.ConfirmReplay)

	f := s.figures(t, old.ID)
	equal(t, "cancelled", f.Cancelled, 2)
	equal(t, "refunded", f.Refunded, 1)
	equal(t, "failed", f.Failed, 4)
	equal(t, "owed", len(s.owed(t, old.ID)), 0)
	equal(t, "owed by the figures", f.ReleasesDue, 0)
}
