package storetest

import (
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

var confirmTests = []test{
	{"a new claim becomes a pending order with the data of its entry", confirmNew},
	{"pay_before is the store's now and ExpireAfter", func(t *testing.T, s *suite) {
		p, before := s.preheated(t), s.now(t)
		s.advance(t, tick)
		order := s.buyFor(t, p, "buyer", 30*time.Minute)
		if !around(order.PayBefore.Add(-30*time.Minute), before.Add(tick), s.now(t)) {
			t.Errorf("pay_before is %s, confirmed between %s and %s", order.PayBefore, before, s.now(t))
		}
	}},
	{"a claim confirmed late gets the whole time to pay", func(t *testing.T, s *suite) {
		p, before := s.preheated(t), s.now(t)
		order := s.buyFor(t, p, "buyer", 30*time.Minute, func(i *store.Item) { i.At = i.At.Add(-time.Hour) })
		if !around(order.PayBefore.Add(-30*time.Minute), before, s.now(t)) {
			t.Errorf("claimed at %s, confirmed after %s, to pay before %s", order.CreatedAt, before, order.PayBefore)
		}
	}},
	{"a claim confirmed again is a replay and changes nothing", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer", key("k"))
		s.confirm(t, []store.Item{item}, store.ConfirmNew)
		for range 2 {
			s.wantUnchanged(t, p.ID, func() { s.confirm(t, []store.Item{item}, store.ConfirmReplay) })
		}
		s.pay(t, s.order(t, item.Claim.OrderNo))
		s.wantUnchanged(t, p.ID, func() { s.confirm(t, []store.Item{item}, store.ConfirmReplay) })
	}},
	{"the same order twice in one request is one order", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer", key("k"))
		s.confirm(t, []store.Item{item, item}, store.ConfirmNew, store.ConfirmReplay)
		equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-1)
		equal(t, "order.confirmed", s.count(t, p.ID, seckill.EventOrderConfirmed), 1)
	}},
	{"a replay of a dead order owes its release again", replayDead},
	{"a replay of a dead order owes its release under the present epoch", replayDeadLater},
	{"a replay is a replay at any epoch", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		item := s.item(t, p, "buyer")
		s.confirm(t, []store.Item{item}, store.ConfirmNew)
		s.openEpoch(t, p.ID)
		s.wantUnchanged(t, p.ID, func() { s.confirm(t, []store.Item{item}, store.ConfirmReplay) })
	}},
	{"Committing is called before the commit, and not for refused requests", committing},
	{"a claim of an older epoch is left to be adopted", oldEpoch},
	{"a claim of a later epoch is ErrEpoch and changes nothing", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		good, bad := s.item(t, p, "good"), s.item(t, p, "bad", atEpoch(p.Epoch+1))
		s.wantUnchanged(t, p.ID, func() {
			_, err := s.Store.Confirm(t.Context(), request(good, bad))
			wantError(t, err, store.ErrEpoch)
		})
	}},
	{"less stock than promised is ErrShort and changes nothing", short},
	{"the last unit sold writes sale.sold_out", soldOut},
	{"the witness of each stream is the highest id", witnessed},
	{"a request without items still keeps its witness", func(t *testing.T, s *suite) {
		p := s.preheated(t)
		stream := numbered("idle", int(p.ID))
		s.witness(t, p, stream, 3)
		equal(t, "witness", s.witnessOf(t, stream).Seq, 3)
	}},
	{"a big batch is one transaction and one version", bigBatch},
	{"one request may have claims with every outcome", mixedBatch},
}

func confirmNew(t *testing.T, s *suite) {
	p, before := s.preheated(t, sharded(4), perUser(5)), s.now(t)
	item := s.item(t, p, "buyer", quantity(3), key("key"), ref("shop's own"))
	item.PriceCents, item.Currency, item.Name = 12345, "EUR", "as promised 如约"
	s.confirm(t, []store.Item{item}, store.ConfirmNew)

	got := s.order(t, item.Claim.OrderNo)
	if got.CreatedAt.IsZero() || !around(got.PayBefore, before.Add(far), s.now(t).Add(far)) {
		t.Errorf("created at %s, to pay before %s", got.CreatedAt, got.PayBefore)
	}
	equal(t, "order", got, seckill.Order{
		OrderNo: item.Claim.OrderNo, Buyer: "buyer", ProductID: p.ID, Group: p.Group,
		ProductName: "as promised 如约", PriceCents: 12345, Currency: "EUR", Quantity: 3,
		Ref: "shop's own", Key: "key", Status: seckill.OrderPending,
		CreatedAt: got.CreatedAt, PayBefore: got.PayBefore, Epoch: p.Epoch, Shard: item.Shard,
	})
	after := s.product(t, p.ID)
	equal(t, "stock", after.Stock, p.Stock-3)
	equal(t, "offered", after.Offered, p.Offered)
	if after.Version <= p.Version {
		t.Errorf("version is %d, was %d", after.Version, p.Version)
	}
	events := s.events(t, p.ID)
	event := events[len(events)-1]
	equal(t, "event", event, seckill.Event{
		ID: event.ID, At: event.At, Kind: seckill.EventOrderConfirmed, ProductID: p.ID, OrderNo: got.OrderNo,
		Buyer: "buyer", Quantity: 3, AmountCents: 3 * 12345, Currency: "EUR", Ref: "shop's own",
	})
}

