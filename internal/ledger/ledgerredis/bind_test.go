package ledgerredis

import (
	"errors"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/internal/redislink"
	"seckill/test/server"
)

func TestALedgerServesOneStore(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	opt := Options{Place: redislink.Place{Addrs: []string{s.Addr()}}, Prefix: "seckill:"}
	ours, again, other := opened(t, opt), opened(t, opt), opened(t, opt)
	for _, l := range []*Ledger{ours, again} {
		if err := l.Bind(t.Context(), "ours"); err != nil {
			t.Fatal(err)
		}
	}
	err := other.Bind(t.Context(), "other")
	if !errors.Is(err, ledger.ErrOtherStore) || !strings.Contains(err.Error(), "redis.prefix") || !strings.Contains(err.Error(), "DEL 'seckill:{b0}:store'") {
		t.Fatalf("another store was answered %v", err)
	}
	opt.Prefix = "else:"
	if err := opened(t, opt).Bind(t.Context(), "other"); err != nil {
		t.Errorf("under another prefix: %v", err)
	}

	// What was lost is ours again with the first product that is rebuilt.
	s.FlushAll()
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 2}
	if _, err := ours.Install(t.Context(), ledger.Allotment{Shard: shard, Available: 1, Limit: 1}, nil); err != nil {
		t.Fatal(err)
	}
	shard.Epoch++
	_, err = other.Install(t.Context(), ledger.Allotment{Shard: shard, Available: 1, Limit: 1}, nil)
	if !errors.Is(err, ledger.ErrOtherStore) || !errors.Is(err, ledger.ErrNotExecuted) {
		t.Errorf("another store installed: %v", err)
	}
}

// A server that takes no writes for now does not keep an instance from
// starting, and is asked all the same whose ledger it has.
func TestWhoseLedgerItIsCanBeReadWithoutWriting(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	opt := Options{Place: redislink.Place{Addrs: []string{s.Addr()}}, Prefix: "seckill:"}
	ours, other, early := opened(t, opt), opened(t, opt), opened(t, opt)
	s.Must("CONFIG", "SET", "min-replicas-to-write", "1")
	if err := early.Bind(t.Context(), "ours"); err != nil {
		t.Errorf("an unbound ledger: %v", err)
	}
	s.Must("CONFIG", "SET", "min-replicas-to-write", "0")
	if err := ours.Bind(t.Context(), "ours"); err != nil {
		t.Fatal(err)
	}
	s.Must("CONFIG", "SET", "min-replicas-to-write", "1")
	if err := other.Bind(t.Context(), "other"); !errors.Is(err, ledger.ErrOtherStore) {
		t.Errorf("another store was answered %v", err)
	}
}

// shopOf is a ledger of a store's own.
func shopOf(t *testing.T, s *server.RedisServer, store string) *Ledger {
	t.Helper()
	return bound(t, opened(t, Options{Place: redislink.Place{Addrs: []string{s.Addr()}}, Prefix: "shop:"}), store)
}

// join joins a rig's queue.
func (r *rig) join() queue.Consumer {
	r.Helper()
	c, err := r.ledger.Queue().Consumer(r.ctx(), "worker")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close(r.ctx()) })
	return c
}

