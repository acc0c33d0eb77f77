package instance

import (
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// Everything dies at once, with a promise that is nowhere but in Redis: the
// store is away, and who answered it dies too. Redis' settings decide alone.
// What it did not keep is lost for good, and says so: its number is not found,
// and its buyer can buy again. What the store has is as it was.
func TestWhenAllDieAtOnceOnlyRedisHasWhatWasQueued(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fsync string
		// falls has Redis come back as it was before the last orders, as after a
		// cut of power. A killed process alone loses nothing that it wrote.
		falls bool
		// seen has the store confirm an order that Redis loses: the witness.
		seen  bool
		keeps bool
	}{
		{name: "everysec, the processes", fsync: "everysec", seen: true, keeps: true},
		{name: "everysec, the machines, and the store saw some of it", fsync: "everysec", falls: true, seen: true},
		{name: "everysec, the machines, and the store saw nothing of it", fsync: "everysec", falls: true},
		{name: "without persistence", seen: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			maria, redis := server.MariaDB(t, server.MariaOptions{}), server.Redis(t, server.RedisOptions{AppendFsync: c.fsync})
			a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(maria.NewDatabase(t))))
			openSale(t, a, engine.Product{ID: 1, Stock: 10, PerUserLimit: 1})
			sees(t, b, 1)
			stored := map[string]string{"ann": buys(t, b, 1, "ann")} // so that b knows the epoch before the store is gone
			onDisk(t, a, b, "ann", stored["ann"])
			var before string
			if c.falls {
				before = redis.Snapshot()
			}
			if c.seen {
				stored["bob"] = buys(t, b, 1, "bob")
				onDisk(t, a, b, "bob", stored["bob"])
			}
			maria.Kill()
			queued := buys(t, b, 1, "cat")
			await(t, b, "cat", queued, "queued")

			a.Kill()
			b.Kill()
			redis.Kill()
			if c.falls {
				redis.Restore(before)
			}
			maria.Start()
			redis.Start()
			a.Start()
			b.Start()

			for buyer, no := range stored {
				await(t, a, buyer, no, "pending")
				if _, code := decided(t, b, 1, buyer); code != seckill.CodeAlreadyPurchased {
					t.Errorf("%s, who has an order, was answered %q", buyer, code)
				}
			}
			if c.keeps {
				await(t, a, "cat", queued, "pending")
			} else {
				notFound(t, a, "cat", queued)
				notFound(t, b, "cat", queued)
				await(t, b, "cat", buys(t, b, 1, "cat"), "pending")
			}
			until(t, "the books are balanced", func() bool {
				report, err := a.Operator().Reconcile(t.Context(), 1, false)
				return err == nil && report.Balanced != nil && *report.Balanced
			})
		})
	}
}

// onDisk waits until an order is on the store's disk. Others see a commit of
// InnoDB before it is on disk, and a kill in between takes it back. The worker
// acknowledges the entry after that.
func onDisk(t *testing.T, operator, shop *engine.Engine, buyer, no string) {
	t.Helper()
	await(t, shop, buyer, no, "pending")
	until(t, "the worker has acknowledged "+no, func() bool {
		figures, err := operator.Operator().Stats(t.Context(), 1)
		return err == nil && figures.Queue.Depth == 0
	})
}

// notFound waits until an order is not found, through busy answers: nothing
// else may be said of it meanwhile.
func notFound(t *testing.T, e *engine.Engine, buyer, no string) {
	t.Helper()
	until(t, "order "+no+" is not found", func() bool {
		o, err := e.Buyer(buyer).Order(t.Context(), no)
		code := engine.CodeOf(err)
		if err == nil || code != seckill.CodeBusy && code != seckill.CodeNotFound {
			t.Fatalf("order %s is %+v, %v", no, o, err)
		}
		return code == seckill.CodeNotFound
	})
}