func replayDead(t *testing.T, s *suite) {
	p := s.preheated(t)
	item := s.item(t, p, "buyer")
	s.confirm(t, []store.Item{item}, store.ConfirmNew)
	s.cancel(t, s.order(t, item.Claim.OrderNo))
	s.settleReleases(t, p.ID)
	stockBefore := s.product(t, p.ID).Stock

	s.confirm(t, []store.Item{item}, store.ConfirmReplay)
	owed := s.owed(t, p.ID)
	equal(t, "releases owed again", len(owed), 1)
	equal(t, "order", owed[0].OrderNo, item.Claim.OrderNo)
	equal(t, "stock", s.product(t, p.ID).Stock, stockBefore)
	equal(t, "status", s.order(t, item.Claim.OrderNo).Status, seckill.OrderCancelled)
}

func replayDeadLater(t *testing.T, s *suite) {
	p := s.preheated(t)
	heard, owing := s.item(t, p, "heard"), s.item(t, p, "owing")
	s.confirm(t, []store.Item{heard, owing}, store.ConfirmNew, store.ConfirmNew)
	s.cancel(t, s.order(t, heard.Claim.OrderNo))
	s.settleReleases(t, p.ID)
	s.cancel(t, s.order(t, owing.Claim.OrderNo))
	next := s.openEpoch(t, p.ID)
	equal(t, "shard after the epoch opened", s.figures(t, p.ID).Shards[0], store.ShardFigures{})

	s.confirm(t, []store.Item{heard, owing}, store.ConfirmReplay, store.ConfirmReplay)
	owed := s.owed(t, p.ID)
	equal(t, "releases owed", len(owed), 2)
	for _, release := range owed {
		equal(t, "epoch of the release", release.Epoch, next.Epoch)
		equal(t, "epoch of the order", s.order(t, release.OrderNo).Epoch, next.Epoch)
	}
	// Reconciliation compares these with the ledger of the present epoch. That ledger has the
	// marks of both orders until the releases are settled.
	equal(t, "shard while releases are owed", s.figures(t, p.ID).Shards[0], store.ShardFigures{Rows: 2, Dead: 2})
	s.settleReleases(t, p.ID)
	equal(t, "shard after they were heard", s.figures(t, p.ID).Shards[0], store.ShardFigures{Rows: 2, Dead: 2, SettledDead: 2})
}

func oldEpoch(t *testing.T, s *suite) {
	p := s.preheated(t)
	old := s.item(t, p, "old")
	p = s.openEpoch(t, p.ID)
	s.wantUnchanged(t, p.ID, func() { s.confirm(t, []store.Item{old}, store.ConfirmOldEpoch) })
	_, err := s.Store.Order(t.Context(), old.Claim.OrderNo)
	wantCode(t, err, seckill.CodeNotFound)

	// It does not count against the limit of a new claim of the same buyer.
	s.confirm(t, []store.Item{old, s.item(t, p, "old")}, store.ConfirmOldEpoch, store.ConfirmNew)
}

func short(t *testing.T, s *suite) {
	p := s.preheated(t, stock(1))
	stream := numbered("short", int(p.ID))
	s.witness(t, p, stream, 1)
	parked := s.item(t, p, "parked")
	must(t, s.park(t, p, parked, far))
	l := s.letterOf(t, parked)

	req := request(s.item(t, p, "a"), s.item(t, p, "b"), s.item(t, p, "parked", letter(l.ID)))
	req.Park = []store.Parked{{Item: s.item(t, p, "c"), Reason: "bad", Delay: far}}
	req.Witness = []queue.ID{{Stream: stream, Seq: 9}}
	s.wantUnchanged(t, p.ID, func() {
		_, err := s.Store.Confirm(t.Context(), req)
		wantError(t, err, store.ErrShort)
	})
	equal(t, "witness", s.witnessOf(t, stream).Seq, 1)
	s.letterOf(t, parked)

	s.buy(t, p, "last")
	s.wantUnchanged(t, p.ID, func() {
		_, err := s.Store.Confirm(t.Context(), request(s.item(t, p, "too late")))
		wantError(t, err, store.ErrShort)
	})
}

func soldOut(t *testing.T, s *suite) {
	p := s.preheated(t, stock(4), perUser(3))
	s.buy(t, p, "a", quantity(3))
	equal(t, "sale.sold_out with a unit left", s.count(t, p.ID, seckill.EventSaleSoldOut), 0)
	last := s.buy(t, p, "b")
	equal(t, "sale.sold_out", s.count(t, p.ID, seckill.EventSaleSoldOut), 1)
	s.cancel(t, last)
	s.buy(t, p, "c")
	equal(t, "sale.sold_out after a return", s.count(t, p.ID, seckill.EventSaleSoldOut), 2)
}

