package ledgerredis

import (
	"errors"
	"iter"
	"strconv"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

// marksOf returns n marks of one unit, each of another buyer.
func marksOf(product uint32, n int) iter.Seq2[ledger.Mark, error] {
	at := time.UnixMilli(1_800_000_000_000)
	return func(yield func(ledger.Mark, error) bool) {
		for i := range n {
			m := ledger.Mark{Buyer: "buyer-" + strconv.Itoa(i), OrderNo: seckill.NewOrderNo(at, product, uint64(i)), Quantity: 1}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// All marks of many chunks are installed. Those of the old epoch are invisible at once and
// deleted later.
func TestInstall_ReplacesMarksAndSweepsOldOnes(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	const marks = 3*installChunk + 7
	allot := func(n int) {
		t.Helper()
		r.shard.Epoch++
		epoch, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: 10, Limit: 5}, marksOf(1, n))
		if err != nil || epoch != r.shard.Epoch {
			t.Fatal(epoch, err)
		}
		if f := r.figures(); f.Marked != int64(n) || f.Orders != int64(n) || f.Allotted != int64(10+n) || f.Open {
			t.Fatalf("%+v", f)
		}
	}
	allot(marks)
	held, err := r.ledger.Held(r.ctx(), r.shard, "buyer-"+strconv.Itoa(marks-1))
	if err != nil || len(held) != 1 {
		t.Fatalf("the last buyer holds %v, %v", held, err)
	}
	allot(1)
	if held, err := r.ledger.Held(r.ctx(), r.shard, "buyer-1"); err != nil || len(held) != 0 {
		t.Fatalf("a buyer of the old epoch holds %v, %v", held, err)
	}
	r.eventually("the old marks are swept", func() bool { return s.Must("HLEN", r.ledger.keys.mark(r.shard)) == "1" })
}

// An install that fails, or meets a higher epoch, leaves nothing.
func TestInstall_FailedLeavesNoMarks(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	next := r.shard
	next.Epoch = 2
	broken := errors.New("the store went away")
	_, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: next, Available: 1, Limit: 1}, func(yield func(ledger.Mark, error) bool) {
		for m := range marksOf(1, installChunk+1) {
			if !yield(m, nil) {
				return
			}
		}
		yield(ledger.Mark{}, broken)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("%v, want the cause", err)
	}
	r.eventually("the staged marks are swept", func() bool { return s.Must("HLEN", r.ledger.keys.mark(r.shard)) == "0" })
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", ""))) // epoch 1 continues

	overtaken := func(yield func(ledger.Mark, error) bool) {
		for m := range marksOf(1, 2*installChunk) {
			if !yield(m, nil) {
				return
			}
			if m.Buyer == "buyer-"+strconv.Itoa(installChunk) {
				higher := next
				higher.Epoch = 3
				if epoch, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: higher, Available: 1, Limit: 1}, marksOf(1, 2)); err != nil || epoch != 3 {
					t.Error(epoch, err)
				}
			}
		}
	}
	if epoch, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: next, Available: 1, Limit: 1}, overtaken); err != nil || epoch != 3 {
		t.Fatalf("the overtaken install: %d, %v", epoch, err)
	}
	r.eventually("only the higher epoch's marks are left", func() bool { return s.Must("HLEN", r.ledger.keys.mark(r.shard)) == "2" })
}

// If a failover loses a chunk, the other chunks must not become live.
func TestInstall_FailsIfAChunkIsLost(t *testing.T) {
	r, _, _ := standalone(t, server.RedisOptions{})
	next := r.shard
	next.Epoch = 2
	var before recording
	_, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: next, Available: 1, Limit: 1}, func(yield func(ledger.Mark, error) bool) {
		i := 0
		for m := range marksOf(1, 3*installChunk) {
			switch i {
			case installChunk + 1: // one chunk is staged
				before = record(r)
			case 2*installChunk + 1: // two are
				before.failover(r)
			}
			i++
			if !yield(m, nil) {
				return
			}
		}
	})
	if !errors.Is(err, ledger.ErrNotExecuted) || !errors.Is(err, errSuperseded) {
		t.Fatalf("%v", err)
	}
	if f := r.figures(); f.Epoch != 1 || !f.Open {
		t.Errorf("%+v", f)
	}
}

// A step whose reply is lost is sent again, and writes its marks once.
func TestInstall_SucceedsOverABadNetwork(t *testing.T) {
	r, s, _ := standalone(t, server.RedisOptions{})
	proxy := server.Proxy(t, s.Addr())
	bad := opened(t, Options{Place: redisclient.Place{Addrs: []string{proxy.Addr()}}})
	r.shard.Epoch = 2
	const marks = 4 * installChunk
	reached, frozen, done := make(chan int), make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(reached)
		_, err := bad.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: 10, Limit: 5}, func(yield func(ledger.Mark, error) bool) {
			i := 0
			for m := range marksOf(1, marks) {
				if i == installChunk/2 || i == 2*installChunk+1 {
					reached <- i
					<-frozen
				}
				i++
				if !yield(m, nil) {
					return
				}
			}
		})
		done <- err
	}()
	for i := range reached { // the reply of the chunk that this mark is in is lost
		proxy.FreezeReplies()
		frozen <- struct{}{}
		arrived := strconv.Itoa((i/installChunk + 1) * installChunk)
		r.eventually("the chunk is staged", func() bool { return s.Must("HLEN", r.ledger.keys.mark(r.shard)) == arrived })
		proxy.Cut()
		proxy.Heal()
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if f := r.figures(); f.Epoch != 2 || f.Marked != marks || f.Orders != marks {
		t.Errorf("%+v", f)
	}
	for _, buyer := range []string{"buyer-0", "buyer-" + strconv.Itoa(marks-1)} {
		if held, err := r.ledger.Held(r.ctx(), r.shard, buyer); err != nil || len(held) != 1 {
			t.Errorf("%s holds %v, %v", buyer, held, err)
		}
	}
}
