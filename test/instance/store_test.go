package instance

import (
	"database/sql"
	"strings"
	"testing"

	"seckill/test/engine"
	"seckill/test/server"
)

// Two databases on one Redis and prefix, as by mistake, have keys of their own:
// each sells its product of the same number, and after Redis lost everything each
// builds its own again.
func TestTwoDatabasesOnTheSameRedisAndPrefixDoNotMeet(t *testing.T) {
	t.Parallel()
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	on := engine.Join(engine.OnRedis(redis.Addr()), map[string]string{"redis.prefix": "shop:"})
	shops := []*engine.Engine{
		engine.Start(t, engine.Options{Settings: engine.Join(on, engine.OnStore(maria.NewDatabase(t)))}),
		engine.Start(t, engine.Options{Settings: engine.Join(on, engine.OnStore(maria.NewDatabase(t)))}),
	}
	for _, shop := range shops {
		openSale(t, shop, engine.Product{ID: 1, Stock: 3})
	}
	sell := func(buyer string, rest int64) {
		t.Helper()
		for _, shop := range shops {
			await(t, shop, buyer, buys(t, shop, 1, buyer), "pending")
			figures, err := shop.Operator().Stats(t.Context(), 1)
			if err != nil || figures.Available() != rest {
				t.Errorf("after %s: %+v, %v", buyer, figures, err)
			}
		}
	}
	sell("bob", 2)
	redis.FlushAll()
	for _, shop := range shops {
		until(t, "the product is sold again", func() bool {
			_, code := buy(t.Context(), shop, 1, "carl")
			return code == ""
		})
	}
	sell("eve", 0)
}

// A session that was left open holds the row of a product. Orders of that one
// wait for it; those of others do not.
func TestARowThatIsHeldStopsItsOwnProductOnly(t *testing.T) {
	t.Parallel()
	dsn := server.SharedMariaDB(t).NewDatabase(t)
	e := engine.Start(t, engine.Options{Settings: engine.Join(engine.OnRedis(server.SharedRedis(t).Addr()), engine.OnStore(dsn),
		map[string]string{"worker.count": "1"})})
	openSale(t, e, engine.Product{ID: 1, Stock: 3})
	openSale(t, e, engine.Product{ID: 2, Stock: 3})
	pool, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
	must(t, "open the store", err)
	defer pool.Close()
	left, err := pool.BeginTx(t.Context(), nil)
	must(t, "open a session", err)
	defer left.Rollback()
	var id int
	must(t, "hold the row", left.QueryRow(`SELECT id FROM tb_seckill_product WHERE id = 1 FOR UPDATE`).Scan(&id))

	stuck := buys(t, e, 1, "ann")
	until(t, "the worker waits for the row", func() bool {
		var waiting int
		err := pool.QueryRow(`SELECT COUNT(*) FROM information_schema.PROCESSLIST
			WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND COMMAND = 'Query' AND TIME >= 1`).Scan(&waiting)
		must(t, "look for who waits", err)
		return waiting > 0
	})
	await(t, e, "bob", buys(t, e, 2, "bob"), "pending")
	await(t, e, "ann", stuck, "queued")
	must(t, "end the session", left.Rollback())
	await(t, e, "ann", stuck, "pending")
}