func committing(t *testing.T, s *suite) {
	p := s.preheated(t, stock(1))
	first, second := s.item(t, p, "first"), s.item(t, p, "second")
	calls := 0
	confirm := func(item store.Item) error {
		req := request(item)
		req.Committing = func() {
			calls++
			_, err := s.Store.Order(t.Context(), item.Claim.OrderNo)
			wantCode(t, err, seckill.CodeNotFound)
		}
		_, err := s.Store.Confirm(t.Context(), req)
		return err
	}
	must(t, confirm(first))
	if calls == 0 {
		t.Error("Committing was not called")
	}
	calls = 0
	wantError(t, confirm(second), store.ErrShort)
	equal(t, "calls for what was refused", calls, 0)
}

// witness confirms no claims, only a witness.
func (s *suite) witness(t *testing.T, p seckill.Product, stream string, seqs ...uint64) {
	t.Helper()
	req := store.ConfirmRequest{ProductID: p.ID, ExpireAfter: far}
	for _, seq := range seqs {
		req.Witness = append(req.Witness, queue.ID{Stream: stream, Seq: seq, Tag: seq * 11})
	}
	_, err := s.Store.Confirm(t.Context(), req)
	must(t, err)
}

func (s *suite) witnessOf(t *testing.T, stream string) queue.ID {
	t.Helper()
	ids, err := s.Store.Witness(t.Context())
	must(t, err)
	var found queue.ID
	for _, id := range ids {
		if id.Stream == stream {
			if !found.IsZero() {
				t.Errorf("stream %s has two witnesses", stream)
			}
			found = id
		}
	}
	return found
}

func witnessed(t *testing.T, s *suite) {
	p := s.preheated(t)
	a, b := numbered("a", int(p.ID)), numbered("b", int(p.ID))
	s.witness(t, p, a, 5, 9, 7)
	equal(t, "highest of one request", s.witnessOf(t, a), queue.ID{Stream: a, Seq: 9, Tag: 99})
	s.witness(t, p, a, 8)
	equal(t, "a lower id later", s.witnessOf(t, a).Seq, 9)
	s.witness(t, p, b, 2)
	s.witness(t, p, a, 10)
	equal(t, "a higher id later", s.witnessOf(t, a), queue.ID{Stream: a, Seq: 10, Tag: 110})
	equal(t, "another stream", s.witnessOf(t, b).Seq, 2)
	const high = 1<<63 - 1 // above any Redis stream id (milliseconds and a counter)
	s.witness(t, p, b, high)
	equal(t, "a great id", s.witnessOf(t, b).Seq, uint64(high))
}

// bigBatchSize exceeds the variables of one statement in SQLite (32,766) and MySQL (65,535),
// because an order takes about twenty.
const bigBatchSize = 3500

func bigBatch(t *testing.T, s *suite) {
	p := s.preheated(t, stock(bigBatchSize))
	items := make([]store.Item, bigBatchSize)
	nos := make([]seckill.OrderNo, bigBatchSize)
	for i := range items {
		items[i] = s.item(t, p, numbered("buyer", i), key("k"))
		nos[i] = items[i].Claim.OrderNo
	}
	outcomes, err := s.Store.Confirm(t.Context(), request(items...))
	must(t, err)
	for i, outcome := range outcomes {
		if outcome != store.ConfirmNew {
			t.Fatalf("claim %d is %v, want ConfirmNew", i, outcome)
		}
	}
	after := s.product(t, p.ID)
	equal(t, "stock", after.Stock, 0)
	equal(t, "version", after.Version, p.Version+1)
	orders, err := s.Store.OrdersByNo(t.Context(), nos)
	must(t, err)
	equal(t, "orders", len(orders), bigBatchSize)
}

func mixedBatch(t *testing.T, s *suite) {
	p := s.preheated(t)
	old := s.item(t, p, "old")
	p = s.openEpoch(t, p.ID)
	replay := s.item(t, p, "replay")
	s.confirm(t, []store.Item{replay}, store.ConfirmNew)
	s.confirm(t, []store.Item{
		s.item(t, p, "replay"), old, replay, s.item(t, p, "new"), s.item(t, p, "new"),
	}, store.ConfirmOverLimit, store.ConfirmOldEpoch, store.ConfirmReplay, store.ConfirmNew, store.ConfirmOverLimit)
	equal(t, "stock", s.product(t, p.ID).Stock, p.Stock-2)
	equal(t, "order.confirmed", s.count(t, p.ID, seckill.EventOrderConfirmed), 2)
	equal(t, "order.failed", s.count(t, p.ID, seckill.EventOrderFailed), 2)
}
