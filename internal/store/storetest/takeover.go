package storetest

import (
	"context"
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

var takeoverTests = []test{
	{"a takeover begins a new epoch whose seller is the store, not open", takenOverOnce},
	{"a takeover of another epoch than the present is ErrEpoch and changes nothing", func(t *testing.T, s *suite) {
		p := s.openEpoch(t, s.preheated(t).ID)
		for _, seen := range []uint64{0, p.Epoch - 1, p.Epoch + 1} {
			s.wantUnchanged(t, p.ID, func() {
				_, err := s.Store.TakeOver(t.Context(), p.ID, seen, operator)
				wantError(t, err, store.ErrEpoch)
			})
		}
	}},
	{"a takeover repeated in its epoch changes nothing", func(t *testing.T, s *suite) {
		p := s.takenOver(t)
		s.wantUnchanged(t, p.ID, func() {
			again, err := s.Store.TakeOver(t.Context(), p.ID, p.Epoch, operator)
			must(t, err)
			equal(t, "product", again, p)
		})
	}},
	{"a takeover of a product without ledger, never preheated, or at the highest epoch is wrong_state", func(t *testing.T, s *suite) {
		last, err := s.Store.OpenEpoch(t.Context(), s.create(t).ID, 0, store.MaxEpoch-1, operator, func(seckill.Order) error { return nil })
		must(t, err)
		for _, p := range []seckill.Product{s.create(t), s.preheated(t, direct), last} {
			s.wantUnchanged(t, p.ID, func() {
				_, err := s.Store.TakeOver(t.Context(), p.ID, p.Epoch, operator)
				wantCode(t, err, seckill.CodeWrongState)
			})
		}
		_, err = s.Store.TakeOver(t.Context(), newProductID(), 1, operator)
		wantCode(t, err, seckill.CodeNotFound)
	}},
	{"the store opens when every living instance has acknowledged the epoch", func(t *testing.T, s *suite) {
		one, two := s.instance(t, far), s.instance(t, far)
		p := s.beginTakeover(t, s.preheated(t).ID)
		for _, instance := range []string{one, two} {
			s.wantUnchanged(t, p.ID, func() { equal(t, "open", s.tryOpen(t, p), false) })
			s.acknowledge(t, p, p.Epoch, instance)
		}
		for range 2 {
			equal(t, "open", s.tryOpen(t, p), true)
		}
		equal(t, "open when it is read", s.product(t, p.ID).StoreOpen, true)
	}},
	{"an acknowledgement of another epoch does not count", func(t *testing.T, s *suite) {
		instance := s.instance(t, far)
		p := s.beginTakeover(t, s.preheated(t).ID)
		s.acknowledge(t, p, p.Epoch, instance)
		s.openEpoch(t, p.ID)
		p = s.beginTakeover(t, p.ID)
		equal(t, "open after an acknowledgement of the first takeover", s.tryOpen(t, p), false)
		for _, epoch := range []uint64{p.Epoch - 1, p.Epoch + 1} {
			s.acknowledge(t, p, epoch, instance)
			equal(t, "open after an acknowledgement of another epoch", s.tryOpen(t, p), false)
		}
	}},
	{"an acknowledgement of another product does not count", func(t *testing.T, s *suite) {
		instance := s.instance(t, far)
		p, other := s.beginTakeover(t, s.preheated(t).ID), s.beginTakeover(t, s.preheated(t).ID)
		s.acknowledge(t, other, p.Epoch, instance)
		equal(t, "open", s.tryOpen(t, p), false)
	}},
	{"a late acknowledgement of an older epoch does not replace a newer one", func(t *testing.T, s *suite) {
		instance := s.instance(t, far)
		p := s.beginTakeover(t, s.preheated(t).ID)
		for _, epoch := range []uint64{p.Epoch, p.Epoch, p.Epoch - 1} {
			s.acknowledge(t, p, epoch, instance)
		}
		equal(t, "open", s.tryOpen(t, p), true)
	}},
	{"an expired or ended lease does not block the opening", func(t *testing.T, s *suite) {
		s.instance(t, tick)
		gone := s.instance(t, far)
		p := s.beginTakeover(t, s.preheated(t).ID)
		s.advance(t, 2*tick)
		equal(t, "open", s.tryOpen(t, p), false)
		must(t, s.Store.LeaveInstance(t.Context(), gone))
		equal(t, "open", s.tryOpen(t, p), true)
	}},
	{"an instance that starts during a takeover blocks the opening", func(t *testing.T, s *suite) {
		p := s.beginTakeover(t, s.preheated(t).ID)
		instance := s.instance(t, far)
		equal(t, "open", s.tryOpen(t, p), false)
		s.acknowledge(t, p, p.Epoch, instance)
		equal(t, "open", s.tryOpen(t, p), true)
	}},
	{"an instance that starts after a product opened does not block its limit group", func(t *testing.T, s *suite) {
		one := s.instance(t, far)
		first := s.preheated(t)
		second := s.preheated(t, inGroup(first.ID))
		first, second = s.beginTakeover(t, first.ID), s.beginTakeover(t, second.ID)
		s.acknowledge(t, first, first.Epoch, one)
		equal(t, "open before the whole group is handed over", s.tryOpen(t, first), false)
		s.acknowledge(t, second, second.Epoch, one)
		equal(t, "open", s.tryOpen(t, first), true)
		two := s.instance(t, far)
		equal(t, "open before the new instance has acknowledged", s.tryOpen(t, second), false)
		s.acknowledge(t, second, second.Epoch, two)
		equal(t, "open", s.tryOpen(t, second), true)
	}},
	{"a new instance, and one whose lease ran out, gets lapsed", func(t *testing.T, s *suite) {
		instance := newLease()
		s.keep(t, instance, far, true)
		s.keep(t, instance, tick, false)
		s.advance(t, 2*tick)
		s.keep(t, instance, far, true)
		s.keep(t, instance, far, false)
		must(t, s.Store.LeaveInstance(t.Context(), instance))
		s.keep(t, instance, far, true)
	}},
	{"instances are listed with their silent products while their lease stands", func(t *testing.T, s *suite) {
		one, gone := s.instance(t, far), s.instance(t, tick)
		for _, silent := range [][]uint32{{1, 4294967295}, {7}, nil} {
			s.keep(t, one, far, false, silent...)
			equal(t, "silent", s.instances(t)[one], silent)
		}
		s.advance(t, 2*tick)
		_, listed := s.instances(t)[gone]
		equal(t, "listed after its lease ran out", listed, false)
		must(t, s.Store.LeaveInstance(t.Context(), one))
		equal(t, "instances", len(s.instances(t)), 0)
	}},
	{"KeepInstance counts the live shops", func(t *testing.T, s *suite) {
		worker, one, gone := s.instance(t, far), newLease(), newLease()
		keep := func(name string, ttl time.Duration, want int) {
			t.Helper()
			shops, _, err := s.Store.KeepInstance(t.Context(), store.Instance{Name: name, Shop: name != worker}, ttl)
			must(t, err)
			equal(t, "shops", shops, want)
		}
		keep(worker, far, 0)
		keep(one, far, 1)
		keep(one, far, 1)
		_, _, err := s.Store.KeepInstance(t.Context(), store.Instance{Name: gone, Shop: true}, tick)
		must(t, err)
		keep(worker, far, 2)
		s.advance(t, 2*tick)
		keep(one, far, 1)
		keep(gone, far, 2)
		_, _, err = s.Store.KeepInstance(t.Context(), store.Instance{Name: gone}, far)
		must(t, err)
		keep(one, far, 1) // the other instance's ledger does not answer
		keep(gone, 3*far, 2)
		keep(one, far, 1) // the other's lease is from before the clock was set back
		must(t, s.Store.LeaveInstance(t.Context(), gone))
		keep(one, far, 1)
		must(t, s.Store.LeaveInstance(t.Context(), one))
	}},
	{"opening another epoch, or a sale of the ledger, is ErrEpoch and changes nothing", func(t *testing.T, s *suite) {
		ledgers, taken := s.preheated(t), s.beginTakeover(t, s.preheated(t).ID)
		for _, c := range []struct {
			product seckill.Product
			epoch   uint64
		}{{ledgers, ledgers.Epoch}, {taken, taken.Epoch - 1}, {taken, taken.Epoch + 1}} {
			s.wantUnchanged(t, c.product.ID, func() {
				open, err := s.Store.OpenStore(t.Context(), c.product.ID, c.epoch)
				wantError(t, err, store.ErrEpoch)
				equal(t, "open", open, false)
			})
		}
		_, err := s.Store.OpenStore(t.Context(), newProductID(), 1)
		wantCode(t, err, seckill.CodeNotFound)
	}},
	{"a sale of the store needs seller, opening and epoch", func(t *testing.T, s *suite) {
		ledgers, begun, taken := s.preheated(t), s.beginTakeover(t, s.preheated(t).ID), s.takenOver(t)
		for _, p := range []seckill.Product{ledgers, begun} {
			s.wantUnchanged(t, p.ID, func() {
				_, err := s.Store.Sell(t.Context(), s.sellRequest(p, s.claim(t, p, "buyer")))
				wantCode(t, err, seckill.CodeWrongState)
			})
		}
		for _, epoch := range []uint64{0, taken.Epoch - 1, taken.Epoch + 1} {
			s.wantUnchanged(t, taken.ID, func() {
				req := s.sellRequest(taken, s.claim(t, taken, "buyer"))
				req.Epoch = epoch
				_, err := s.Store.Sell(t.Context(), req)
				wantError(t, err, store.ErrEpoch)
			})
		}
	}},
	{"a new epoch returns the sale to the ledger, with the orders of both sellers", returnedSale},
	{"a stock change is done at once while the store is the seller, up and down", func(t *testing.T, s *suite) {
		for _, p := range []seckill.Product{s.takenOver(t), s.preheated(t, direct)} {
			for _, delta := range []int64{5, -12} {
				equal(t, "status", s.change(t, p, delta).Status, store.ChangeDone)
			}
			s.stockIs(t, p.ID, 3, 3)
			equal(t, "open by the figures", s.figures(t, p.ID).OpenChanges, 0)
			_, err := s.Store.BeginStockChange(t.Context(), store.StockChange{ID: numbered("deep", int(p.ID)), ProductID: p.ID, Delta: -4, Actor: operator})
			wantCode(t, err, seckill.CodeBadRequest)
		}
	}},
	{"a stock change down waits until a takeover is complete", func(t *testing.T, s *suite) {
		p := s.beginTakeover(t, s.preheated(t).ID)
		up, down := s.change(t, p, 5), s.change(t, p, -12)
		equal(t, "status", down.Status, store.ChangeOpen)
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.FinishStockChange(t.Context(), down.ID, down.Epoch, false)
			wantCode(t, err, seckill.CodeBusy)
		})
		s.stockIs(t, p.ID, 15, 15)
		s.openStore(t, p)
		for _, change := range []store.StockChange{up, down} {
			done, err := s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
			must(t, err)
			equal(t, "status in the end", done.Status, store.ChangeDone)
		}
		s.stockIs(t, p.ID, 3, 3)
	}},
	{"a change that was owed to the ledger can be finished by the store", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		up, down := s.change(t, p, 4), s.change(t, p, -3)
		p = s.takeOver(t, p.ID)
		_, err := s.Store.FinishStockChange(t.Context(), down.ID, down.Epoch, false)
		wantError(t, err, store.ErrEpoch)
		down, err = s.Store.RestampStockChange(t.Context(), down.ID)
		must(t, err)
		equal(t, "epoch", down.Epoch, p.Epoch)
		for _, change := range []store.StockChange{up, down} {
			_, err = s.Store.FinishStockChange(t.Context(), change.ID, change.Epoch, false)
			must(t, err)
		}
		s.stockIs(t, p.ID, 11, 11)
	}},
	{"no rebuild of a limit group ends while the store sells one of its products", func(t *testing.T, s *suite) {
		first := s.preheated(t)
		second := s.preheated(t, inGroup(first.ID))
		second = s.beginTakeover(t, second.ID)
		s.wantUnchanged(t, second.ID, func() { wantError(t, s.Store.EndRebuild(t.Context(), second.ID, second.Epoch), store.ErrEpoch) })
		must(t, s.Store.BeginRebuild(t.Context(), first.ID, first.Epoch))
		s.wantUnchanged(t, first.ID, func() { wantError(t, s.Store.EndRebuild(t.Context(), first.ID, first.Epoch), store.ErrEpoch) })
		s.openEpoch(t, second.ID)
		must(t, s.Store.EndRebuild(t.Context(), first.ID, first.Epoch))
		equal(t, "rebuilding", s.product(t, first.ID).Rebuilding, false)
	}},
	{"a product that was taken over is not due for recovery", func(t *testing.T, s *suite) {
		p := s.takenOver(t)
		s.wantUnchanged(t, p.ID, func() { must(t, s.Store.BeginRebuild(t.Context(), p.ID, p.Epoch)) })
		stream := numbered("lost", int(p.ID))
		s.witness(t, p, stream, 3)
		noticed, err := s.Store.WitnessLost(t.Context(), []queue.ID{s.witnessOf(t, stream)}, nil)
		must(t, err)
		equal(t, "noticed", noticed, true)
		equal(t, "rebuilding", s.product(t, p.ID).Rebuilding, false)
	}},
}

