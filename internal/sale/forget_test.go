package sale

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

// endedSales is a store with products whose sales are over.
type endedSales struct {
	store.Store
	products []seckill.Product
}

func (*endedSales) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (s *endedSales) CurrentProducts(context.Context) ([]seckill.Product, error) {
	return s.products, nil
}

func (s *endedSales) Announce(context.Context, uint32, seckill.EventKind) (bool, error) {
	return true, nil
}

func TestKeeper_KeepsNothingOfProductsThatAreGone(t *testing.T) {
	const many = 10_000
	ended, log := &endedSales{}, slog.New(slog.DiscardHandler)
	for id := range uint32(many) {
		ended.products = append(ended.products, seckill.Product{
			ID: id + 1, Strategy: seckill.StrategyDirect, Epoch: 1, StartsAt: time.Now().Add(-3 * keepAfterEnd), EndsAt: time.Now().Add(-2 * keepAfterEnd),
		})
	}
	lifecycle := NewLifecycle(LifecycleOptions{
		Store: ended, Catalog: NewCatalog(ended), Clock: NewClock(nil, log), Logger: log,
	})
	told := 0
	k := NewKeeper(lifecycle, 0, func(uint32) { told++ }, func(uint32) {})
	round := func() {
		t.Helper()
		if err := errors.Join(lifecycle.catalog.Refresh(t.Context()), k.Round(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range ended.products {
		lifecycle.failures.add(p.ID, errors.New("fails"))
	}
	round()
	round()
	if told != many || len(k.announced) == 0 {
		t.Errorf("the ends of %d sales were told, want %d; %d announcements are known", told, many, len(k.announced))
	}
	if left := len(lifecycle.failures.of); left != 0 {
		t.Errorf("failures of %d products whose ledger is not looked after any more", left)
	}
	ended.products = nil
	round()
	if left := len(k.announced); left != 0 {
		t.Errorf("%d announcements of products that are gone", left)
	}
}

func TestHandover_KeepsNothingOfTakeoversThatAreOver(t *testing.T) {
	h := &Handover{Lifecycle: &Lifecycle{catalog: NewCatalog(nil)}}
	h.acknowledged.Store(uint32(1), uint64(2))
	if err := h.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if epoch, kept := h.acknowledged.Load(uint32(1)); kept {
		t.Errorf("epoch %v is remembered", epoch)
	}
}

func TestLocks_KeepNothingThatNobodyUses(t *testing.T) {
	var l locks
	var working sync.WaitGroup
	inside := make([]int, 10)
	for i := range 10_000 {
		working.Go(func() {
			release, err := l.acquire(t.Context(), uint32(i%len(inside)))
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			inside[i%len(inside)]++ // the race detector sees two who are there at once
		})
	}
	working.Wait()
	release, err := l.acquire(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.acquire(gone, 1); !seckill.CodeBusy.In(err) {
		t.Errorf("a lock that another holds: %v", err)
	}
	if len(l.of) != 1 {
		t.Errorf("%d locks, of which one is held", len(l.of))
	}
	release()
	if len(l.of) != 0 {
		t.Errorf("%d locks that nobody uses", len(l.of))
	}
}
