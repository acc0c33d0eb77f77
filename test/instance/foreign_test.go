package instance

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// rounds is how many rounds of its duties an instance makes next to another's
// ledger before that is looked at.
const rounds = 3

// Redis is emptied, and another shop comes first under the same prefix. What is
// there now is not ours: it is neither closed nor paused nor sold, its entries
// are not taken, and operators are told, until the two are parted.
func TestALedgerThatHasBecomeAnotherStoresIsLeftAlone(t *testing.T) {
	t.Parallel()
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	on := engine.Join(engine.OnRedis(redis.Addr()), map[string]string{"redis.prefix": "shop:"})
	ours := engine.Start(t, engine.Options{Settings: engine.Join(on, engine.OnStore(maria.NewDatabase(t)))})
	openSale(t, ours, engine.Product{ID: 1, Stock: 3})
	openSale(t, ours, engine.Product{ID: 2, Stock: 3, Strategy: string(seckill.StrategyDirect)})
	await(t, ours, "bob", buys(t, ours, 1, "bob"), "pending")

	ours.Signal(syscall.SIGSTOP) // it would come first
	redis.FlushAll()
	other := engine.Join(on, engine.OnStore(maria.NewDatabase(t)))
	theirs := engine.Start(t, engine.Options{Settings: other, Roles: []string{engine.RoleShop, engine.RoleAdmin}})
	openSale(t, theirs, engine.Product{ID: 1, Stock: 3}) // the same id, and the same epoch
	eves := buys(t, theirs, 1, "eve")
	shard := strings.Fields(redis.Must("KEYS", "shop:{b*}:shard:1:0"))[0]
	stream := shard[:strings.Index(shard, "}")+1] + ":out"
	before := redis.Must("HGETALL", shard)

	ours.Signal(syscall.SIGCONT)
	const alert = `seckill_alerts_total{kind="ledger_of_other_store"}`
	until(t, "operators are told", func() bool {
		return metric(t, ours, alert) >= rounds && metric(t, ours, `seckill_duty_failures_total{duty="keep"}`) >= rounds
	})
	if body, status := get(t, ours.AdminURL+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "belongs to another store") {
		t.Errorf("readyz: %d %s", status, body)
	}
	until(t, "the worker rests", func() bool { return strings.Contains(ours.Log(), "the worker rests") })
	for i := range rounds {
		if no, code := buy(t.Context(), ours, 1, fmt.Sprintf("carl-%d", i)); code != seckill.CodeBusy {
			t.Errorf("a purchase was answered %q %q", no, code)
		}
	}
	for name, move := range map[string]func() error{
		"recover": func() error { _, err := ours.Operator().Recover(t.Context(), 1); return err },
		"pause":   func() error { _, err := ours.Operator().Pause(t.Context(), 1); return err },
	} {
		if err := move(); engine.CodeOf(err) != seckill.CodeBusy {
			t.Errorf("%s: %v", name, err)
		}
	}
	buys(t, ours, 2, "dora") // straight from our store
	if after := redis.Must("HGETALL", shard); after != before {
		t.Errorf("their shard was\n%s, and is\n%s", before, after)
	}
	if groups := redis.Must("XINFO", "GROUPS", stream); groups != "" {
		t.Errorf("somebody reads their stream: %s", groups)
	}

	worker := engine.Start(t, engine.Options{Settings: other, Roles: []string{engine.RoleWorker}})
	await(t, theirs, "eve", eves, "pending")
	// By a status, as the ledger cannot be asked for what waits.
	if orders, err := ours.Operator().Orders(t.Context(), url.Values{"buyer": {"eve"}, "status": {"pending"}}); err != nil || len(orders) != 0 {
		t.Errorf("their order is ours, too: %+v %v", orders, err)
	}

	worker.MustStop()
	theirs.MustStop()
	redis.FlushAll()
	until(t, "the sale goes on", func() bool {
		_, err := ours.Operator().Resume(t.Context(), 1)
		return err == nil
	})
	await(t, ours, "carl", buys(t, ours, 1, "carl"), "pending")
	until(t, "it is ready again", func() bool {
		_, status := get(t, ours.AdminURL+"/readyz")
		return status == http.StatusOK
	})
}

// An operator gives the ledger back by the alert's own words, without stopping
// the instance that is shut out: it takes the ledger, with all that the other has
// left there, and sells on.
func TestALedgerThatIsSetFreeUnderAnInstanceIsTakenByIt(t *testing.T) {
	t.Parallel()
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	on := engine.Join(engine.OnRedis(redis.Addr()), map[string]string{"redis.prefix": "shop:"})
	ours := engine.Start(t, engine.Options{Settings: engine.Join(on, engine.OnStore(maria.NewDatabase(t)))})
	openSale(t, ours, engine.Product{ID: 1, Stock: 3})
	await(t, ours, "bob", buys(t, ours, 1, "bob"), "pending")

	ours.Signal(syscall.SIGSTOP)
	redis.FlushAll()
	theirs := engine.Start(t, engine.Options{Settings: engine.Join(on, engine.OnStore(maria.NewDatabase(t)))})
	openSale(t, theirs, engine.Product{ID: 1, Stock: 3})
	await(t, theirs, "eve", buys(t, theirs, 1, "eve"), "pending")
	theirs.MustStop()
	ours.Signal(syscall.SIGCONT)
	until(t, "it is shut out", func() bool { return strings.Contains(ours.Log(), "the worker rests") })

	redis.Must("DEL", "shop:{b0}:store")
	until(t, "the product is recovered", func() bool {
		_, err := ours.Operator().Recover(t.Context(), 1)
		return err == nil
	})
	await(t, ours, "carl", buys(t, ours, 1, "carl"), "pending")
	until(t, "it is ready again", func() bool {
		_, status := get(t, ours.AdminURL+"/readyz")
		return status == http.StatusOK
	})
	if err := theirs.TryStart(); err == nil || !strings.Contains(err.Error(), "belongs to another store") {
		t.Errorf("the other came back with %v", err)
	}
}