// beginTakeover makes the store the seller, not open.
func (s *suite) beginTakeover(t TB, id uint32) seckill.Product {
	t.Helper()
	p, err := s.Store.TakeOver(t.Context(), id, s.product(t, id).Epoch, operator)
	must(t, err)
	return p
}

func (s *suite) tryOpen(t TB, p seckill.Product) bool {
	t.Helper()
	open, err := s.Store.OpenStore(t.Context(), p.ID, p.Epoch)
	must(t, err)
	return open
}

func (s *suite) acknowledge(t TB, p seckill.Product, epoch uint64, instance string) {
	t.Helper()
	must(t, s.Store.Acknowledge(t.Context(), p.ID, epoch, instance))
}

// instance gets a lease for ttl, and leaves when the test ends: otherwise it would block the
// takeovers of other tests.
func (s *suite) instance(t *testing.T, ttl time.Duration) string {
	t.Helper()
	name := newLease()
	s.keep(t, name, ttl, true)
	return name
}

func (s *suite) keep(t *testing.T, name string, ttl time.Duration, want bool, silent ...uint32) {
	t.Helper()
	_, lapsed, err := s.Store.KeepInstance(t.Context(), store.Instance{Name: name, Silent: silent}, ttl)
	must(t, err)
	equal(t, "had no lease", lapsed, want)
	if lapsed {
		t.Cleanup(func() {
			if err := s.Store.LeaveInstance(context.Background(), name); err != nil {
				t.Error(err)
			}
		})
	}
}

