package instance

import (
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
