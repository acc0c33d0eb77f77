package instance

import (
	"fmt"
	"strings"
	"testing"

	"seckill/test/engine"
	"seckill/test/server"
)

// Redis comes back with an old file, all who knew better are dead, and the store
// has orders of the lost stretch by immediate attempts only, which no witness
// tells of: a shop that has heard of nothing sells again to buyers who have
// orders. What cannot be kept of that is failed, listed by order number, and
// alerted, whether an immediate attempt or a worker comes to it.
func TestWhatASetBackLedgerSoldAgainIsListedByOrderNumber(t *testing.T) {
	t.Parallel()
	const crowd = 5
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	first := engine.Start(t, engine.Options{Settings: settings, Roles: shopOnly})
	openSale(t, first, engine.Product{ID: 1, Stock: 1000, PerUserLimit: 1, LimitGroup: 1, Strategy: "dualwrite"})
	openSale(t, first, engine.Product{ID: 2, Stock: 1000, PerUserLimit: 1, LimitGroup: 1})
	before := redis.Snapshot()
	var buyers []string
	for i := 0; len(buyers) < crowd; i++ { // a busy machine leaves attempts to the worker
		buyer := fmt.Sprint("ann-", i)
		no := buys(t, first, 1, buyer)
		until(t, "the attempt of "+no+" is over", func() bool { return attempts(t, first) > i })
		if order, err := first.Buyer(buyer).Order(t.Context(), no); err == nil && order.Status == "pending" {
			buyers = append(buyers, buyer)
		}
	}
	first.Kill()
	redis.Kill()
	redis.Restore(before)
	redis.Start()

	shop := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop}})
	again := make(map[string]string)
	for i, buyer := range buyers {
		again[buyer] = buys(t, shop, uint32(1+i%2), buyer)
	}
	worker := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleWorker}})
	for buyer, no := range again {
		await(t, shop, buyer, no, "failed")
		until(t, no+" is listed", func() bool { return strings.Contains(shop.Log()+worker.Log(), no+" limit") })
	}
	for product := 1; product <= 2; product++ {
		until(t, "somebody is called", func() bool {
			return strings.Contains(shop.Log()+worker.Log(), fmt.Sprintf("alert: promised orders could not be kept\" product=%d", product))
		})
	}
}

// attempts counts the batches of dualwrite products that were tried or left.
func attempts(t *testing.T, e *engine.Engine) (n int) {
	t.Helper()
	for _, result := range []string{"confirmed", "failed", "late", "full"} {
		n += int(metric(t, e, fmt.Sprintf("seckill_dualwrite_batches_total{result=%q}", result)))
	}
	return n
}
