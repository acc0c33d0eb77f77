package ledgerredis

import (
	"context"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/test/server"
)

// A counter that was deleted, or overtaken by an entry added by hand, must not block the
// bucket. The next call sets it to the stream's last entry.
func TestReserve_CounterCatchesUpWithTheStream(t *testing.T) {
	for name, damage := range map[string]func(s *server.RedisServer, out, queue string){
		"the counter was deleted": func(s *server.RedisServer, _, queue string) { s.Must("DEL", queue) },
		"an entry was added by hand": func(s *server.RedisServer, out, _ string) {
			s.Must("XDEL", out, s.Must("XADD", out, "*", "a", "b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, _ := standalone(t, server.RedisOptions{})
			bucket := bucketOf(r.shard.Group, r.shard.Index)
			out := r.ledger.keys.out(bucket)
			r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
			r.expect(ledger.OutcomeApplied, 2, 1, reserve(r.claim("bob", "")))
			damage(s, out, r.ledger.keys.queue(bucket))
			r.expect(ledger.OutcomeApplied, 3, 2, reserve(r.claim("cat", ""), r.claim("cat", "")))
			r.expect(ledger.OutcomeApplied, 4, 3, ledger.Adopt(reserve(r.claim("dan", ""))))
			r.wantSold(5)
			if n := s.Must("XLEN", out); n != "4" {
				t.Errorf("%s entries", n)
			}
			held, err := r.ledger.Held(r.ctx(), r.shard, "cat")
			if err != nil || len(held) != 2 || len(held[0].Entry.Claims) != 1 {
				t.Errorf("the orders do not know their entry: %+v, %v", held, err)
			}
		})
	}
}

// The audit counts the actual marks. Deleted ones are missing; released ones and those of
// another product do not count.
func TestAudit_CountsTheMarks(t *testing.T) {
	const marks = 5 * auditCount
	for name, c := range map[string]struct {
		damage  func(s *server.RedisServer, mark, group string)
		missing int64
	}{
		"untouched":          {func(*server.RedisServer, string, string) {}, 0},
		"one mark deleted":   {func(s *server.RedisServer, mark, _ string) { s.Must("HDEL", mark, "ann") }, 1},
		"all marks deleted":  {func(s *server.RedisServer, mark, _ string) { s.Must("DEL", mark) }, marks + 2},
		"the group deleted":  {func(s *server.RedisServer, _, group string) { s.Must("DEL", group) }, marks + 2},
		"the product's gone": {func(s *server.RedisServer, _, group string) { s.Must("HDEL", group, "1") }, marks + 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, _ := standalone(t, server.RedisOptions{})
			r.shard.Epoch = 2
			install := func(shard ledger.Shard, n int) {
				t.Helper()
				if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: shard, Available: 10, Limit: 5}, marksOf(shard.Product, n)); err != nil {
					t.Fatal(err)
				}
			}
			install(r.shard, marks)
			sibling := r.shard
			sibling.Product = 2
			install(sibling, 3)
			if ok, err := r.ledger.Open(r.ctx(), r.shard); err != nil || !ok {
				t.Fatal(ok, err)
			}
			ann, bob, cat := r.claim("ann", "a"), r.claim("bob", "b"), r.claim("cat", "c")
			r.expect(ledger.OutcomeApplied, 1, 0, reserve(ann, bob, cat))
			r.expect(ledger.OutcomeApplied, 2, 1, ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: cat.OrderNo, Buyer: "cat"}}})
			c.damage(s, r.ledger.keys.mark(r.shard), r.ledger.keys.group(r.shard))
			got, err := r.ledger.Audit(r.ctx(), r.shard)
			want := ledger.Audit{Epoch: 2, Steady: true, Marked: marks + 2, Live: marks + 2, Units: marks + 2 - c.missing, Orders: marks + 2 - c.missing}
			if err != nil || got != want {
				t.Errorf("%+v, want %+v: %v", got, want, err)
			}
		})
	}
}

// While orders come and go, an audit reports that it is not steady, and stops.
func TestAudit_UnderTrafficIsNotSteady(t *testing.T) {
	r, _, _ := standalone(t, server.RedisOptions{})
	r.shard.Epoch = 2
	const marks = 40 * auditCount
	if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: 1000, Limit: 5}, marksOf(1, marks)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ledger.Open(r.ctx(), r.shard); err != nil {
		t.Fatal(err)
	}
	traffic, stop := context.WithCancel(r.ctx())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for number := uint64(1); traffic.Err() == nil; number += 2 {
			c := r.claim("ann", "")
			for i, w := range []ledger.Write{reserve(c), ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: c.OrderNo, Buyer: "ann"}}}} {
				_, _ = r.ledger.Do(traffic, r.request(number+uint64(i), number+uint64(i)-1, w))
			}
		}
	}()
	r.eventually("an audit that orders disturb", func() bool {
		got, err := r.ledger.Audit(r.ctx(), r.shard)
		if err != nil {
			t.Fatal(err)
		}
		return !got.Steady
	})
	stop()
	<-stopped
}

// A group that lost its counter must not reuse generations of existing marks, whose orders
// would count twice.
func TestInstall_DeletedGroupIsCreatedAgain(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", ""), r.claim("bob", "")))
	s.Must("DEL", r.ledger.keys.group(r.shard))
	r.shard.Epoch = 2
	marks := func(yield func(ledger.Mark, error) bool) {
		yield(ledger.Mark{Buyer: "ann", OrderNo: seckill.NewOrderNo(time.UnixMilli(1_800_000_000_000), 1, 1), Quantity: 1}, nil)
	}
	if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: 9, Limit: 5}, marks); err != nil {
		t.Fatal(err)
	}
	if got, err := r.ledger.Audit(r.ctx(), r.shard); err != nil || got.Units != 1 || got.Marked != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
