package sale

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/notify"
	"seckill/test/virtual"
)

// catalogue is a source of products.
type catalogue []seckill.Product

func (catalogue) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (c catalogue) CurrentProducts(context.Context) ([]seckill.Product, error) { return c, nil }

// listeners is an instance that has others beside it, with three products: one
// that the ledger sells, one that the store has taken over, and a direct one.
func listeners(t *testing.T, publish func(mark uint64)) (n *Notifier, async, taken, direct *Sale) {
	t.Helper()
	catalog := NewCatalog(catalogue{
		{ID: 1, Strategy: seckill.StrategyAsync}, {ID: 2, Strategy: seckill.StrategyAsync, Seller: seckill.SellerStore, StoreOpen: true}, {ID: 3, Strategy: seckill.StrategyDirect},
	})
	n = newTestNotifier(catalog, fences(func(_ context.Context, mark uint64) (int, bool, error) { publish(mark); return 1, false, nil }))
	if err := catalog.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.fence.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return n, catalog.Find(1), catalog.Find(2), catalog.Find(3)
}

// silentBoard posts to nobody, and is not notify.NoBoard: there are others.
type silentBoard struct{ notify.NoBoard }

type fences func(ctx context.Context, mark uint64) (int, bool, error)

func (f fences) Fence(ctx context.Context, mark uint64) (int, bool, error) { return f(ctx, mark) }

func newTestNotifier(catalog *Catalog, fence FenceLedger) *Notifier {
	log := slog.New(slog.DiscardHandler)
	return NewNotifier(NotifierOptions{
		Board: silentBoard{}, Fence: fence, Catalog: catalog, Memory: NewMemory(), Clock: NewClock(nil, log), Logger: log,
		Duties: background.NewDuties(notify.NoBoard{}),
	})
}

// The flag of what the ledger sells waits for its notes. What the store sells the
// gate asks the store for.
func TestWhatAFlagWaitsFor(t *testing.T) {
	const hop = time.Millisecond // of a mark, to the board and back
	virtual.Test(t, func(t *testing.T) {
		var n *Notifier
		n, async, taken, direct := listeners(t, func(mark uint64) {
			virtual.Sleep(hop)
			n.hear(notify.Notice{Kind: notify.Fenced, Barrier: mark})
		})
		n.joined()
		wait := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		flags := func(want ...bool) {
			t.Helper()
			for i, s := range []*Sale{async, taken, direct} {
				if s.SoldOut() != want[i] {
					t.Errorf("product %d is sold out: %t", s.ID, !want[i])
				}
			}
		}
		mark := func() {
			for _, s := range []*Sale{async, taken, direct} {
				s.RaiseSoldOut(time.Now())
			}
		}
		mark()
		flags(false, true, true)
		wait(hop)
		flags(true, true, true)
		wait(2 * time.Second)
		flags(false, false, false)
	})
}

// While nothing is heard everybody counts as known, and a flag turns away
// nobody. It must not stand when they no longer do.
func TestAFlagThatWasRaisedUnheardFallsWhenTheBoardIsJoined(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		n, on, _, _ := listeners(t, func(uint64) {}) // no mark comes back
		asked := time.Now()
		on.RaiseSoldOut(asked)
		if !on.SoldOut() {
			t.Error("not raised at once while nothing is heard")
		}
		<-time.After(time.Millisecond)
		n.joined()
		if on.SoldOut() {
			t.Error("the flag stands past the joining")
		}
		n.leave()
		on.RaiseSoldOut(asked)
		if on.SoldOut() {
			t.Error("raised by a proof from before the joining")
		}
		n.joined()
		on.RaiseSoldOut(time.Now())
		<-time.After(5 * time.Second)
		synctest.Wait()
		if on.SoldOut() {
			t.Error("raised though no mark was heard")
		}
	})
}

// Notes that a dead master took with it are made up for by the ledger: until it
// was read again, everybody may have bought.
func TestNotesThatAreLostHaveTheBuyersReadAgain(t *testing.T) {
	for _, anew := range []bool{false, true} {
		n := newTestNotifier(NewCatalog(catalogue{}), fences(func(context.Context, uint64) (int, bool, error) { return 3, anew, nil }))
		doubts := n.Memory.Doubts()
		if places, err := n.publishBarrier(t.Context(), 1); err != nil || places != 3 {
			t.Errorf("published in %d places: %v", places, err)
		}
		if doubted, asked := n.Memory.Doubts() > doubts, len(n.rescan) > 0; doubted != anew || asked != anew {
			t.Errorf("lost %v: doubted %v, to be read %v", anew, doubted, asked)
		}
	}
}
