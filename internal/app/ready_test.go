package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill"
	"seckill/internal/config"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/test/rig"
)

// shelf is a store that has products, and may not answer.
type shelf struct {
	store.Store
	products []seckill.Product
	down     error
}

func (s *shelf) Ping(context.Context) error { return s.down }

func (*shelf) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (s *shelf) CurrentProducts(context.Context) ([]seckill.Product, error) { return s.products, nil }

// A shop is ready while it can sell something, or while it is no better off
// than the others.
func TestAShopIsReadyWhileItCanSell(t *testing.T) {
	away := errors.New("away")
	ends := time.Now().Add(time.Hour)
	queued, direct := seckill.Product{ID: 1, EndsAt: ends, Strategy: seckill.StrategyAsync}, seckill.Product{ID: 2, EndsAt: ends, Strategy: seckill.StrategyDirect}
	falls, over := seckill.Product{ID: 3, EndsAt: ends, Fallback: seckill.FallbackStore}, seckill.Product{ID: 4, Strategy: seckill.StrategyDirect}
	taken := queued
	taken.Seller = seckill.SellerStore
	const redis, mysql = config.LedgerRedis, config.DSN("mysql:u@tcp(h:1)/d")
	for _, c := range []struct {
		name          string
		kind          string
		dsn           config.DSN
		products      []seckill.Product
		ledger, store error
		ready         bool
	}{
		{"embedded, all well", config.LedgerMemory, "", nil, nil, nil, true},
		{"embedded, no store", config.LedgerMemory, "", nil, nil, away, false},
		{"embedded, no ledger", config.LedgerMemory, "", []seckill.Product{direct}, away, nil, false},
		{"shared, all well", redis, mysql, nil, nil, nil, true},
		{"shared, no store: orders wait", redis, mysql, []seckill.Product{queued}, nil, away, true},
		{"shared, no ledger", redis, mysql, []seckill.Product{queued, over}, away, nil, false},
		{"shared, no ledger, a direct product", redis, mysql, []seckill.Product{queued, direct}, away, nil, true},
		{"shared, no ledger, one that falls back on the store", redis, mysql, []seckill.Product{falls}, away, nil, false},
		{"shared, no ledger, one that was taken over", redis, mysql, []seckill.Product{taken}, away, nil, true},
		{"shared, nothing at all", redis, mysql, []seckill.Product{direct}, away, away, false},
		{"Redis beside a file", redis, "", []seckill.Product{queued}, nil, away, false},
	} {
		cfg := config.Default()
		cfg.Ledger.Kind, cfg.Store.DSN = c.kind, c.dsn
		shelf := &shelf{products: c.products, down: c.store}
		p := &parts{
			cfg: cfg, store: shelf, storeProbe: newProbe(shelf.Ping), ledgerProbe: newProbe(func(context.Context) error { return c.ledger }),
			clock: sale.NewClock(nil, nil), catalog: sale.NewCatalog(shelf),
		}
		rig.Must(t, p.catalog.Refresh(t.Context()))
		if err := p.ready(t.Context()); (err == nil) != c.ready {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