// instances returns the silent products of all listed instances, by name.
func (s *suite) instances(t *testing.T) map[string][]uint32 {
	t.Helper()
	listed, err := s.Store.Instances(t.Context())
	must(t, err)
	all := make(map[string][]uint32, len(listed))
	for _, one := range listed {
		all[one.Name] = one.Silent
	}
	return all
}

func takenOverOnce(t *testing.T, s *suite) {
	p := s.preheated(t)
	live := s.buy(t, p, "buyer")
	p = s.product(t, p.ID)
	must(t, s.Store.BeginRebuild(t.Context(), p.ID, p.Epoch))
	var taken seckill.Product
	s.wantAudited(t, p.ID, func() { taken = s.beginTakeover(t, p.ID) })
	want := p
	want.Epoch, want.Seller, want.Version, want.Rebuilding = p.Epoch+1, seckill.SellerStore, taken.Version, false
	equal(t, "product", taken, want)
	equal(t, "what is read", s.product(t, p.ID), taken)
	equal(t, "epoch of a live order", s.order(t, live.OrderNo).Epoch, taken.Epoch)
	if taken.Version <= p.Version {
		t.Errorf("version is %d, was %d", taken.Version, p.Version)
	}
	s.openStore(t, taken)
	if now := s.product(t, p.ID); now.Version <= taken.Version {
		t.Errorf("version of the open store is %d, was %d", now.Version, taken.Version)
	}
}

