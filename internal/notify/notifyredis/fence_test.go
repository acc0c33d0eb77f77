package notifyredis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/notify"
	"seckill/internal/notify/notifyredis"
	"seckill/test/rig"
	"seckill/test/server"
)

// fencedBoard is a board with a fence, as in an instance.
type fencedBoard struct {
	*notify.Fence
	known  chan uint64 // buyers in the order of their notes
	joined chan struct{}
}

// listenAt listens at one place. A ledger publishes its barriers.
func listenAt(t *testing.T, at redisclient.Place, prefix string, by *ledgerredis.Ledger) *fencedBoard {
	t.Helper()
	board := notifyredis.New(notifyredis.Options{Place: at, Name: "b", Prefix: prefix, Tag: 2, Logger: quiet})
	h := &fencedBoard{known: make(chan uint64, 1000), joined: make(chan struct{}, 10)}
	h.Fence = notify.NewFence(notify.FenceOptions{
		Publish: func(ctx context.Context, barrier uint64) (int, error) {
			places, _, err := by.Fence(ctx, barrier)
			return places, err
		},
		Random: rand.Uint64, OnFailed: func(err error) { t.Log(err) },
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	go func() {
		board.Run(ctx, func(n notify.Notice) {
			for _, buyer := range n.Buyers {
				h.known <- buyer
			}
			if n.Kind == notify.Fenced {
				h.Heard(n.Barrier)
			}
		}, func() { h.joined <- struct{}{} }, func() {})
		ended <- struct{}{}
	}()
	go func() {
		h.Run(ctx)
		ended <- struct{}{}
	}()
	t.Cleanup(func() { stop(); <-ended; <-ended })
	select {
	case <-h.joined:
	case <-time.After(rig.Patience):
		t.Fatal("the board does not listen")
	}
	return h
}

// caughtUp waits for a fence.
func (h *fencedBoard) caughtUp(t *testing.T) {
	t.Helper()
	rig.Until(t, "a fence has passed", func() bool {
		passed := make(chan struct{})
		h.Behind(1, func() { close(passed) })
		select {
		case <-passed:
			return true
		case <-time.After(2 * time.Second):
			return false // the fence failed
		}
	})
}

func (h *fencedBoard) buyers() (known []uint64) {
	for len(h.known) > 0 {
		known = append(known, <-h.known)
	}
	return known
}

// sellTo makes the ledger of another instance sell units of a shard, each in
// its own step. It returns after all answers.
func sellTo(t *testing.T, book *ledgerredis.Ledger, shard ledger.Shard, buyers ...string) {
	t.Helper()
	lane := ledger.NewLane(book, shard, ledger.LaneOptions{})
	for i, buyer := range buyers {
		result, err := lane.Do(t.Context(), ledger.Reserve{At: time.Now(), Claims: []seckill.Claim{
			{OrderNo: seckill.NewOrderNo(time.Now(), shard.Product, uint64(i)), Buyer: buyer, Quantity: 1},
		}})
		if err != nil || result.Verdicts[0].Code != ledger.VerdictAccepted {
			t.Fatalf("%v, %+v", err, result)
		}
	}
}

// All buyers from before a fence are known after it, on any node of a Cluster
// and listening to any node.
func TestFence_EarlierBuyersAreKnown(t *testing.T) {
	cluster := server.Cluster(t, server.ClusterOptions{})
	for name, places := range map[string][]redisclient.Place{
		"alone":   {{Addrs: []string{server.SharedRedis(t).Addr()}}},
		"Cluster": eachOf(cluster.Addrs()),
	} {
		t.Run(name, func(t *testing.T) {
			prefix := newPrefix(t)
			opt := ledgerredis.Options{Place: places[0], Prefix: prefix, Notes: notifyredis.NotesChannel(prefix), Tag: 1}
			seller, other := openLedger(t, opt), openLedger(t, opt)
			var listeners []*fencedBoard
			for _, place := range places {
				listeners = append(listeners, listenAt(t, place, prefix, other))
			}
			for product := range uint32(20) { // on all masters
				shard := ledger.Shard{Product: product + 1, Group: product + 1, Epoch: 1}
				stock(t, seller, shard, 3)
				var want []uint64
				var buyers []string
				for i := range 3 {
					buyers = append(buyers, fmt.Sprintf("%s-%d-%d", name, product, i))
					want = append(want, seckill.HashBuyer(buyers[i]))
				}
				sellTo(t, seller, shard, buyers...)
				for _, h := range listeners {
					h.caughtUp(t)
					known := h.buyers()
					for _, hash := range want {
						if !slices.Contains(known, hash) {
							t.Errorf("a buyer of product %d is not known after the fence", product+1)
						}
					}
				}
			}
		})
	}
}

func eachOf(addrs []string) (places []redisclient.Place) {
	for _, address := range addrs {
		places = append(places, redisclient.Place{Addrs: []string{address}})
	}
	return places
}

// If the notes are late, the fence is later.
func TestFence_WaitsForLateNotes(t *testing.T) {
	redis := server.SharedRedis(t)
	proxy := server.Proxy(t, redis.Addr())
	prefix, place := newPrefix(t), redisclient.Place{Addrs: []string{redis.Addr()}}
	book := openLedger(t, ledgerredis.Options{Place: place, Prefix: prefix, Notes: notifyredis.NotesChannel(prefix), Tag: 1})
	stock(t, book, soldShard, 1)
	h := listenAt(t, redisclient.Place{Addrs: []string{proxy.Addr()}}, prefix, book)
	h.caughtUp(t)
	proxy.FreezeReplies()
	sellTo(t, book, soldShard, "last")
	passed := make(chan struct{})
	h.Behind(1, func() { close(passed) })
	select {
	case <-passed:
		t.Fatal("a fence has passed before its barrier was heard")
	case <-time.After(200 * time.Millisecond):
	}
	if known := h.buyers(); len(known) != 0 {
		t.Fatalf("%d buyers are known, so the test shows nothing", len(known))
	}
	proxy.Heal()
	h.caughtUp(t)
	if known := h.buyers(); !slices.Contains(known, seckill.HashBuyer("last")) {
		t.Error("the last buyer is not known after the fence")
	}
}

// If a board listens to a server that is no longer the master, the fence must
// not pass.
func TestFence_NotHeardFromAnotherServer(t *testing.T) {
	here, there := server.SharedRedis(t), server.Redis(t, server.RedisOptions{})
	prefix := newPrefix(t)
	book := openLedger(t, ledgerredis.Options{
		Place: redisclient.Place{Addrs: []string{here.Addr()}}, Prefix: prefix, Notes: notifyredis.NotesChannel(prefix),
	})
	h := listenAt(t, redisclient.Place{Addrs: []string{there.Addr()}}, prefix, book)
	passed := make(chan struct{})
	h.Behind(1, func() { close(passed) })
	select {
	case <-passed:
		t.Error("the fence has passed")
	case <-time.After(300 * time.Millisecond):
	}
}

// With a frozen Redis a fence ends with its context.
func TestFence_EndsWithItsContext(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	book := openLedger(t, ledgerredis.Options{Place: redisclient.Place{Addrs: []string{redis.Addr()}}, Notes: "x:noted"})
	redis.Pause()
	defer redis.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if places, _, err := book.Fence(ctx, 1); err == nil {
		t.Errorf("published in %d places", places)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("returned after %s", took)
	}
}

// A master of a Cluster that dies loses notes that it had not passed on. After
// that, the fence must report that the process is another one.
func TestFence_ReportsThatAMasterHasDied(t *testing.T) {
	cluster := server.Cluster(t, server.ClusterOptions{})
	book := openLedger(t, ledgerredis.Options{Place: redisclient.Place{Addrs: cluster.Addrs()}, Notes: "x:noted"})
	masters := len(cluster.Nodes())
	want := func(what string, anew bool) {
		t.Helper()
		var told bool
		rig.Until(t, what, func() bool {
			places, again, err := book.Fence(t.Context(), 1)
			told = told || again
			return err == nil && places == masters
		})
		if told != anew {
			t.Errorf("%s: another process reported: %v, want %v", what, told, anew)
		}
	}
	want("the first fence", true)
	want("the next", false)
	dead := cluster.Nodes()[1]
	dead.Kill()
	dead.Start()
	want("behind the death", true)
	want("later", false)
}
