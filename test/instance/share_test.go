package instance

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// Whoever bought while Redis was away, from the share, is told of that order
// when Redis is back, by every instance, and by what the request says of itself:
// its key, or else its buyer.
func TestAnOrderOfTheShareIsFoundAgainWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t))))
	openSale(t, a, engine.Product{ID: 1, Stock: 6, PerUserLimit: 1, FallbackShare: 0.5})
	sees(t, b, 1)
	orders := map[string]string{} // by buyer; the key is the buyer's own
	purchaseAt := func(e *engine.Engine, buyer string) {
		t.Helper()
		until(t, buyer+" has bought", func() bool {
			no, err := e.Buyer(buyer).Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Key: "key-" + buyer})
			if err != nil && engine.CodeOf(err) != seckill.CodeBusy {
				t.Fatalf("%s: %v", buyer, err)
			}
			orders[buyer] = no
			return err == nil
		})
	}
	for _, buyer := range []string{"k1", "k2"} {
		purchaseAt(a, buyer)
		await(t, a, buyer, orders[buyer], "pending")
	}
	redis.Kill()
	for _, buyer := range []string{"k3", "k4", "k5"} {
		purchaseAt(a, buyer)
		await(t, a, buyer, orders[buyer], "pending")
	}
	redis.Start()
	for buyer, no := range orders {
		for i, e := range []*engine.Engine{b, a} {
			who := fmt.Sprintf("%s at instance %d", buyer, i)
			again := engine.Purchase{Quantity: 1, Key: "key-" + buyer}
			if got, err := settled(t, e, buyer, again); err != nil || got != no {
				t.Errorf("%s repeats the key: %s, %v; want %s", who, got, err, no)
			}
			_, err := settled(t, e, buyer, engine.Purchase{Quantity: 1})
			var refusal *engine.Refusal
			if !errors.As(err, &refusal) || refusal.Code != seckill.CodeAlreadyPurchased || !slices.Equal(refusal.OrderNos, []string{no}) {
				t.Errorf("%s asks without a key: %v, want already_purchased with %s", who, err, no)
			}
		}
	}
	for buyer, no := range orders { // no doomed claim was made, which would hold the last unit
		list, err := a.Buyer(buyer).Orders(t.Context())
		if err != nil || len(list) != 1 || list[0].OrderNo != no {
			t.Errorf("the orders of %s are %+v, %v; want %s", buyer, list, err, no)
		}
	}
	// A claim that reached Redis as it died was sold from the share under its
	// number: the ledger may hold a unit for it until that is released.
	until(t, "the last unit is sold", func() bool {
		no, err := b.Buyer("k6").Buy(t.Context(), 1, engine.Purchase{Quantity: 1})
		if err == nil {
			await(t, b, "k6", no, "pending")
		}
		return err == nil
	})
	for _, e := range []*engine.Engine{a, b} { // the sold-out flag is up, and lets buyers pass
		until(t, "all is sold", func() bool { _, code := buy(t.Context(), e, 1, "late"); return code == seckill.CodeSoldOut })
		if got, err := settled(t, e, "k3", engine.Purchase{Quantity: 1, Key: "key-k3"}); err != nil || got != orders["k3"] {
			t.Errorf("k3 after the last unit: %s, %v", got, err)
		}
	}
	report, err := a.Operator().Reconcile(t.Context(), 1, false)
	if err != nil || report.Balanced == nil || !*report.Balanced {
		t.Errorf("reconciled: %+v, %v", report, err)
	}
}

// settled buys, through answers that decide nothing.
func settled(t *testing.T, e *engine.Engine, buyer string, p engine.Purchase) (no string, err error) {
	t.Helper()
	until(t, "the claim of "+buyer+" is decided", func() bool {
		no, err = e.Buyer(buyer).Buy(t.Context(), 1, p)
		return engine.CodeOf(err) != seckill.CodeBusy && engine.CodeOf(err) != seckill.CodeTooHot
	})
	return no, err
}
