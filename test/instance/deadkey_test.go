package instance

import (
	"testing"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
	"seckill/test/server"
)

// A shopper buys under a key, or with a purchase token, and cancels. Then the
// ledger is rebuilt, after a loss and because the operator asks for it. The key
// finds the cancelled order at both instances, as it did before; nothing is
// sold or held for it.
func TestTheKeyOfACancelledOrderFindsItAfterARebuild(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{})
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t))))
	sales := []engine.Product{
		{ID: 1, Stock: 8},
		{ID: 2, Stock: 8, Strategy: "sharded", Shards: 4},
		{ID: 3, Stock: 8, Strategy: "dualwrite"},
		{ID: 4, Stock: 8, Fallback: string(seckill.FallbackStore)},
	}
	type bought struct {
		product  uint32
		purchase engine.Purchase
		no       string
	}
	var orders []bought
	buyer := func(e *engine.Engine) *engine.Buyer { return e.Buyer("ann") }
	for _, sold := range sales {
		sold.PerUserLimit = 2
		openSale(t, a, sold)
		sees(t, b, sold.ID)
		challenge, err := buyer(a).Challenge(t.Context(), sold.ID, "")
		must(t, "ask for a challenge", err)
		token, err := buyer(b).Token(t.Context(), sold.ID, challenge.ID, "")
		must(t, "redeem it", err)
		for _, purchase := range []engine.Purchase{{Quantity: 1, Key: "k"}, {Quantity: 1, Token: token}} {
			no, err := buyer(a).Buy(t.Context(), sold.ID, purchase)
			must(t, "buy", err)
			orders = append(orders, bought{sold.ID, purchase, no})
		}
	}
	for _, o := range orders {
		await(t, a, "ann", o.no, "pending")
		_, err := buyer(b).Cancel(t.Context(), o.no)
		must(t, "cancel", err)
	}

	// finds waits until the ledger has all units back, asks for all again, and
	// counts.
	finds := func(when string, epoch uint64) {
		t.Helper()
		for _, sold := range sales {
			until(t, when+", the ledger is open and has its units", func() bool {
				figures, err := a.Operator().Stats(t.Context(), sold.ID)
				return err == nil && figures.Epoch >= epoch && figures.Ledger.Reserved == 0 &&
					figures.Ledger.Available == sold.Stock
			})
		}
		for _, o := range orders {
			for _, e := range []*engine.Engine{a, b} {
				until(t, when+", the key is answered", func() bool {
					no, err := buyer(e).Buy(t.Context(), o.product, o.purchase)
					if code := engine.CodeOf(err); code == seckill.CodeBusy || code == seckill.CodeTooHot {
						return false
					}
					if err != nil || no != o.no {
						t.Fatalf("%s, the key of %s of product %d finds %q, %v", when, o.no, o.product, no, err)
					}
					return true
				})
			}
		}
		for _, sold := range sales {
			report, err := a.Operator().Reconcile(t.Context(), sold.ID, false)
			if err != nil || report.Balanced == nil || !*report.Balanced {
				t.Errorf("%s, product %d: %+v, %v", when, sold.ID, report, err)
			}
			figures, err := a.Operator().Stats(t.Context(), sold.ID)
			must(t, "read figures", err)
			if figures.Store.Cancelled != 2 || figures.Store.Failed != 0 || figures.Ledger.Reserved != 0 || figures.Queue.Depth != 0 {
				t.Errorf("%s, product %d: %+v", when, sold.ID, figures)
			}
		}
		mine, err := buyer(b).Orders(t.Context())
		if must(t, "list orders", err); len(mine) != len(orders) {
			t.Errorf("%s, there are %d orders, want %d: %+v", when, len(mine), len(orders), numbersOf(mine))
		}
	}
	finds("before any loss", 1)
	redis.FlushAll()
	finds("after a loss", 2)
	for _, sold := range sales {
		_, err := b.Operator().Recover(t.Context(), sold.ID)
		must(t, "recover", err)
	}
	finds("after a rebuild on request", 3)
}

func numbersOf(orders []api.Order) (numbers []string) {
	for _, o := range orders {
		numbers = append(numbers, o.OrderNo+" "+o.Status)
	}
	return numbers
}
