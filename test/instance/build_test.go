package instance

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

// doors is how many shoppers are in the shop at once, and saleFor is how long each
// part of the sale takes.
const (
	doors   = 6
	saleFor = 1500 * time.Millisecond
)

// Two builds work on one Redis and one store, as in a rolling upgrade. The later
// one gives heads, claims and the orders of marks a field that the other does not
// know. What one sells the other reads, confirms, cancels and rebuilds.
func TestRollingUpgrade_BuildsReadEachOther(t *testing.T) {
	t.Parallel()
	redis, dsn := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t).NewDatabase(t)
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(dsn), map[string]string{"worker.batch_wait": "5ms"})
	shop, worker := []string{engine.RoleShop, engine.RoleAdmin}, []string{engine.RoleWorker}
	build := func(tags string, roles []string) *engine.Engine {
		return engine.New(t, engine.Options{Settings: settings, Tags: tags, Roles: roles})
	}
	now, later := build("", shop), build("laterformat", shop)
	nowWorker, laterWorker := build("", worker), build("laterformat", worker)
	now.Start()
	later.Start()
	book := market.Shared(t, []*engine.Engine{now, later},
		engine.Product{ID: 1, Stock: 100, PerUserLimit: 1},
		engine.Product{ID: 2, Stock: 100, PerUserLimit: 3, LimitGroup: 2},
		engine.Product{ID: 3, Stock: 100, PerUserLimit: 3, LimitGroup: 2},
		engine.Product{ID: 4, Stock: 100, PerUserLimit: 2, Strategy: "sharded", Shards: 2},
	)
	book.Tables = func(t testing.TB) *sql.DB {
		db, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
		must(t.(*testing.T), "open the store", err)
		return db
	}
	sees(t, later, 4)

	openSale(t, now, engine.Product{ID: 9, Stock: 10, PerUserLimit: 2})
	sees(t, later, 9)
	confirms(t, later, now, nowWorker, "ann")
	confirms(t, now, later, laterWorker, "bob")
	rebuilds(t, later, now, "carl")
	rebuilds(t, now, later, "dora")

	nowWorker.Start()
	laterWorker.Start()
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		(&market.Crowd{Book: book}).Run(ctx, doors, 1)
	}()
	for _, e := range []*engine.Engine{now, later} {
		for product := range book.Products {
			market.Pause(ctx, saleFor/3)
			book.Rebuild(product)
			market.UntilAnswered(t, "rebuild", func(ctx context.Context) error {
				_, err := e.Operator().Recover(ctx, product)
				return err
			})
		}
	}
	market.Pause(ctx, saleFor)
	leave()
	<-left
	t.Log(book.Summary())
	book.Settle()
	book.SellOut()
	book.Check()
}

// confirms has a worker of one build confirm what the other sells, and a shop
// without its seller's fields read, cancel and find it.
func confirms(t *testing.T, seller, reader, worker *engine.Engine, buyer string) {
	t.Helper()
	purchase := engine.Purchase{Quantity: 1, Key: "the key of " + buyer}
	no := sellsTo(t, seller, buyer, purchase)
	await(t, reader, buyer, no, "queued")
	finds := func() {
		t.Helper()
		if found, err := reader.Buyer(buyer).Buy(t.Context(), 9, purchase); err != nil || found != no {
			t.Errorf("the key of %s finds %q, %v; want %s", buyer, found, err, no)
		}
	}
	finds()
	worker.Start()
	await(t, reader, buyer, no, "pending")
	_, err := reader.Buyer(buyer).Cancel(t.Context(), no)
	must(t, "cancel", err)
	until(t, "the unit is back", func() bool {
		figures, err := reader.Operator().Stats(t.Context(), 9)
		return err == nil && figures.Ledger.Reserved == 0 && figures.Ledger.Available == 10
	})
	finds()
	worker.MustStop()
}

// sellsTo sells product 9 to a buyer, who repeats the purchase while the shop is busy.
func sellsTo(t *testing.T, seller *engine.Engine, buyer string, purchase engine.Purchase) (no string) {
	t.Helper()
	must(t, "buy", market.UntilAnswered(t, "buy", func(ctx context.Context) (err error) {
		no, err = seller.Buyer(buyer).Buy(ctx, 9, purchase)
		return err
	}))
	return no
}

// rebuilds has one build rebuild a product of which an order of the other waits,
// while no worker runs: the rebuild writes it.
func rebuilds(t *testing.T, seller, rebuilder *engine.Engine, buyer string) {
	t.Helper()
	no := sellsTo(t, seller, buyer, engine.Purchase{Quantity: 1, Key: "the key of " + buyer})
	_, err := rebuilder.Operator().Recover(t.Context(), 9)
	must(t, "rebuild", err)
	await(t, rebuilder, buyer, no, "pending")
	sees(t, seller, 9)
}
