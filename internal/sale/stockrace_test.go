package sale_test

import (
	"context"
	"testing"

	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// interrupted is a store of one instance, which is held up between the
// ledger's word on a stock change and the store's.
type interrupted struct {
	*storetest.Faulty
	before func()
}

func (s *interrupted) FinishStockChange(ctx context.Context, id string, epoch uint64, refused bool) (store.StockChange, error) {
	s.before()
	return s.Faulty.FinishStockChange(ctx, id, epoch, refused)
}

// slowInstance is the lifecycle of another instance, which is held up like that.
func slowInstance(r *rig.Rig, holder string, before func()) *sale.Lifecycle {
	return sale.NewLifecycle(sale.LifecycleOptions{
		Store: &interrupted{r.Store, before}, Ledger: r.Ledger, Queue: r.Queue, Catalog: sale.NewCatalog(r.Store),
		Clock: r.Clock, Lanes: r.Lanes, Logger: quiet, Holder: holder,
	})
}

// One instance has the word of a ledger that is then rebuilt, another that of
// the new one, and the first comes to the store first: its word is void, for
// what the new ledger did stays done (I5).
func TestTheWordOfARebuiltLedgerSettlesNoStockChange(t *testing.T) {
	for name, story := range map[string]struct {
		buyers        []string // before the change
		rebuild       func(t *testing.T, r *rig.Rig)
		offered, free int64
	}{
		"refused by the old, taken by the new": {
			buyers: []string{"a", "b", "c"}, // 10 in the store, 7 free in the ledger
			rebuild: func(t *testing.T, r *rig.Rig) {
				r.ConfirmAll(t)
				orders, err := r.Store.SearchOrders(t.Context(), store.OrderFilter{Limit: 10})
				rig.Must(t, err)
				for _, o := range orders {
					_, err := r.Store.Cancel(t.Context(), o.OrderNo, "by_buyer", rig.Operator)
					rig.Must(t, err)
				}
				_, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
				rig.Must(t, err)
			},
			offered: 2, free: 2,
		},
		"taken by the old, refused by the new": {
			rebuild: func(t *testing.T, r *rig.Rig) {
				p, err := r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
				rig.Must(t, err)
				r.Buy(t, p, "d", "e", "f")
			},
			offered: 10, free: 7,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			r.Buy(t, r.Open(t, 1, 10), story.buyers...)
			told, let, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			first := slowInstance(r, "first", func() { close(told); <-let })
			go func() {
				defer close(done)
				change, err := first.ChangeStock(context.Background(), 1, -8, "box", rig.Operator)
				if err != nil || change.Status != store.ChangeOpen {
					t.Errorf("the first instance settled %+v: %v", change, err)
				}
			}()
			<-told
			story.rebuild(t, r)
			second := slowInstance(r, "second", func() { close(let); <-done })
			rig.Must(t, second.FinishStockChanges(t.Context(), 10))
			r.ConfirmAll(t)
			balance(t, r, story.offered, story.free)
		})
	}
}