func returnedSale(t *testing.T, s *suite) {
	p := s.preheated(t, perUser(3), sharded(4))
	live := map[seckill.OrderNo]bool{s.buy(t, p, "ledger").OrderNo: true}
	late := s.item(t, p, "late")
	p = s.takeOver(t, p.ID)
	dead := s.cancel(t, s.buyFromStore(t, p, "dead", key("k")))
	s.cancel(t, s.buyFromStore(t, p, "dead"))
	s.confirm(t, []store.Item{late}, store.ConfirmNew)
	for _, no := range []seckill.OrderNo{late.Claim.OrderNo, s.buyFromStore(t, p, "store").OrderNo, s.pay(t, s.buyFromStore(t, p, "paid")).OrderNo} {
		live[no] = true
	}
	stock := s.product(t, p.ID).Stock
	handed := map[seckill.OrderNo]seckill.Order{}
	next, err := s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(order seckill.Order) error {
		handed[order.OrderNo] = order
		return nil
	})
	must(t, err)
	equal(t, "epoch", next.Epoch, p.Epoch+1)
	equal(t, "seller", next.Seller, seckill.SellerLedger)
	equal(t, "open", next.StoreOpen, false)
	equal(t, "rebuilding", next.Rebuilding, true)
	equal(t, "stock", next.Stock, stock)
	equal(t, "what is read", s.product(t, p.ID), next)
	for no, order := range handed {
		equal(t, "order handed over is live", order.Status.Live(), live[no])
		if live[no] {
			equal(t, "epoch", order.Epoch, next.Epoch)
			equal(t, "shard", order.Shard, seckill.HomeShard(&next, order.Buyer))
		}
	}
	equal(t, "the dead order with a key is handed over", handed[dead.OrderNo].Status, seckill.OrderCancelled)
	equal(t, "handed over", len(handed), len(live)+1)

	// Orders that die from now on count for the ledger again.
	for no := range live {
		if order := s.order(t, no); order.Status == seckill.OrderPending {
			s.cancel(t, order)
		}
	}
	equal(t, "owed", len(s.owed(t, p.ID)), 3)
	_, err = s.Store.Sell(t.Context(), s.sellRequest(next, s.claim(t, next, "buyer")))
	wantCode(t, err, seckill.CodeWrongState)
}
