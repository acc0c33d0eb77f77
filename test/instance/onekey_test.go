package instance

import (
	"strings"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// Redis promises a key, and stands still before a worker has it. The instance
// that answered remembers: it sells no second order for the key. Another one
// cannot know, and sells it from the share. When Redis is back one of the two
// numbers is the order, the other one says that it is a duplicate, and every
// instance finds the order.
func TestAKeyPromisedBeforeAnOutageIsOneOrderAfterIt(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	a := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop, engine.RoleAdmin}})
	b := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop}})
	openSale(t, a, engine.Product{ID: 1, Stock: 10, PerUserLimit: 3, FallbackShare: 0.5})
	sees(t, b, 1)
	asks := func(e *engine.Engine, key string) string {
		t.Helper()
		no, err := settled(t, e, "buyer", engine.Purchase{Quantity: 1, Key: key})
		must(t, "buy under "+key, err)
		return no
	}
	wants := func(e *engine.Engine, no, when string) {
		t.Helper()
		if got := asks(e, "k"); got != no {
			t.Errorf("%s the key finds %s, want %s", when, got, no)
		}
	}
	promised := asks(a, "k")
	wants(b, promised, "before the outage")
	unheard := asks(a, "l") // of which only the first instance has heard

	redis.Pause()
	until(t, "the first instance sells from the share", func() bool {
		no, err := a.Buyer("other").Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Key: "k"})
		return err == nil && no != ""
	})
	wants(a, promised, "at the instance that promised it")
	wants(b, promised, "at the instance that found it by its key")
	if got := asks(a, "l"); got != unheard {
		t.Errorf("a key that was promised is sold again, as %s after %s", got, unheard)
	}
	sold := asks(b, "l")
	if sold == unheard {
		t.Fatal("an instance that could not know of the promise has found it")
	}
	if got := asks(a, "l"); got != sold {
		t.Errorf("after the share sold %s elsewhere, the first instance answers %s", sold, got)
	}

	redis.Resume()
	for _, e := range []*engine.Engine{a, b} {
		if got := asks(e, "l"); got != sold {
			t.Errorf("with Redis back the key finds %s, want %s", got, sold)
		}
	}
	worker := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleWorker}})
	await(t, a, "buyer", unheard, "failed")
	until(t, "the duplicate is listed", func() bool { return strings.Contains(worker.Log(), unheard+" "+seckill.ReasonDuplicate) })
	if strings.Contains(worker.Log(), "promised orders could not be kept") {
		t.Error("somebody is called for a duplicate, whose buyer has the other order")
	}
	await(t, a, "buyer", promised, "pending")
	for no, want := range map[string]struct{ status, reason string }{
		promised: {"pending", ""}, unheard: {"failed", seckill.ReasonDuplicate}, sold: {"pending", ""},
	} {
		order, err := b.Buyer("buyer").Order(t.Context(), no)
		if err != nil || order.Status != want.status || order.Reason != want.reason {
			t.Errorf("order %s is %s %q, %v; want %s %q", no, order.Status, order.Reason, err, want.status, want.reason)
		}
	}
	for _, e := range []*engine.Engine{a, b} {
		wants(e, promised, "at rest")
		if got := asks(e, "l"); got != sold {
			t.Errorf("at rest the key finds %s, want %s", got, sold)
		}
	}
	report, err := a.Operator().Reconcile(t.Context(), 1, false)
	if err != nil || report.Balanced == nil || !*report.Balanced {
		t.Errorf("reconciled: %+v, %v", report, err)
	}
}
