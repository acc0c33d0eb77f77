package instance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
	"seckill/test/engine"
	"seckill/test/server"
)

func TestInstancesOfDifferentRolesSellAndConfirm(t *testing.T) {
	t.Parallel()
	settings := shared(t)
	start := func(roles ...string) *engine.Engine {
		return engine.Start(t, engine.Options{Settings: settings, Roles: roles})
	}
	admin, shops, workers := start(engine.RoleAdmin), []*engine.Engine{start(engine.RoleShop), start(engine.RoleShop)}, []*engine.Engine{start(engine.RoleWorker), start(engine.RoleWorker)}
	openSale(t, admin, engine.Product{ID: 1, Stock: 20})
	orders := make(map[string]string)
	for i, shop := range shops {
		sees(t, shop, 1)
		for n := range 10 {
			buyer := strings.Repeat("x", i+1) + string(rune('a'+n))
			orders[buyer] = buys(t, shop, 1, buyer)
		}
	}
	for buyer, no := range orders {
		await(t, shops[0], buyer, no, "pending")
	}
	_, err := shops[1].Buyer("xa").Cancel(t.Context(), orders["xa"])
	must(t, "cancel", err)
	until(t, "the unit is sold again", func() bool { _, code := buy(t.Context(), shops[0], 1, "heir"); return code == "" })
	report, err := admin.Operator().Reconcile(t.Context(), 1, false)
	if err != nil || report.Balanced == nil || !*report.Balanced {
		t.Errorf("reconciled: %+v, %v", report, err)
	}
	// Everyone can be watched; only the operator's instance takes orders.
	for _, e := range append(shops, workers...) {
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/admin/v1/products": http.StatusUnauthorized} {
			if _, status := get(t, e.AdminURL+path); status != want {
				t.Errorf("%s answers %d, want %d", path, status, want)
			}
		}
		if _, err := e.Operator().Preheat(t.Context(), 1); engine.CodeOf(err) != seckill.CodeNotFound || !strings.Contains(err.Error(), "role admin") {
			t.Errorf("an instance without the role answered an operator %v", err)
		}
		if body, _ := get(t, e.AdminURL+"/readyz"); !strings.Contains(body, `"roles":["`) || !strings.Contains(body, `"name":"store","ok":true`) || !strings.Contains(body, `"name":"ledger","ok":true`) {
			t.Errorf("/readyz does not tell roles and parts: %s", body)
		}
		if strings.Contains(e.Log(), "serve one process") {
			t.Error("an instance warns of roles that others have")
		}
	}
}

func TestADutyRunsAtOneInstanceAndMovesWhenItIsKilled(t *testing.T) {
	t.Parallel()
	a, b := pair(t, shared(t))
	for _, duty := range []string{"keep", "release", "refund", "expire", "climb", "stock"} {
		rounds := func(e *engine.Engine) float64 { return metric(t, e, `seckill_duty_seconds_count{duty="`+duty+`"}`) }
		until(t, duty+" has run", func() bool { return rounds(a)+rounds(b) >= 2 })
		if atA, atB := rounds(a), rounds(b); atA > 0 && atB > 0 {
			t.Errorf("%s ran %v times at one instance and %v times at the other", duty, atA, atB)
		}
	}
	// The first one started, and has all of them.
	if metric(t, b, `seckill_duty_seconds_count{duty="heartbeat"}`) == 0 {
		t.Error("the other has no heartbeat of its own")
	}
	a.Kill()
	if took := until(t, "the other takes over", func() bool { return metric(t, b, `seckill_duty_seconds_count{duty="expire"}`) > 0 }); took > 10*time.Second {
		t.Errorf("a duty rested for %s", took)
	}
}

// Mixed parts serve one instance, and say so.
func TestMixedPartsServeOneInstance(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]string{
		"Redis beside SQLite":          engine.OnRedis(server.SharedRedis(t).Addr()),
		"embedded ledger beside MySQL": engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := engine.Start(t, engine.Options{Settings: settings})
			if !strings.Contains(e.Log(), "serves one instance") {
				t.Error("nothing is said of it")
			}
			openSale(t, e, engine.Product{ID: 1, Stock: 3})
			no := buys(t, e, 1, "bob")
			await(t, e, "bob", no, "pending")
			e.MustStop()
			e.Start()
			if _, code := buy(t.Context(), e, 1, "bob"); code != seckill.CodeAlreadyPurchased {
				t.Errorf("after a restart bob was answered %q", code)
			}
		})
	}
}

// Redis comes back with a file of before the last unit was sold, and no worker
// is there to notice. Shops ask what the store has confirmed, one before its
// first purchase and one that runs within a second, and do not sell it again.
func TestShopsWithoutAWorkerDoNotSellFromAnOldLedger(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	start := func(roles ...string) *engine.Engine {
		return engine.Start(t, engine.Options{Settings: settings, Roles: roles})
	}
	worker, shop := start(engine.RoleWorker, engine.RoleAdmin, engine.RoleShop), start(engine.RoleShop)
	openSale(t, worker, engine.Product{ID: 1, Stock: 3, PerUserLimit: 1})
	sees(t, shop, 1)
	await(t, worker, "early", buys(t, worker, 1, "early"), "pending")
	for i, fall := range []func(){
		func() { shop.MustStop(); redis.Kill() },
		redis.Kill,
	} {
		last := fmt.Sprintf("last-%d", i)
		before := redis.Snapshot()
		await(t, worker, last, buys(t, worker, 1, last), "pending")
		if i == 1 {
			until(t, "all is sold", func() bool { _, code := buy(t.Context(), shop, 1, "none"); return code == seckill.CodeSoldOut })
		}
		worker.Kill()
		noticed := strings.Count(shop.Log(), queue.ErrLost.Error())
		fall()
		redis.Restore(before)
		redis.Start()
		if !shop.Running() {
			shop.Start()
		}
		until(t, "the shop notices", func() bool { return strings.Count(shop.Log(), queue.ErrLost.Error()) > noticed })
		until(t, "and sells no more", func() bool { _, code := buy(t.Context(), shop, 1, "probe"); return code == seckill.CodeBusy })
		for _, buyer := range []string{last, "new"} {
			if _, code := buy(t.Context(), shop, 1, buyer); code != seckill.CodeBusy {
				t.Errorf("fall %d: %s was answered %q", i, buyer, code)
			}
		}
		worker.Start()
		if _, code := decided(t, shop, 1, last); code != seckill.CodeAlreadyPurchased {
			t.Errorf("fall %d: who has the last unit was answered %q", i, code)
		}
	}
	if _, code := decided(t, shop, 1, "new"); code != seckill.CodeSoldOut {
		t.Errorf("of what is sold a new buyer was told %q", code)
	}
	if strings.Contains(worker.Log(), "the store is older") {
		t.Error("the store passes for an older one")
	}
}
