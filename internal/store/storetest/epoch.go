package storetest

import (
	"errors"
	"math"
	"testing"

	"seckill"
	"seckill/internal/store"
)

var epochTests = []test{
	{"opening an epoch bumps epoch and version and sets rebuilding", openedEpoch},
	{"another epoch than the present is ErrEpoch", movedEpoch},
	{"a new epoch is above the floor, up to the highest epoch", flooredEpoch},
	{"live orders are handed over and restamped, dead ones are not", restamped},
	{"orders on another shard than their buyer's home are moved to it", strays},
	{"dead orders with a key are handed over unchanged, whether ledger or store sold them", snapshotKeys},
	{"parked claims are handed over as queued orders, and their letters are of the new epoch", snapshotLetters},
	{"a letter that stock, limit or key do not allow keeps its epoch", unheldLetters},
	{"letters with a reserved unit come before others", heldFirst},
	{"a letter with a reserved unit is not closed by an adoption of an older epoch", keptLetter},
	{"an error of mark undoes all", undoneEpoch},
	{"only one of two openings of the same epoch succeeds", func(t *testing.T, s *suite) {
		p := s.create(t)
		errs := make(chan error, rivals)
		for range rivals {
			go func() {
				_, err := s.Store.OpenEpoch(t.Context(), p.ID, 0, 0, operator, func(seckill.Order) error { return nil })
				errs <- err
			}()
		}
		won := 0
		for range rivals {
			if err := <-errs; err == nil {
				won++
			} else if !errors.Is(err, store.ErrEpoch) && !errors.Is(err, store.ErrConflict) {
				t.Errorf("a rival failed with %v", err)
			}
		}
		equal(t, "openings that succeeded", won, 1)
		equal(t, "epoch", s.product(t, p.ID).Epoch, 1)
	}},
	{"rebuilding is set and unset under the present epoch only", rebuilding},
}

func openedEpoch(t *testing.T, s *suite) {
	before := s.create(t)
	var p seckill.Product
	s.wantAudited(t, before.ID, func() {
		var err error
		p, err = s.Store.OpenEpoch(t.Context(), before.ID, 0, 0, operator, func(seckill.Order) error { return nil })
		must(t, err)
	})
	equal(t, "epoch", p.Epoch, 1)
	if p.Version <= before.Version {
		t.Errorf("version is %d, was %d", p.Version, before.Version)
	}
	equal(t, "rebuilding", p.Rebuilding, true)
	equal(t, "stock", p.Stock, before.Stock)
	equal(t, "what is read", s.product(t, p.ID), p)
}

func movedEpoch(t *testing.T, s *suite) {
	p := s.preheated(t)
	s.buy(t, p, "buyer")
	for _, seen := range []uint64{0, 2} {
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.OpenEpoch(t.Context(), p.ID, seen, 9, operator, func(seckill.Order) error {
				t.Error("an order was handed over")
				return nil
			})
			wantError(t, err, store.ErrEpoch)
		})
	}
}

func flooredEpoch(t *testing.T, s *suite) {
	p := s.preheated(t)
	order := s.buy(t, p, "buyer")
	p = s.product(t, p.ID)
	for _, step := range []struct{ floor, want uint64 }{
		{0, 2}, {1, 3}, {3, 4}, {4_000_000, 4_000_001}, {7, 4_000_002}, {store.MaxEpoch - 1, store.MaxEpoch},
	} {
		handed := 0
		s.wantAudited(t, p.ID, func() {
			opened, err := s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, step.floor, operator, func(seckill.Order) error {
				handed++
				return nil
			})
			must(t, err)
			equal(t, "epoch above the floor", opened.Epoch, step.want)
			equal(t, "version", opened.Version, p.Version+1)
			p = opened
		})
		equal(t, "orders handed over", handed, 1)
		equal(t, "what is read", s.product(t, p.ID), p)
		equal(t, "epoch of a live order", s.order(t, order.OrderNo).Epoch, step.want)
	}
	for _, floor := range []uint64{0, store.MaxEpoch, math.MaxUint64} {
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, floor, operator, func(seckill.Order) error { return nil })
			wantCode(t, err, seckill.CodeWrongState)
		})
	}
}

func strays(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3), sharded(4))
	live := s.buy(t, p, "live")
	dead := s.cancel(t, s.buy(t, p, "dead", key("k")))
	s.Exec(t, "UPDATE tb_seckill_order SET shard = (shard + 1) % 4 WHERE product_id = ?", p.ID)
	_, err := s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(order seckill.Order) error {
		equal(t, "shard that is handed over", order.Shard, seckill.HomeShard(&p, order.Buyer))
		return nil
	})
	must(t, err)
	for _, order := range []seckill.Order{live, dead} {
		equal(t, "shard of "+order.Buyer, s.order(t, order.OrderNo).Shard, seckill.HomeShard(&p, order.Buyer))
	}
}