// The server is emptied, and another store's ledger made of it, with the same
// product at the same epoch: nothing that the first one does reaches it.
func TestNothingOfAnotherStoreIsTouched(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	ours := newRig(t, shopOf(t, s, "ours"))
	consumer := ours.join()
	ours.expect(ledger.OutcomeApplied, 1, 0, reserve(ours.claim("bob", "")))
	held, err := consumer.Receive(ours.ctx(), 10)
	if err != nil {
		t.Fatal(err)
	}
	s.FlushAll()
	theirs := newRig(t, shopOf(t, s, "theirs"))
	theirs.expect(ledger.OutcomeApplied, 1, 0, reserve(theirs.claim("bob", "")))
	before := theirs.figures()

	l, shard, ctx := ours.ledger, ours.shard, ours.ctx()
	later := shard
	later.Epoch = 2
	for name, call := range map[string]func() error{
		"check":   func() error { return l.CheckStore(ctx) },
		"rebind":  func() error { return l.Rebind(ctx) },
		"ping":    func() error { return l.Ping(ctx) },
		"reserve": func() error { _, err := l.Do(ctx, ours.request(2, 1, reserve(ours.claim("eve", "")))); return err },
		"first":   func() error { _, err := l.Do(ctx, ours.request(1, 0, reserve(ours.claim("eve", "")))); return err },
		"ask":     func() error { _, err := l.Do(ctx, ours.request(2, 1, nil)); return err },
		"beat": func() error {
			_, err := l.Heartbeat(ctx, []ledger.Beat{{Shard: shard, Process: ours.process, Seen: 1}})
			return err
		},
		"close": func() error { return l.Close(ctx, later) },
		"open":  func() error { _, err := l.Open(ctx, shard); return err },
		"pause": func() error { _, err := l.SetState(ctx, shard, seckill.SalePaused, 9); return err },
		"read":  func() error { _, err := l.Read(ctx, shard); return err },
		"held":  func() error { _, err := l.Held(ctx, shard, "bob"); return err },
		"audit": func() error { _, err := l.Audit(ctx, shard); return err },
		"install": func() error {
			_, err := l.Install(ctx, ledger.Allotment{Shard: later, Available: 1, Limit: 1}, nil)
			return err
		},
		"receive":   func() error { _, err := ours.join().Receive(ctx, 10); return err },
		"ack":       func() error { return consumer.Ack(ctx, ids(held), queue.ID{}) },
		"witness":   func() error { return consumer.Ack(ctx, nil, held[0].ID) },
		"hand back": func() error { return consumer.Nack(ctx, ids(held)) },
		"leave":     func() error { return consumer.Close(ctx) },
	} {
		if err := call(); !errors.Is(err, ledger.ErrOtherStore) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := theirs.figures(); !after.Open || after.Epoch != before.Epoch || after.Marked != 1 || after.Available != before.Available || after.State != before.State {
		t.Errorf("their shard was %+v and is %+v", before, after)
	}
	if batch, err := theirs.join().Receive(theirs.ctx(), 10); err != nil || len(batch) != 1 || batch[0].Redelivered || batch[0].ID == held[0].ID {
		t.Errorf("their worker received %+v, %v", batch, err)
	}
	theirs.expect(ledger.OutcomeApplied, 2, 1, reserve(theirs.claim("eve", "")))
}

// The ledger is unbound by hand, for another store that replaces the first: it
// finds buckets with the mark of the one before, and takes them over.
func TestAStoreThatWasGivenTheLedgerTakesItsBuckets(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	first := newRig(t, shopOf(t, s, "first"))
	first.expect(ledger.OutcomeApplied, 1, 0, reserve(first.claim("bob", "")))
	s.Must("DEL", first.ledger.keys.store(0))
	second := &rig{TB: t, ledger: shopOf(t, s, "second"), shard: first.shard}
	if batch, err := second.join().Receive(second.ctx(), 10); err != nil || len(batch) != 1 {
		t.Errorf("received %+v, %v", batch, err)
	}
	if f := second.figures(); f.Marked != 1 {
		t.Errorf("figures are %+v", f)
	}
	if _, err := first.ledger.Read(first.ctx(), first.shard); !errors.Is(err, ledger.ErrOtherStore) {
		t.Errorf("the first was answered %v", err)
	}
}

// The same without a start: the binding is deleted under a store that runs, and
// that another one had shut out. It binds the ledger again, and only then
// touches what the other has left; the other is shut out from then on.
func TestAStoreThatFindsTheLedgerFreeTakesItsBuckets(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	ours := newRig(t, shopOf(t, s, "ours"))
	s.FlushAll()
	theirs := newRig(t, shopOf(t, s, "theirs"))
	theirs.expect(ledger.OutcomeApplied, 1, 0, reserve(theirs.claim("bob", "")))
	if err := ours.ledger.Rebind(ours.ctx()); !errors.Is(err, ledger.ErrOtherStore) {
		t.Fatalf("bound to another, it said %v", err)
	}
	s.Must("DEL", ours.ledger.keys.store(0))
	if _, err := ours.ledger.Read(ours.ctx(), ours.shard); !errors.Is(err, ledger.ErrOtherStore) {
		t.Errorf("before it is bound: %v", err)
	}
	for range 2 {
		if err := ours.ledger.Rebind(ours.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	if f := ours.figures(); f.Marked != 1 {
		t.Errorf("figures are %+v", f)
	}
	for name, call := range map[string]func() error{
		"read":   func() error { _, err := theirs.ledger.Read(theirs.ctx(), theirs.shard); return err },
		"rebind": func() error { return theirs.ledger.Rebind(theirs.ctx()) },
	} {
		if err := call(); !errors.Is(err, ledger.ErrOtherStore) {
			t.Errorf("the other's %s was answered %v", name, err)
		}
	}
}
