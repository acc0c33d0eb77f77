package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

var releaseTests = []test{
	{"releases are owed oldest first", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		a, b, c := s.buy(t, p, "a"), s.buy(t, p, "b"), s.buy(t, p, "c")
		var want []string
		for _, order := range []seckill.Order{b, c, a} {
			s.cancel(t, order)
			s.advance(t, tick)
			want = append(want, order.OrderNo.String())
		}
		var got []string
		for _, release := range s.owed(t, p.ID) {
			got = append(got, release.OrderNo.String())
		}
		equal(t, "owed", got, want)
	}},
	{"at most limit releases are listed", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		for i := range 3 {
			s.cancel(t, s.buy(t, p, numbered("buyer", i)))
		}
		for _, limit := range []int{1, 2} {
			due, err := s.Store.ReleasesDue(t.Context(), limit)
			must(t, err)
			equal(t, "listed", len(due), limit)
		}
	}},
	{"a release can be settled twice", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		s.cancel(t, s.buy(t, p, "a"))
		heard := s.owed(t, p.ID)
		s.cancel(t, s.buy(t, p, "b"))
		must(t, s.Store.SettleReleases(t.Context(), heard))
		equal(t, "owed", len(s.owed(t, p.ID)), 1)
		must(t, s.Store.SettleReleases(t.Context(), heard))
		equal(t, "owed", len(s.owed(t, p.ID)), 1)
		equal(t, "due by the figures", s.figures(t, p.ID).ReleasesDue, 1)
	}},
	{"settling no releases does nothing", func(t *testing.T, s *suite) {
		must(t, s.Store.SettleReleases(t.Context(), nil))
	}},
	{"a release is settled only under its own epoch", settledLate},
	{"settling a release does not settle it if it was owed again", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer")
		s.confirm(t, []store.Item{item}, store.ConfirmNew)
		s.cancel(t, s.order(t, item.Claim.OrderNo))
		first := s.owed(t, p.ID)
		for range 3 { // also within one millisecond
			s.confirm(t, []store.Item{item}, store.ConfirmReplay)
			must(t, s.Store.SettleReleases(t.Context(), first))
			again := s.owed(t, p.ID)
			equal(t, "owed", len(again), 1)
			equal(t, "Since after it was owed again", again[0].Since.After(first[0].Since), true)
			first = again
		}
		s.settleReleases(t, p.ID)
	}},
	{"a live order owes no release", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		order := s.buy(t, p, "buyer")
		must(t, s.Store.SettleReleases(t.Context(), []store.Release{{
			OrderNo: order.OrderNo, Buyer: order.Buyer, ProductID: p.ID, Group: p.Group, Shard: order.Shard, Epoch: p.Epoch,
		}}))
		s.cancel(t, order)
		equal(t, "owed", len(s.owed(t, p.ID)), 1)
	}},
	{"releases of excepted shards are left out", func(t *testing.T, s *suite) {
		p, other := s.preheated(t), s.preheated(t)
		s.cancel(t, s.buy(t, p, "buyer"))
		s.cancel(t, s.buy(t, other, "buyer"))
		due, err := s.Store.ReleasesDue(t.Context(), all, store.Part{ProductID: p.ID}, store.Part{ProductID: other.ID, Shard: 1}, store.Part{ProductID: 4294967295})
		must(t, err)
		seen := map[uint32]int{}
		for _, d := range due {
			seen[d.ProductID]++
		}
		equal(t, "of the excepted shard", seen[p.ID], 0)
		equal(t, "of the other", seen[other.ID], 1)
	}},
	{"the first report of a lost witness forgets it and marks all products", witnessLost},
	{"many releases are settled at once", func(t *testing.T, s *suite) {
		const many = 300
		p := s.preheated(t, stock(many))
		var items []store.Item
		for i := range many {
			items = append(items, s.item(t, p, numbered("buyer", i)))
		}
		req := request(items...)
		req.ExpireAfter = tick
		_, err := s.Store.Confirm(t.Context(), req)
		must(t, err)
		s.advance(t, 2*tick)
		equal(t, "expired", len(s.expireAll(t, p.ID)), many)
		equal(t, "owed", len(s.owed(t, p.ID)), many)
		s.settleReleases(t, p.ID)
	}},
}

// witnessLost checks that the first report of a loss marks every product for recovery. Further
// reports of the same loss do nothing. A report about a witness that has changed since does
// nothing either.
func witnessLost(t *testing.T, s *suite) {
	p, other, fresh, sold := s.preheated(t), s.preheated(t), s.create(t), s.preheated(t, direct)
	stream, beside := numbered("forgotten", int(p.ID)), numbered("forgotten", int(other.ID))
	s.witness(t, p, stream, 7)
	old := s.witnessOf(t, stream)
	s.witness(t, p, stream, 8)
	s.witness(t, p, beside, 5)
	var kept []queue.ID
	lost := func(want bool, ids ...queue.ID) {
		t.Helper()
		noticed, err := s.Store.WitnessLost(t.Context(), ids, kept)
		must(t, err)
		equal(t, "noticed", noticed, want)
		for _, of := range []seckill.Product{p, other} {
			equal(t, "rebuilding", s.product(t, of.ID).Rebuilding, want)
			must(t, s.Store.EndRebuild(t.Context(), of.ID, of.Epoch))
		}
	}
	lost(false, old)
	equal(t, "witness", s.witnessOf(t, stream).Seq, 8)
	gone := []queue.ID{s.witnessOf(t, stream), old, s.witnessOf(t, beside)}
	lost(true, gone...)
	lost(false, gone...)
	equal(t, "rebuilding before its first preheat", s.product(t, fresh.ID).Rebuilding, false)
	equal(t, "rebuilding without a ledger", s.product(t, sold.ID).Rebuilding, false)
	equal(t, "witness", s.witnessOf(t, beside), queue.ID{})
	s.witness(t, p, stream, 3)
	equal(t, "witness of the stream that began anew", s.witnessOf(t, stream).Seq, 3)

	// A stream that was set back continues from its last entry.
	s.witness(t, p, beside, 9)
	kept = []queue.ID{{Stream: beside, Seq: 6, Tag: 1}}
	lost(false, queue.ID{Stream: beside, Seq: 8})
	equal(t, "witness", s.witnessOf(t, beside).Seq, 9)
	lost(true, s.witnessOf(t, beside))
	equal(t, "witness of the stream that was set back", s.witnessOf(t, beside), kept[0])
}

// settledLate settles a release that was listed under an older epoch. Meanwhile a redelivered
// entry made the store owe the release again under a newer epoch.
func settledLate(t *testing.T, s *suite) {
	p := s.preheated(t)
	item := s.item(t, p, "buyer")
	s.confirm(t, []store.Item{item}, store.ConfirmNew)
	s.cancel(t, s.order(t, item.Claim.OrderNo))
	old := s.owed(t, p.ID)
	next := s.openEpoch(t, p.ID)
	s.confirm(t, []store.Item{item}, store.ConfirmReplay)

	must(t, s.Store.SettleReleases(t.Context(), old))
	owed := s.owed(t, p.ID)
	equal(t, "owed", len(owed), 1)
	equal(t, "epoch", owed[0].Epoch, next.Epoch)
	must(t, s.Store.SettleReleases(t.Context(), owed))
	equal(t, "owed", len(s.owed(t, p.ID)), 0)
}