func restamped(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3), sharded(4))
	pending := s.buy(t, p, "pending", key("k1"), quantity(2))
	paid := s.pay(t, s.buy(t, p, "paid"))
	cancelled := s.cancel(t, s.buy(t, p, "cancelled"))
	refunded := s.pay(t, s.buy(t, p, "refunded"))
	_, err := s.Store.Refund(t.Context(), refunded.OrderNo, operator)
	must(t, err)
	failed := s.item(t, p, "failed")
	must(t, s.Store.Fail(t.Context(), []store.Item{failed}, seckill.ReasonLost))

	handed := map[seckill.OrderNo]seckill.Order{}
	next, err := s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(order seckill.Order) error {
		handed[order.OrderNo] = order
		return nil
	})
	must(t, err)
	equal(t, "orders handed over", len(handed), 2)
	got := handed[pending.OrderNo]
	equal(t, "buyer", got.Buyer, "pending")
	equal(t, "quantity", got.Quantity, 2)
	equal(t, "key", got.Key, "k1")
	equal(t, "shard", got.Shard, pending.Shard)
	equal(t, "status", handed[paid.OrderNo].Status, seckill.OrderPaid)

	for _, live := range []seckill.Order{pending, paid} {
		equal(t, "epoch of a live order", s.order(t, live.OrderNo).Epoch, next.Epoch)
	}
	for _, no := range []seckill.OrderNo{cancelled.OrderNo, refunded.OrderNo, failed.Claim.OrderNo} {
		equal(t, "epoch of a dead order", s.order(t, no).Epoch, p.Epoch)
	}
}

func snapshotKeys(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3), sharded(4))
	live := s.buy(t, p, "live", key("k1"), quantity(3))
	cancelled := s.cancel(t, s.buy(t, p, "cancelled", key("k1"), quantity(2)))
	paid := s.pay(t, s.buy(t, p, "refunded", key("k1")))
	refunded, err := s.Store.Refund(t.Context(), paid.OrderNo, operator)
	must(t, err)
	s.cancel(t, s.buy(t, p, "cancelled")) // without a key, so nothing remains of it
	over, again := s.item(t, p, "live", key("k2")), s.item(t, p, "live", key("k1"))
	outcomes, err := s.Store.Confirm(t.Context(), request(over, again)) // over the limit, and a duplicate
	must(t, err)
	equal(t, "outcomes", outcomes, []store.ConfirmOutcome{store.ConfirmOverLimit, store.ConfirmDuplicate})
	lost := s.item(t, p, "lost", key("k1"))
	must(t, s.Store.Fail(t.Context(), []store.Item{lost}, seckill.ReasonLost))
	s.cancel(t, s.buy(t, s.preheated(t), "cancelled", key("k1"))) // of another product
	p = s.takeOver(t, p.ID)
	counted := s.cancel(t, s.buyFromStore(t, p, "direct", key("k1")))

	dead := map[seckill.OrderNo]seckill.Order{}
	for _, no := range []seckill.OrderNo{cancelled.OrderNo, refunded.OrderNo, counted.OrderNo, over.Claim.OrderNo, lost.Claim.OrderNo} {
		dead[no] = s.order(t, no)
	}
	for range 2 { // the second time in the next epoch
		handed, others := map[seckill.OrderNo]seckill.Order{}, 0
		p = s.product(t, p.ID)
		_, err = s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(order seckill.Order) error {
			if _, twice := handed[order.OrderNo]; twice {
				t.Errorf("%s was handed over twice", order.OrderNo)
			}
			if order.OrderNo == live.OrderNo {
				others++
				return nil
			}
			handed[order.OrderNo] = order
			return nil
		})
		must(t, err)
		equal(t, "live orders handed over", others, 1)
		equal(t, "dead orders handed over", handed, dead)
		for no, order := range dead {
			equal(t, "a dead order", s.order(t, no), order)
		}
	}
}

// reopen opens the next epoch, and returns the claims that it reserves for letters.
func (s *suite) reopen(t *testing.T, id uint32) (seckill.Product, map[seckill.OrderNo]seckill.Order) {
	t.Helper()
	queued := map[seckill.OrderNo]seckill.Order{}
	p, err := s.Store.OpenEpoch(t.Context(), id, s.product(t, id).Epoch, 0, operator, func(order seckill.Order) error {
		if order.Status == seckill.OrderQueued {
			queued[order.OrderNo] = order
		}
		return nil
	})
	must(t, err)
	return p, queued
}

