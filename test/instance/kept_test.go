package instance

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

// shopOnly plays no worker: nobody reads the queue.
var shopOnly = []string{engine.RoleShop, engine.RoleAdmin}

// Redis forgets a promise that no worker has read. The instance that answered
// it remembers, and writes it to the store before the ledger is rebuilt.
func TestAPromiseThatRedisForgotUnreadIsWrittenBeforeTheRebuild(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{})
	e := engine.Start(t, engine.Options{
		Settings: engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t))), Roles: shopOnly,
	})
	openSale(t, e, engine.Product{ID: 1, Stock: 1, PerUserLimit: 1})
	no := buys(t, e, 1, "ann")
	await(t, e, "ann", no, "queued")
	redis.FlushAll()
	until(t, "the ledger is recovered", func() bool {
		_, err := e.Operator().Recover(t.Context(), 1)
		return err == nil
	})
	await(t, e, "ann", no, "pending")
	if _, code := decided(t, e, 1, "bob"); code != seckill.CodeSoldOut {
		t.Errorf("the one unit is ann's, and bob was answered %q", code)
	}
}

// What the other instances have promised is written before the rebuild, too: who
// rebuilds waits for it. Until then nobody hears that an order never was.
func TestWhatEveryInstancePromisedIsWrittenBeforeTheRebuild(t *testing.T) {
	t.Parallel()
	const each = 20
	redis := server.Redis(t, server.RedisOptions{})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	a, b := engine.Start(t, engine.Options{Settings: settings, Roles: shopOnly}), engine.Start(t, engine.Options{Settings: settings, Roles: shopOnly})
	openSale(t, a, engine.Product{ID: 1, Stock: 2 * each, PerUserLimit: 1})
	sees(t, b, 1)
	promised := make(map[string]string)
	for i := range each {
		for name, e := range map[string]*engine.Engine{"ann": a, "bob": b} {
			buyer := fmt.Sprint(name, "-", i)
			promised[buyer] = buys(t, e, 1, buyer)
		}
	}
	redis.FlushAll()
	recovered := make(chan error, 1)
	go func() {
		_, err := a.Operator().Recover(t.Context(), 1)
		recovered <- err
	}()
	for buyer, no := range promised {
		await(t, b, buyer, no, "pending")
	}
	must(t, "recover", <-recovered)
	for _, e := range []*engine.Engine{a, b} {
		if _, code := decided(t, e, 1, "eve"); code != seckill.CodeSoldOut {
			t.Errorf("all units are promised, and eve was answered %q", code)
		}
	}
}

// Orders of a dualwrite product are in the store milliseconds after their
// answers while the store keeps up, though no worker runs.
func TestDualWrite_RowFollowsTheAnswerWithoutAWorker(t *testing.T) {
	t.Parallel()
	rowsFollow(t, seckill.StrategyDualWrite, shopOnly)
}

// So are those of an async product by a worker, which waits for worker.batch_wait.
func TestAsync_RowFollowsTheAnswer(t *testing.T) {
	t.Parallel()
	rowsFollow(t, seckill.StrategyAsync, nil)
}

// rowsFollow buys one order after the other, and looks for each in the tables.
func rowsFollow(t *testing.T, strategy seckill.Strategy, roles []string) {
	t.Helper()
	const orders = 50
	dsn := server.SharedMariaDB(t).NewDatabase(t)
	e := engine.Start(t, engine.Options{Settings: engine.Join(engine.OnRedis(server.SharedRedis(t).Addr()), engine.OnStore(dsn)), Roles: roles})
	openSale(t, e, engine.Product{ID: 1, Stock: orders, PerUserLimit: 1, Strategy: string(strategy)})
	pool, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
	must(t, "open the store", err)
	defer pool.Close()
	var lags []time.Duration
	for i := range orders {
		no := buys(t, e, 1, fmt.Sprint("ann-", i))
		answered := time.Now()
		for deadline := answered.Add(settleWithin); ; {
			var rows int
			must(t, "look for the row", pool.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM tb_seckill_order WHERE order_no = ?`, no).Scan(&rows))
			if rows == 1 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("order %s has no row after %v", no, settleWithin)
			}
		}
		lags = append(lags, time.Since(answered))
	}
	slices.Sort(lags)
	t.Logf("rows follow their answers by %v (median), %v (9 of 10), %v (all)", lags[orders/2], lags[orders*9/10], lags[orders-1])
	if lags[orders/2] > 100*time.Millisecond {
		t.Errorf("the median row follows its answer by %v, want at most 100ms", lags[orders/2])
	}
}

// The store has less than was promised, for somebody took units out of it by
// hand. The ledger is rebuilt from what the store has; the order that found its
// units gone has failed, which its buyer reads and the log lists by its number.
func TestAStoreShorterThanPromisedFailsWhatItCannotKeepAndListsIt(t *testing.T) {
	t.Parallel()
	dsn := server.SharedMariaDB(t).NewDatabase(t)
	e := engine.Start(t, engine.Options{Settings: engine.Join(engine.OnRedis(server.SharedRedis(t).Addr()), engine.OnStore(dsn))})
	openSale(t, e, engine.Product{ID: 1, Stock: 5, PerUserLimit: 1})
	pool, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
	must(t, "open the store", err)
	defer pool.Close()
	_, err = pool.ExecContext(t.Context(), `UPDATE tb_seckill_product SET stock = 0, offered = 0 WHERE id = 1`)
	must(t, "take the units away", err)

	no := buys(t, e, 1, "ann")
	await(t, e, "ann", no, "failed")
	until(t, "the order is listed", func() bool { return strings.Contains(e.Log(), no) })
	until(t, "all is sold out", func() bool {
		_, code := decided(t, e, 1, "bob")
		return code == seckill.CodeSoldOut
	})
	if figures, err := e.Operator().Stats(t.Context(), 1); err != nil || figures.Epoch < 2 {
		t.Errorf("the ledger was not rebuilt: %+v %v", figures, err)
	}
}
