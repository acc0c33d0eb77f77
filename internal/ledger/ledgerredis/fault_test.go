package ledgerredis

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

func TestScripts_AreSentAgainAfterAFlush(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	for i, w := range []ledger.Write{reserve(r.claim("ann", "")), nil} {
		s.Must("SCRIPT", "FLUSH")
		before := s.Said("NOSCRIPT")
		r.expect(ledger.OutcomeApplied, uint64(1+i), uint64(i), w)
		if said := s.Said("NOSCRIPT") - before; said != 1 {
			t.Errorf("call %d: the server said NOSCRIPT %d times", 1+i, said)
		}
	}
	r.wantSold(1)
}

// The same number is sent again while the server is down and while it loads, and is applied
// once.
func TestCall_RepeatedUntilRedisHasLoaded(t *testing.T) {
	// Each key delays loading by 20 ms, and the server answers clients after each kilobyte. So
	// loading takes a second, in many parts.
	r, s, _ := standalone(t, server.RedisOptions{AppendFsync: "always", Args: []string{
		"--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no",
	}})
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	s.Must("DEBUG", "POPULATE", "50", "ballast", "1024")
	s.Must("BGREWRITEAOF")
	r.eventually("the append-only file is a copy of the data", func() bool {
		return strings.Contains(s.Must("INFO", "persistence"), "aof_rewrite_in_progress:0")
	})
	seen, sold := uint64(1), int64(1)
	for range maxRestarts {
		got := r.restarted(s, seen)
		if got.err == nil && got.reply.Outcome == ledger.OutcomeApplied {
			// The helper that waits for the start gets LOADING too.
			if s.Said("LOADING") == 0 || s.Rejected("evalsha") == 0 {
				t.Errorf("the call did not get LOADING:\n%s", s.Must("INFO", "commandstats"))
			}
			r.wantSold(sold + 1)
			return
		}
		// On a busy machine the server may be silent too long during a call. Then the
		// connection is closed and the outcome is unknown.
		if got.err == nil || errors.Is(got.err, ledger.ErrNotExecuted) {
			t.Fatalf("outcome %d, %v", got.reply.Outcome, got.err)
		}
		seen += 2
		sold += int64(len(r.repeat(seen, seen-2, nil).Kept))
	}
	t.Fatalf("in %d restarts no call was applied", maxRestarts)
}

// maxRestarts bounds the restarts until a call survives one.
const maxRestarts = 4

// restarted makes a call while the server is down, starts the server, and returns the result of
// the call.
func (r *rig) restarted(s *server.RedisServer, seen uint64) callResult {
	r.Helper()
	s.Kill()
	// After this, no connection is left that may have carried the call without our knowledge.
	r.eventually("the connection is seen to be broken", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err := r.ledger.Do(ctx, r.request(seen+1, seen, nil))
		return errors.Is(err, ledger.ErrNotExecuted)
	})
	landed := r.sendLater(r.ledger, r.ctx(), seen+1, seen, reserve(r.claim("bob", "")))
	s.Start()
	return <-landed
}

// A call that the server refuses before anything runs is repeated until the context ends, and
// then is known to have changed nothing.
func TestCall_RefusedIsNotExecuted(t *testing.T) {
	for name, fault := range map[string]struct{ refuse, heal []string }{
		"OOM":        {[]string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}},
		"NOREPLICAS": {[]string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}},
		"READONLY":   {[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, _ := standalone(t, server.RedisOptions{})
			s.Must(fault.refuse...)
			// The call is repeated until its deadline. One that was interrupted in flight has
			// an unknown outcome.
			r.eventually("not executed because of "+name, func() bool {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				defer cancel()
				_, err := r.ledger.Do(ctx, r.request(1, 0, reserve(r.claim("ann", ""))))
				return errors.Is(err, ledger.ErrNotExecuted) && strings.Contains(err.Error(), name)
			})
			if s.Said(name) < 2 {
				t.Errorf("the server said %s %d times: the call did not come again", name, s.Said(name))
			}
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			if err := r.ledger.Ping(ctx); err == nil {
				t.Error("Ping succeeded although the ledger cannot be written")
			}
			landed := r.sendLater(r.ledger, r.ctx(), 1, 0, reserve(r.claim("ann", "")))
			s.Must(fault.heal...)
			if got := <-landed; got.err != nil || got.reply.Outcome != ledger.OutcomeApplied {
				t.Fatalf("after it healed: %+v", got)
			}
			r.wantSold(1)
		})
	}
}

func TestCall_NotExecutedWithoutAServer(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	s.Kill()
	r.eventually("the connection is seen to be broken", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err := r.ledger.Do(ctx, r.request(1, 0, nil))
		return errors.Is(err, ledger.ErrNotExecuted)
	})
}

