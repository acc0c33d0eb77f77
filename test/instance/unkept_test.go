package instance

import (
	"fmt"
	"strings"
	"testing"

	"seckill/test/engine"
	"seckill/test/server"
)

// Redis comes back with an old file, and all who knew better are dead: a shop
// that has heard of nothing sells again to buyers who have orders. What a worker
// cannot keep of that is failed, listed by order number, and alerted.
func TestWhatASetBackLedgerSoldAgainIsListedByOrderNumber(t *testing.T) {
	t.Parallel()
	const crowd = 5
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	first := engine.Start(t, engine.Options{Settings: settings})
	openSale(t, first, engine.Product{ID: 1, Stock: 100, PerUserLimit: 1})
	await(t, first, "early", buys(t, first, 1, "early"), "pending") // so that the ledger has begun
	before := redis.Snapshot()
	for i := range crowd {
		buyer := fmt.Sprint("ann-", i)
		await(t, first, buyer, buys(t, first, 1, buyer), "pending")
	}
	first.Kill()
	redis.Kill()
	redis.Restore(before)
	redis.Start()

	shop := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop}})
	again := make(map[string]string)
	for i := range crowd {
		buyer := fmt.Sprint("ann-", i)
		again[buyer] = buys(t, shop, 1, buyer)
	}
	first.Start()
	for buyer, no := range again {
		await(t, shop, buyer, no, "failed")
		until(t, no+" is listed", func() bool { return strings.Contains(first.Log()+shop.Log(), no+" limit") })
	}
	until(t, "somebody is called", func() bool {
		return strings.Contains(first.Log()+shop.Log(), "alert: promised orders could not be kept")
	})
}
