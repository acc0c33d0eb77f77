package instance

import (
	"syscall"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// An instance starts while the ledger has lost its buyers, and another then
// rebuilds it from the store. The first has heard of none of them, and yet whoever
// repeats a claim finds the order there, though all is sold.
func TestAnInstanceKnowsTheBuyersWhomAnotherBroughtBack(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	a := engine.Start(t, engine.Options{Settings: settings})
	openSale(t, a, engine.Product{ID: 1, Stock: 1, PerUserLimit: 1})
	purchase := engine.Purchase{Quantity: 1, Key: "k"}
	no, err := a.Buyer("ann").Buy(t.Context(), 1, purchase)
	must(t, "buy", err)
	await(t, a, "ann", no, "pending")

	a.Signal(syscall.SIGSTOP) // it would rebuild the ledger before the other reads it
	redis.FlushAll()
	b := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop}})
	a.Signal(syscall.SIGCONT)
	until(t, "the ledger is rebuilt", func() bool {
		figures, err := a.Operator().Stats(t.Context(), 1)
		return err == nil && figures.Epoch == 2 && figures.Ledger.Reserved == 1
	})
	const enough = 50 // answers that all is sold: by then its flag is up
	for refused := 0; refused < enough; {
		switch _, code := buy(t.Context(), b, 1, "bob"); code {
		case seckill.CodeSoldOut:
			refused++
		case seckill.CodeBusy, seckill.CodeTooHot:
		default:
			t.Fatalf("bob is answered %q", code)
		}
	}
	until(t, "the key is answered", func() bool {
		found, err := b.Buyer("ann").Buy(t.Context(), 1, purchase)
		if code := engine.CodeOf(err); code == seckill.CodeBusy || code == seckill.CodeTooHot {
			return false
		}
		if err != nil || found != no {
			t.Fatalf("the key finds %q, %v; want %s", found, err, no)
		}
		return true
	})
}
