package instance

import (
	"fmt"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// Without the push everything is met by looking.
func TestAChangeIsMetWithinASecondWithoutThePush(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	a, b := pair(t, settings)
	redis.Must("ACL", "SETUSER", "default", "-publish") // from now on; an instance that never had it would not start
	inTime(t, func(n int) []timed { return meets(t, a, b, n) })
	until(t, "drops are counted", func() bool { return metric(t, a, `seckill_bulletin_notices_total{result="dropped"}`) > 0 })
}

// Here nobody can tell that anything is lost: who publishes is told that it was
// published, and the connection on which the other listens is open and silent.
func TestAChangeIsMetWithinASecondThoughThePushIsLostInSilence(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{})
	network := server.Hush(t, redis.Addr())
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	a := engine.Start(t, engine.Options{Settings: settings})
	b := engine.Start(t, engine.Options{Settings: engine.Join(settings, map[string]string{"redis.addrs": network.Addr()})})
	openSale(t, a, engine.Product{ID: 1, Stock: 5})
	inTime(t, func(n int) []timed {
		network.Heal()
		hears(t, a, b)
		flagged := flag(t, a, b, uint32(100+n))
		network.Silence()
		heard := metric(t, b, heardNotices)
		all := append([]timed{flagged()}, meets(t, a, b, n)...)
		if metric(t, b, heardNotices) != heard {
			t.Error("the push was not lost")
		}
		return all
	})
	network.Heal()
	hears(t, a, b)
}

// hears waits until one instance hears what another tells.
func hears(t *testing.T, from, to *engine.Engine) {
	t.Helper()
	before := metric(t, to, heardNotices)
	until(t, "the other hears", func() bool {
		_, err := from.Operator().Patch(t.Context(), 1, map[string]any{"name": "another"})
		must(t, "change a product", err)
		return metric(t, to, heardNotices) > before
	})
}

// flag has an instance turn people away because all is sold, by its own flag
// and without asking the ledger, as only one does that hears the others. What it
// returns adds a unit, and measures until that instance sells it.
func flag(t *testing.T, a, b *engine.Engine, product uint32) func() timed {
	t.Helper()
	openSale(t, a, engine.Product{ID: product, Stock: 1})
	sees(t, b, product)
	buys(t, a, product, "first")
	const turnedAway = `seckill_gate_refused_total{gate="sold_out"}`
	before := metric(t, b, turnedAway)
	until(t, "the flag is up", func() bool {
		_, code := buy(t.Context(), b, product, "late")
		return code == seckill.CodeSoldOut && metric(t, b, turnedAway) > before
	})
	return func() timed {
		t.Helper()
		_, err := a.Operator().ChangeStock(t.Context(), product, 1, fmt.Sprintf("more-%d", product))
		must(t, "add stock", err)
		return timed{"a flag that was up", until(t, "the other sells", func() bool {
			_, code := buy(t.Context(), b, product, "second")
			return code == ""
		}), looked}
	}
}

// meets changes all that can be changed at one instance, and measures from the
// answer there until the other answers by it.
func meets(t *testing.T, a, b *engine.Engine, n int) []timed {
	t.Helper()
	product := uint32(10 + n)
	sells := func(buyer string) func() bool {
		return func() bool {
			_, code := buy(t.Context(), b, product, fmt.Sprintf("%s-%d", buyer, n))
			return code == ""
		}
	}
	soldOut := func() {
		t.Helper()
		until(t, "the other is sold out", func() bool { _, code := buy(t.Context(), b, product, "late"); return code == seckill.CodeSoldOut })
	}
	var all []timed
	measure := func(what string, holds func() bool) {
		t.Helper()
		all = append(all, timed{what, until(t, what, holds), looked})
	}

	openSale(t, a, engine.Product{ID: product, Stock: 1})
	all = append(all, timed{"a new product", sees(t, b, product), looked})

	holder := fmt.Sprintf("holder-%d", n)
	no := buys(t, a, product, holder)
	await(t, a, holder, no, "pending")
	soldOut()
	_, err := a.Operator().ChangeStock(t.Context(), product, 1, fmt.Sprintf("more-%d", n))
	must(t, "add stock", err)
	measure("stock that was added", sells("second"))

	soldOut()
	_, err = a.Buyer(holder).Cancel(t.Context(), no)
	must(t, "cancel", err)
	measure("a unit that came back", sells("third"))

	_, err = a.Operator().Pause(t.Context(), product)
	must(t, "pause", err)
	// No push and no second is needed for this: the ledger itself refuses.
	if _, code := decided(t, b, product, "fourth"); code != seckill.CodePaused && code != seckill.CodeSoldOut {
		t.Errorf("after the pause was answered, a purchase elsewhere was answered %q", code)
	}
	until(t, "the other knows of the pause", func() bool { _, code := buy(t.Context(), b, product, "fourth"); return code == seckill.CodePaused })
	_, err = a.Operator().ChangeStock(t.Context(), product, 1, fmt.Sprintf("last-%d", n))
	must(t, "add stock", err)
	_, err = a.Operator().Resume(t.Context(), product)
	must(t, "resume", err)
	measure("resuming", sells("fifth"))
	return all
}
