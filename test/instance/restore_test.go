package instance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// The store is restored from a backup, under Redis as it was.
func TestAStoreRestoredFromABackupIsNoticedAndTheLedgerFollowsIt(t *testing.T) {
	t.Parallel()
	restored(t, func(*server.RedisServer) {})
}

// The same with a backup from before Redis lost everything: its streams have
// begun anew, below what the backup has confirmed.
func TestAStoreRestoredFromBeforeALossOfRedisIsNoticedAndTheLedgerFollowsIt(t *testing.T) {
	t.Parallel()
	restored(t, (*server.RedisServer).FlushAll)
}

// restored restores a backup of MariaDB after which something happened to Redis.
func restored(t *testing.T, after func(*server.RedisServer)) {
	t.Helper()
	maria := server.MariaDB(t, server.MariaOptions{})
	dsn := maria.NewDatabase(t)
	data, backup := filepath.Join(maria.Dir(), "data"), filepath.Join(t.TempDir(), "data")
	storeFallsBack(t, dsn, func(redis *server.RedisServer) {
		maria.Stop()
		must(t, "back up", os.CopyFS(backup, os.DirFS(data)))
		maria.Start()
		after(redis)
	}, func() string {
		maria.Stop()
		must(t, "clear", os.RemoveAll(data))
		must(t, "restore", os.CopyFS(data, os.DirFS(backup)))
		maria.Start()
		return dsn
	})
}

// The store fails over to a replica that lagged, under Redis as it was.
func TestAStoreThatFailedOverToALaggingReplicaIsNoticedAndTheLedgerFollowsIt(t *testing.T) {
	t.Parallel()
	primary, replica := server.MariaPair(t)
	dsn := primary.NewDatabase(t)
	storeFallsBack(t, dsn, func(*server.RedisServer) {
		replica.CatchUp(primary)
		replica.Lag()
	}, func() string {
		primary.Kill()
		replica.Promote()
		return strings.Replace(dsn, primary.Addr(), replica.Addr(), 1)
	})
}

// storeFallsBack loses orders that Redis has handed on: what the store got
// after mark is gone after fall, which says where the store is then. A worker
// notices at its start, and the ledger is built from what the store has;
// nobody's limit is used up by a lost order.
func storeFallsBack(t *testing.T, dsn string, mark func(*server.RedisServer), fall func() string) {
	t.Helper()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(dsn)))
	openSale(t, a, engine.Product{ID: 1, Stock: 100})
	sees(t, b, 1)
	kept := buys(t, a, 1, "kept")
	await(t, a, "kept", kept, "pending")
	mark(redis)
	lost := buys(t, b, 1, "lost")
	await(t, b, "lost", lost, "pending")

	a.MustStop()
	b.MustStop()
	dsn = fall()
	for _, e := range []*engine.Engine{a, b} {
		e.Set("store.dsn", dsn)
		e.Start()
	}
	until(t, "it is noticed", func() bool { return strings.Contains(a.Log()+b.Log(), "the store is older than its journal") })
	until(t, "the buyer of a lost order can buy", func() bool {
		_, code := buy(t.Context(), a, 1, "lost")
		return code == ""
	})
	if _, code := decided(t, b, 1, "kept"); code != seckill.CodeAlreadyPurchased {
		t.Errorf("who has an order was answered %q", code)
	}
	until(t, "the books are balanced", func() bool {
		report, err := a.Operator().Reconcile(t.Context(), 1, false)
		return err == nil && report.Balanced != nil && *report.Balanced
	})
}