// With the server frozen, every call returns at its deadline, however many there are.
// Afterwards calls work again. On a busy machine some return late. So calls are compared with
// goroutines that only wait for the same deadline, and no single call is judged.
func TestCall_FrozenServerDelaysNoCaller(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	const callers, calls, deadline, grace = 64, 5, 300 * time.Millisecond, 300 * time.Millisecond
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	s.Pause()
	var wg sync.WaitGroup
	var late atomic.Int32
	for i := range callers {
		wg.Go(func() {
			for range calls { // longer than connections need to be closed and opened again
				ctx, cancel := context.WithTimeout(context.Background(), deadline)
				ended := make(chan time.Time, 1)
				go func() {
					<-ctx.Done()
					ended <- time.Now()
				}()
				var err error
				switch i % 3 {
				case 0:
					_, err = r.ledger.Do(ctx, r.request(2, 1, nil))
				case 1:
					_, err = r.ledger.Read(ctx, r.shard)
				case 2:
					_, err = r.ledger.Held(ctx, r.shard, "ann")
				}
				back := time.Now()
				cancel()
				if back.Sub(<-ended) > grace {
					late.Add(1)
				}
				if err == nil {
					t.Error("a frozen server answered")
				}
			}
		})
	}
	wg.Wait()
	if n := late.Load(); n > callers*calls/10 {
		t.Errorf("%d of %d calls were held up", n, callers*calls)
	}
	s.Resume()
	r.eventually("calls are answered again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		_, err := r.ledger.Read(ctx, r.shard)
		return err == nil
	})
	r.wantSold(1)
}

// A moving slot: ASK, TRYAGAIN and MOVED mean "not executed", and the same number is sent to
// the new node.
func TestCall_FollowsAMovingSlot(t *testing.T) {
	t.Parallel() // most of it is waiting
	cluster := server.Cluster(t, server.ClusterOptions{})
	r := newRig(t, opened(t, Options{Place: redisclient.Place{Addrs: cluster.Addrs()}}))
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	slot := cluster.Slot(r.ledger.keys.shard(r.shard))
	from := cluster.Owner(slot)
	to := cluster.After(from)

	cluster.BeginMigration(slot, from, to)
	r.expect(ledger.OutcomeApplied, 2, 1, reserve(r.claim("bob", ""))) // nothing has moved yet
	if moved := cluster.MoveKeys(slot, from, to, r.ledger.keys.mark(r.shard)); moved != 1 {
		t.Fatalf("%d keys moved", moved)
	}
	landed := r.sendLater(r.ledger, r.ctx(), 3, 2, reserve(r.claim("cat", "")))
	r.eventually("the call gets TRYAGAIN and is repeated", func() bool { return from.Said("TRYAGAIN") > 1 })
	cluster.MoveKeys(slot, from, to)
	if got := <-landed; got.err != nil || got.reply.Outcome != ledger.OutcomeApplied {
		t.Fatalf("%+v", got)
	}
	if from.Said("ASK") == 0 {
		t.Error("the call did not get ASK: it reached the right node by chance")
	}
	cluster.FinishMigration(slot, from, to)
	calls := uint64(3)
	// The client also looks for moves by itself. Then no call gets MOVED.
	for tries := 0; from.Said("MOVED") == 0; tries++ {
		if tries == maxMoves {
			t.Fatalf("after %d moves no call got MOVED", tries)
		}
		if tries > 0 {
			from, to = to, from
			cluster.MigrateSlot(slot, from, to)
		}
		calls++
		r.expect(ledger.OutcomeApplied, calls, calls-1, reserve(r.claim("dan", "")))
	}
	r.wantSold(int64(calls))
}

// maxMoves bounds the moves of a slot until a call gets MOVED. Each move sells one of ten
// units.
const maxMoves = 6

// A recovery must not stop half-way at a moving slot: there the server ends a script that reads
// a missing key, and keeps its earlier writes.
func TestInstall_CompleteWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := server.Cluster(t, server.ClusterOptions{})
	r := newRig(t, opened(t, Options{Place: redisclient.Place{Addrs: cluster.Addrs()}}))
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	r.expect(ledger.OutcomeApplied, 2, 1, ledger.StockChange{ID: "change", Delta: 5})
	r.expect(ledger.OutcomeApplied, 3, 2, ledger.Debit{To: 1, N: 1, ID: 9, Units: 2})
	if ok, err := r.ledger.SetState(r.ctx(), r.shard, seckill.SalePaused, 40); err != nil || !ok {
		t.Fatal(ok, err)
	}
	slot := cluster.Slot(r.ledger.keys.shard(r.shard))
	from := cluster.Owner(slot)
	to := cluster.After(from)

	cluster.BeginMigration(slot, from, to)
	r.shard.Epoch = 2
	epoch, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: 10, Limit: 5}, nil)
	if err != nil || epoch != 2 {
		t.Fatalf("epoch %d: %v", epoch, err)
	}
	cluster.MoveKeys(slot, from, to)
	cluster.FinishMigration(slot, from, to)
	want := ledger.Figures{Epoch: 2, Limit: 5, Allotted: 10, Available: 10}
	if got := r.figures(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Versions, verdicts and transfers end with their epoch.
	if ok, err := r.ledger.SetState(r.ctx(), r.shard, seckill.SaleOpen, 1); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if ok, err := r.ledger.Open(r.ctx(), r.shard); err != nil || !ok {
		t.Fatal(ok, err)
	}
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	r.wantSold(1)
}

func TestKind_OfEachDeployment(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("opened without an address")
	}
	if mode := opened(t, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}}).call.client.Mode(); mode != "standalone" {
		t.Errorf("a server alone is a %s", mode)
	}
}
