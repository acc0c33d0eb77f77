package storesql

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
	"seckill/test/server"
)

var operator = store.Actor{Name: "operator", Reason: "test"}

// openAt opens and migrates the store at dsn until the test ends.
func openAt(tb testing.TB, dsn string, opt Options) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), dsn, opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	if err := s.Migrate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s
}

func openNew(tb testing.TB) *Store {
	tb.Helper()
	return openAt(tb, "sqlite:"+filepath.Join(tb.TempDir(), "store.db"), Options{})
}

// everyDatabase runs the test on a new store of each kind.
func everyDatabase(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Run("SQLite", func(t *testing.T) { test(t, openNew(t)) })
	t.Run("MariaDB", func(t *testing.T) {
		test(t, openAt(t, server.SharedMariaDB(t).NewDatabase(t), Options{}))
	})
}

func embedded(s *Store) *sqliteDB { return s.db.(*sqliteDB) }

// damage runs a statement that bypasses the store.
func damage(tb testing.TB, s *Store, query string, args ...any) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.db.write(ctx, func(tx *session) error {
		_, err := tx.exec(ctx, query, args...)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// sale creates a preheated product of one unit per buyer.
func sale(tb testing.TB, s *Store, stock int64, edits ...func(*seckill.Product)) seckill.Product {
	tb.Helper()
	now := s.now()
	draft := seckill.Product{
		ID: 7, Name: "Kettle", PriceCents: 999, Currency: "CNY", Stock: stock, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: now, EndsAt: now.Add(time.Hour),
	}
	for _, edit := range edits {
		edit(&draft)
	}
	p, err := s.CreateProduct(tb.Context(), draft, operator)
	if err != nil {
		tb.Fatal(err)
	}
	p, err = s.OpenEpoch(tb.Context(), p.ID, 0, 0, operator, func(seckill.Order) error { return nil })
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// takeOver makes the store the seller of a product, and opens it.
func takeOver(ctx context.Context, s *Store, id uint32) (seckill.Product, error) {
	p, err := s.Product(ctx, id)
	if err != nil {
		return p, err
	}
	if p, err = s.TakeOver(ctx, id, p.Epoch, operator); err != nil {
		return p, err
	}
	_, err = s.OpenStore(ctx, id, p.Epoch)
	return p, err
}

var orderCount atomic.Uint64

// claims returns n new claims, each of another buyer.
func claims(p *seckill.Product, n int) []store.Item {
	items, at := make([]store.Item, n), time.Now().UTC().Truncate(time.Millisecond)
	for i := range items {
		id := orderCount.Add(1)
		items[i] = store.Item{
			// In a real sale buyers arrive in random order, so their ids are hashed.
			Claim: seckill.Claim{
				OrderNo: seckill.NewOrderNo(at, p.ID, id), Buyer: fmt.Sprintf("buyer-%016x", id*0x9E3779B97F4A7C15),
				Quantity: 1, Key: fmt.Sprintf("key-%d", id),
			},
			ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, At: at, PriceCents: p.PriceCents, Currency: p.Currency,
			Name: p.Name, Limit: p.PerUserLimit,
		}
	}
	return items
}

func request(p *seckill.Product, items []store.Item) store.ConfirmRequest {
	return store.ConfirmRequest{ProductID: p.ID, Items: items, ExpireAfter: 30 * time.Minute}
}
