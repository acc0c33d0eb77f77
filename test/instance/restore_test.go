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

// The store is restored from a backup, under Redis as it was: orders are gone
// that Redis has handed on. A worker notices at its start, and the ledger is
// built from what the store has; nobody's limit is used up by a lost order.
func TestAStoreRestoredFromABackupIsNoticedAndTheLedgerFollowsIt(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	maria := server.MariaDB(t, server.MariaOptions{})
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(maria.NewDatabase(t))))
	openSale(t, a, engine.Product{ID: 1, Stock: 100})
	sees(t, b, 1)
	kept := buys(t, a, 1, "kept")
	await(t, a, "kept", kept, "pending")
	data, backup := filepath.Join(maria.Dir(), "data"), filepath.Join(t.TempDir(), "data")
	maria.Stop()
	must(t, "back up", os.CopyFS(backup, os.DirFS(data)))
	maria.Start()
	lost := buys(t, b, 1, "lost")
	await(t, b, "lost", lost, "pending")

	a.MustStop()
	b.MustStop()
	maria.Stop()
	must(t, "clear", os.RemoveAll(data))
	must(t, "restore", os.CopyFS(data, os.DirFS(backup)))
	maria.Start()
	a.Start()
	b.Start()
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
