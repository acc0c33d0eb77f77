package instance

import (
	"strings"
	"testing"

	"seckill/test/engine"
	"seckill/test/server"
)

// An instance dies between two writes of something that is more than one, and
// the next one finishes it, once.
func TestWhatDiesOnItsWayIsFinishedByAnother(t *testing.T) {
	t.Parallel()
	type shop struct {
		redis *server.RedisServer
		a     *engine.Engine
	}
	forget := func(_ *testing.T, s shop) { s.redis.FlushAll() }
	change := func(t *testing.T, s shop) {
		_, _ = s.a.Operator().ChangeStock(t.Context(), 1, 2, "change-1") // it dies in the middle of it
	}
	for _, c := range []struct {
		point string
		cause func(t *testing.T, s shop)
		// What is there in the end, beside one unit of ann's.
		reserved, available int64
	}{
		{point: "rebuild.after_epoch", cause: forget, reserved: 1, available: 3},
		{point: "rebuild.after_install", cause: forget, reserved: 1, available: 3},
		{point: "stock.after_begin", cause: change, reserved: 1, available: 5},
		{point: "stock.after_ledger", cause: change, reserved: 1, available: 5},
	} {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			redis := server.Redis(t, server.RedisOptions{})
			settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
			a := engine.Start(t, engine.Options{Settings: settings})
			openSale(t, a, engine.Product{ID: 1, Stock: 4, PerUserLimit: 1})
			await(t, a, "ann", buys(t, a, 1, "ann"), "pending")
			a.MustStop()
			a.StartArmed(c.point)
			must(t, "start", a.WaitReady())
			c.cause(t, shop{redis, a})
			until(t, "the instance dies", func() bool { return !a.Running() })
			a.Kill()
			if !strings.Contains(a.Log(), "fault: killed at "+c.point+"\n") {
				t.Fatalf("it died, but not at %s", c.point)
			}

			b := engine.Start(t, engine.Options{Settings: settings})
			until(t, "the other has finished it", func() bool {
				figures, err := b.Operator().Stats(t.Context(), 1)
				return err == nil && figures.Ledger.Reserved == c.reserved && figures.Ledger.Available == c.available
			})
			until(t, "the books are balanced", func() bool {
				report, err := b.Operator().Reconcile(t.Context(), 1, false)
				return err == nil && report.Balanced != nil && *report.Balanced
			})
		})
	}
}
