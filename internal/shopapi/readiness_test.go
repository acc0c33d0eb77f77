package shopapi

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill"
	"seckill/internal/sale"
	"seckill/test/rig"
)

// part is one that works, or does not.
type part struct{ err error }

func (p part) Ping(context.Context) error { return p.err }

// readyStore is a store that has products, and may not answer.
type readyStore struct {
	products []seckill.Product
	down     error
}

func (s *readyStore) Ping(context.Context) error { return s.down }

func (*readyStore) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (s *readyStore) CurrentProducts(context.Context) ([]seckill.Product, error) {
	return s.products, nil
}

// A shop is ready while it can sell something, or while it is no better off
// than the others.
func TestReadiness_ReadyWhileItCanSell(t *testing.T) {
	away := errors.New("away")
	ends := time.Now().Add(time.Hour)
	queued, direct := seckill.Product{ID: 1, EndsAt: ends, Strategy: seckill.StrategyAsync}, seckill.Product{ID: 2, EndsAt: ends, Strategy: seckill.StrategyDirect}
	falls, over := seckill.Product{ID: 3, EndsAt: ends, Fallback: seckill.FallbackStore}, seckill.Product{ID: 4, Strategy: seckill.StrategyDirect}
	taken := queued
	taken.Seller = seckill.SellerStore
	for _, c := range []struct {
		name          string
		sharedLedger  bool
		sharedStore   bool
		products      []seckill.Product
		ledger, store error
		ready         bool
	}{
		{"embedded, all well", false, false, nil, nil, nil, true},
		{"embedded, no store", false, false, nil, nil, away, false},
		{"embedded, no ledger", false, false, []seckill.Product{direct}, away, nil, false},
		{"shared, all well", true, true, nil, nil, nil, true},
		{"shared, no store: orders wait", true, true, []seckill.Product{queued}, nil, away, true},
		{"shared, no ledger", true, true, []seckill.Product{queued, over}, away, nil, false},
		{"shared, no ledger, a direct product", true, true, []seckill.Product{queued, direct}, away, nil, true},
		{"shared, no ledger, one that falls back on the store", true, true, []seckill.Product{falls}, away, nil, false},
		{"shared, no ledger, one that was taken over", true, true, []seckill.Product{taken}, away, nil, true},
		{"shared, nothing at all", true, true, []seckill.Product{direct}, away, away, false},
		{"Redis beside a file", true, false, []seckill.Product{queued}, nil, away, false},
	} {
		shelf := &readyStore{products: c.products, down: c.store}
		r := NewReadiness(ReadinessOptions{
			Store: shelf, Ledger: part{c.ledger}, SharedStore: c.sharedStore, SharedLedger: c.sharedLedger,
			Clock: sale.NewClock(nil, nil), Catalog: sale.NewCatalog(shelf),
		})
		rig.Must(t, r.catalog.Refresh(t.Context()))
		if err := r.Check(t.Context()); (err == nil) != c.ready {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