func snapshotLetters(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3), sharded(4), stock(6))
	parked := s.item(t, p, "parked", key("k1"), quantity(2))
	must(t, s.park(t, p, parked, far))
	dead := s.dead(t, p, "dead")
	s.buy(t, p, "live")
	s.parked(t, s.preheated(t), "of another product")
	for range 2 { // the second time in the next epoch
		before := s.product(t, p.ID)
		next, queued := s.reopen(t, p.ID)
		equal(t, "claims handed over", len(queued), 2)
		got := queued[parked.Claim.OrderNo]
		equal(t, "buyer", got.Buyer, "parked")
		equal(t, "quantity", got.Quantity, 2)
		equal(t, "key", got.Key, "k1")
		equal(t, "epoch", got.Epoch, next.Epoch)
		equal(t, "stock", next.Stock, before.Stock)
		for _, item := range []store.Item{parked, dead} {
			equal(t, "epoch of its letter", s.letterOf(t, item).Item.Epoch, next.Epoch)
		}
		equal(t, "a dead letter stays dead", s.letterOf(t, dead).Dead, true)
	}
	for _, item := range []store.Item{parked, dead} {
		s.confirm(t, []store.Item{s.letterOf(t, item).Item}, store.ConfirmNew)
	}
}

func unheldLetters(t *testing.T, s *suite) {
	p := s.preheated(t, stock(3))
	tooMany, fits := s.item(t, p, "too many", quantity(1)), s.item(t, p, "fits")
	must(t, s.park(t, p, fits, far))
	overLimit := s.parked(t, p, "buyer")
	s.buy(t, p, "buyer")
	taken := s.item(t, p, "keyed", key("k"))
	must(t, s.park(t, p, taken, far))
	s.cancel(t, s.buy(t, p, "keyed", key("k")))
	twin, again := s.item(t, p, "twin", key("k")), s.item(t, p, "twin", key("k"))
	must(t, s.park(t, p, twin, far))
	must(t, s.park(t, p, again, far))
	must(t, s.park(t, p, tooMany, far)) // two units are left: for fits and for one twin
	next, queued := s.reopen(t, p.ID)
	equal(t, "claims handed over", len(queued), 2)
	for _, item := range []store.Item{fits, twin} {
		equal(t, "epoch of a letter that is held", s.letterOf(t, item).Item.Epoch, next.Epoch)
	}
	for _, item := range []store.Item{overLimit, taken, again, tooMany} {
		equal(t, "epoch of a letter that is not", s.letterOf(t, item).Item.Epoch, p.Epoch)
	}
}

func heldFirst(t *testing.T, s *suite) {
	p := s.preheated(t, stock(1))
	without := s.parkedLate(t, p, "without a unit")
	p = s.product(t, p.ID)
	with := s.parked(t, p, "with the unit")
	_, queued := s.reopen(t, p.ID)
	_, held := queued[with.Claim.OrderNo]
	equal(t, "the one with the unit is held", held, true)
	equal(t, "claims handed over", len(queued), 1)
	equal(t, "epoch of the other", s.letterOf(t, without).Item.Epoch, without.Epoch)
}

func keptLetter(t *testing.T, s *suite) {
	p := s.preheated(t)
	item := s.parked(t, p, "buyer")
	next := s.openEpoch(t, p.ID)
	must(t, s.Store.CloseLetter(t.Context(), item.LetterID, item.Epoch))
	must(t, s.park(t, p, item, far)) // its old entry is delivered again
	equal(t, "epoch of the letter", s.letterOf(t, item).Item.Epoch, next.Epoch)
	order, err := s.Store.DiscardLetter(t.Context(), item.LetterID, operator)
	must(t, err)
	owed := s.owed(t, p.ID)
	equal(t, "releases owed", len(owed), 1)
	equal(t, "order", owed[0].OrderNo, order.OrderNo)
	equal(t, "under", owed[0].Epoch, next.Epoch)
}

func undoneEpoch(t *testing.T, s *suite) {
	p := s.preheated(t)
	a, b := s.buy(t, p, "a"), s.buy(t, p, "b")
	refusal := errors.New("the ledger refused the mark")
	s.wantUnchanged(t, p.ID, func() {
		marks := 0
		_, err := s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(seckill.Order) error {
			if marks++; marks == 2 {
				return refusal
			}
			return nil
		})
		wantError(t, err, refusal)
	})
	equal(t, "first order", s.order(t, a.OrderNo), a)
	equal(t, "second order", s.order(t, b.OrderNo), b)
}

func rebuilding(t *testing.T, s *suite) {
	p := s.preheated(t)
	equal(t, "rebuilding", p.Rebuilding, false)
	for _, epoch := range []uint64{p.Epoch - 1, p.Epoch + 1} {
		must(t, s.Store.BeginRebuild(t.Context(), p.ID, epoch))
		equal(t, "rebuilding by the request of another epoch", s.product(t, p.ID).Rebuilding, false)
	}
	must(t, s.Store.BeginRebuild(t.Context(), p.ID, p.Epoch))
	equal(t, "rebuilding", s.product(t, p.ID).Rebuilding, true)
	for _, epoch := range []uint64{p.Epoch - 1, p.Epoch + 1} {
		s.wantUnchanged(t, p.ID, func() { wantError(t, s.Store.EndRebuild(t.Context(), p.ID, epoch), store.ErrEpoch) })
	}
	must(t, s.Store.EndRebuild(t.Context(), p.ID, p.Epoch))
	equal(t, "rebuilding in the end", s.product(t, p.ID).Rebuilding, false)
}
