package instance

import (
	"database/sql"
	"strings"
	"testing"

	"seckill/test/engine"
	"seckill/test/server"
)

// Two databases on one Redis would confirm each other's orders: the second is
// refused, until it is told to take over.
func TestAnotherDatabaseOnTheSameRedisAndPrefixIsRefused(t *testing.T) {
	t.Parallel()
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	on := engine.Join(engine.OnRedis(redis.Addr()), map[string]string{"redis.prefix": "shop:"})
	first := engine.Start(t, engine.Options{Settings: engine.Join(on, engine.OnStore(maria.NewDatabase(t)))})
	openSale(t, first, engine.Product{ID: 1, Stock: 3})
	second := engine.New(t, engine.Options{Settings: engine.Join(on, engine.OnStore(maria.NewDatabase(t)))})
	if err := second.TryStart(); err == nil || !strings.Contains(err.Error(), "belongs to another store") {
		t.Fatalf("it ended with %v", err)
	}
	first.MustStop()
	first.Start()
	await(t, first, "bob", buys(t, first, 1, "bob"), "pending")

	first.MustStop()
	redis.Must("DEL", "shop:{b0}:store")
	second.Start()
	openSale(t, second, engine.Product{ID: 2, Stock: 3})
	await(t, second, "bob", buys(t, second, 2, "bob"), "pending")
	if err := first.TryStart(); err == nil || !strings.Contains(err.Error(), "belongs to another store") {
		t.Errorf("the first came back with %v", err)
	}
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
