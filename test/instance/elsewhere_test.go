package instance

import (
	"fmt"
	"net/url"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// An instance is started with the address of another Redis. It takes the ledger
// for lost and rebuilds it, and so does the first, and both again. Operators hear
// that this does not end, nothing is sold twice meanwhile, and all comes to rest
// when the second is stopped.
func TestTwoInstancesWithLedgersOfTheirOwnAreNoticed(t *testing.T) {
	t.Parallel()
	const stock, product = 40, 1
	right := shared(t)
	wrong := engine.Join(right, map[string]string{"redis.addrs": server.Redis(t, server.RedisOptions{}).Addr()})
	a := engine.Start(t, engine.Options{Settings: right})
	openSale(t, a, engine.Product{ID: product, Stock: stock, PerUserLimit: 1})
	await(t, a, "first", buys(t, a, product, "first"), "pending")

	b := engine.Start(t, engine.Options{Settings: wrong})
	const alert = `seckill_alerts_total{kind="ledger_rebuilt_again"}`
	told := func() bool { return metric(t, a, alert)+metric(t, b, alert) > 0 }
	round, seen := 0, uint64(1)
	for ; !told(); round++ { // as long as it takes, while there is always another rebuild
		until(t, "operators are told, or the ledger is rebuilt once more", func() bool {
			for i, e := range []*engine.Engine{a, b} { // who asks meets a ledger that is not there
				switch no, code := buy(t.Context(), e, product, fmt.Sprintf("buyer-%d-%d", round, i)); code {
				case "", seckill.CodeBusy, seckill.CodeAlreadyPurchased, seckill.CodeSoldOut, seckill.CodeTooHot:
				default:
					t.Fatalf("a purchase is answered %q %q", no, code)
				}
			}
			p, err := a.Operator().Product(t.Context(), product)
			must(t, "read the product", err)
			before := seen
			seen = p.Epoch
			return seen > before || told()
		})
	}
	t.Logf("told in round %d, at epoch %d", round, seen)

	b.MustStop()
	late := 0
	until(t, "all is sold", func() bool {
		late++
		_, code := buy(t.Context(), a, product, fmt.Sprintf("late-%d", late))
		return code == seckill.CodeSoldOut
	})
	until(t, "the product adds up", func() bool {
		report, err := a.Operator().Reconcile(t.Context(), product, false)
		return err == nil && report.Balanced != nil && *report.Balanced
	})
	orders, err := a.Operator().Orders(t.Context(), url.Values{"product_id": {fmt.Sprint(product)}, "status": {"pending"}})
	if err != nil || len(orders) > stock {
		t.Errorf("%d orders of %d units: %+v %v", len(orders), stock, orders, err)
	}
}
