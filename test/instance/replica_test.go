package instance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// With redis.wait_replicas no answer leaves before a replica has what it says.
// Without one, a purchase may have been made and is not promised: the shopper
// reads busy, and the same request finds the order when a replica is back.
func TestA202LeavesWhenTheReplicasHaveItAndNotBefore(t *testing.T) {
	t.Parallel()
	set := server.Sentinel(t, server.SentinelOptions{AppendFsync: "always"})
	settings := engine.Join(engine.OnSentinel(set.MasterName(), set.Addrs()...), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)),
		map[string]string{"redis.wait_replicas": "1"})
	shop := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop, engine.RoleAdmin}})
	openSale(t, shop, engine.Product{ID: 1, Stock: 100})
	sees(t, shop, 1)
	master, replica := set.Master(), set.Replica()
	buys(t, shop, 1, "before")
	marks := markKey(t, master, settings["redis.prefix"])
	for n := range 10 {
		buyer := fmt.Sprintf("waits-%d", n)
		buys(t, shop, 1, buyer)
		if replica.Must("HEXISTS", marks, buyer) != "1" {
			t.Errorf("%s was promised an order that the replica does not have", buyer)
		}
	}

	set.Detach(master)
	refused := func(buyer string) {
		t.Helper()
		if no, err := asks(t, shop, buyer); engine.CodeOf(err) != seckill.CodeBusy {
			t.Errorf("without a replica %s was answered %q, %v", buyer, no, err)
		}
	}
	refused("bob")
	if master.Must("HEXISTS", marks, "bob") != "1" {
		t.Error("the purchase was not made: that nobody is promised it shows nothing")
	}
	for n := range 5 {
		refused("bob")
		refused(fmt.Sprintf("other-%d", n))
	}
	if replica.Must("HEXISTS", marks, "bob") != "0" {
		t.Error("the replica has what it was kept from")
	}
	made := held(t, shop, "bob")

	set.Attach(master)
	set.WaitSynced()
	for range 3 {
		if no := insists(t, shop, "bob"); !slices.Equal(made, []string{no}) {
			t.Errorf("without a replica bob had %v, and with one was promised %s", made, no)
		}
	}
	for n := range 5 {
		insists(t, shop, fmt.Sprintf("other-%d", n))
	}
	wantUnits(t, shop, 1, 17) // one before, ten who waited, bob, five others
}

// asks asks once for a unit of product 1, under the buyer's only key.
func asks(t *testing.T, e *engine.Engine, buyer string) (no string, err error) {
	t.Helper()
	return e.Buyer(buyer).Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Key: "once"})
}

// insists asks until that is promised, through busy answers.
func insists(t *testing.T, e *engine.Engine, buyer string) (no string) {
	t.Helper()
	until(t, buyer+" is promised an order", func() bool {
		var err error
		no, err = asks(t, e, buyer)
		if code := engine.CodeOf(err); err != nil && code != seckill.CodeBusy && code != seckill.CodeTooHot {
			t.Fatalf("%s asks again and is answered %v", buyer, err)
		}
		return err == nil
	})
	return no
}

// markKey is the key of the only product's marks.
func markKey(t *testing.T, redis *server.RedisServer, prefix string) string {
	t.Helper()
	keys := strings.Fields(redis.Must("KEYS", prefix+"*}:mark:*"))
	if len(keys) != 1 {
		t.Fatalf("the marks are in %q", keys)
	}
	return keys[0]
}

// held are the numbers of a buyer's orders.
func held(t *testing.T, e *engine.Engine, buyer string) (nos []string) {
	t.Helper()
	until(t, "the orders of "+buyer+" are read", func() bool {
		list, err := e.Buyer(buyer).Orders(t.Context())
		if err != nil && engine.CodeOf(err) != seckill.CodeBusy {
			t.Fatalf("list the orders of %s: %v", buyer, err)
		}
		nos = nil
		for i := range list {
			nos = append(nos, list[i].OrderNo)
		}
		return err == nil
	})
	return nos
}

// wantUnits wants so many units of a product's ledger to be taken, no more and
// no fewer.
func wantUnits(t *testing.T, e *engine.Engine, product uint32, units int64) {
	t.Helper()
	until(t, "the figures are read", func() bool {
		f, err := e.Operator().Stats(t.Context(), product)
		if err == nil && (f.Ledger.Reserved != units || f.Ledger.Available != f.Offered-units) {
			t.Fatalf("want %d units taken: %+v", units, f)
		}
		return err == nil
	})
}

// A Redis that is full, has too few replicas or may not be written to refuses
// before it does anything: nothing is sold meanwhile, shoppers read busy,
// and the same requests are promised their orders afterwards.
func TestWhatRedisRefusesIsBusyAndNothingIsSold(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	e := engine.Start(t, engine.Options{Settings: settings})
	openSale(t, e, engine.Product{ID: 1, Stock: 100})
	await(t, e, "before", buys(t, e, 1, "before"), "pending")
	marks, sold := markKey(t, redis, settings["redis.prefix"]), 1
	for _, fault := range []struct {
		says         string
		refuse, heal []string
	}{
		{"OOM", []string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}},
		{"NOREPLICAS", []string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}},
		{"READONLY", []string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
	} {
		redis.Must(fault.refuse...)
		buyers := []string{"ann-" + fault.says, "bob-" + fault.says, "cat-" + fault.says}
		for range 3 {
			for _, buyer := range buyers {
				if no, err := asks(t, e, buyer); engine.CodeOf(err) != seckill.CodeBusy {
					t.Errorf("%s: %s was answered %q, %v", fault.says, buyer, no, err)
				}
			}
		}
		if !strings.Contains(redis.Must("INFO", "errorstats"), "errorstat_"+fault.says+":") {
			t.Errorf("Redis did not say %s", fault.says)
		}
		// Before it heals: the last call may be on its way still, and be taken then.
		if marked := redis.Must("HLEN", marks); marked != strconv.Itoa(sold) {
			t.Errorf("%s: %s buyers have bought, %d were promised an order", fault.says, marked, sold)
		}
		redis.Must(fault.heal...)
		for _, buyer := range buyers {
			await(t, e, buyer, insists(t, e, buyer), "pending")
			sold++
		}
		wantUnits(t, e, 1, int64(sold))
	}
	report, err := e.Operator().Reconcile(t.Context(), 1, false)
	if err != nil || report.Balanced == nil || !*report.Balanced {
		t.Errorf("reconciled: %+v, %v", report, err)
	}
}
