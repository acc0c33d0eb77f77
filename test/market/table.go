package market

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"seckill"
	"seckill/test/engine"
)

// OpenStore opens the SQLite file of an engine, read-only while the engine
// runs.
func OpenStore(t testing.TB, e *engine.Engine) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(e.DataDir, "seckill.db"))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// noRows is a rule of the tables, as a query that returns the violations.
type noRows struct{ promise, query string }

// tableRules hold whenever no transaction is open. They come from the promises
// and not from the engine's own checks.
var tableRules = []noRows{
	{"I1: offered = stock + live units", `
		SELECT p.id, p.offered, p.stock FROM tb_seckill_product p
		WHERE p.offered <> p.stock + COALESCE((SELECT SUM(quantity) FROM tb_seckill_order o WHERE o.product_id = p.id AND o.status IN (0, 1)), 0)`},
	{"I2: stock is never negative", `SELECT id, stock, offered FROM tb_seckill_product WHERE stock < 0`},
	{"I3: a buyer's record is their live units", `
		SELECT o.user_id, o.limit_group, SUM(o.quantity) FROM tb_seckill_order o WHERE o.status IN (0, 1) GROUP BY o.user_id, o.limit_group
		HAVING SUM(o.quantity) <> COALESCE((SELECT quantity FROM tb_user_seckill u WHERE u.user_id = o.user_id AND u.product_id = o.limit_group), 0)`},
	{"I3: no record without live units", `
		SELECT u.user_id, u.product_id, u.quantity FROM tb_user_seckill u
		WHERE NOT EXISTS (SELECT 1 FROM tb_seckill_order o WHERE o.user_id = u.user_id AND o.limit_group = u.product_id AND o.status IN (0, 1))`},
	{"I3: live units are within the limit", `
		SELECT u.user_id, u.product_id, u.quantity FROM tb_user_seckill u
		WHERE u.quantity > (SELECT MAX(per_user_limit) FROM tb_seckill_product p WHERE p.limit_group = u.product_id)`},
	{"I6: seq has no gap", `
		SELECT product_id, MAX(seq), COUNT(*) FROM tb_stock_log GROUP BY product_id HAVING MAX(seq) <> COUNT(*) OR MIN(seq) <> 1`},
	{"I6: before is the last after", `
		SELECT l.product_id, l.seq, l.before_stock FROM tb_stock_log l
		JOIN tb_stock_log k ON k.product_id = l.product_id AND k.seq = l.seq - 1 WHERE k.after_stock <> l.before_stock`},
	{"I6: a row moves what it says", `
		SELECT product_id, seq, after_stock FROM tb_stock_log
		WHERE after_stock <> before_stock + CASE type WHEN 1 THEN -quantity ELSE quantity END`},
	{"I6: the stock is the last after", `
		SELECT p.id, p.stock, l.after_stock FROM tb_seckill_product p
		JOIN tb_stock_log l ON l.product_id = p.id AND l.seq = (SELECT MAX(seq) FROM tb_stock_log WHERE product_id = p.id)
		WHERE l.after_stock <> p.stock`},
	{"I6: an order is sold once and returned as it ended", `
		SELECT o.order_no, o.status, COUNT(l.seq) FROM tb_seckill_order o LEFT JOIN tb_stock_log l ON l.order_no = o.order_no
		GROUP BY o.order_no HAVING COUNT(l.seq) <> CASE o.status WHEN 0 THEN 1 WHEN 1 THEN 1 WHEN 3 THEN 0 ELSE 2 END`},
	{"I8: an order has one payment that counts, if it was paid", `
		SELECT o.order_no, o.status, COUNT(m.id) FROM tb_seckill_order o
		LEFT JOIN tb_payment m ON m.order_no = o.order_no AND m.type = 'payment' AND m.status = 'applied'
		GROUP BY o.order_no HAVING COUNT(m.id) <> (o.status IN (1, 4))`},
	{"I8: excess money is refunded once", `
		SELECT m.id, m.order_no, COUNT(r.id) FROM tb_payment m LEFT JOIN tb_payment r ON r.payment_id = m.id AND r.status = 'done'
		WHERE m.type = 'payment' AND m.status = 'excess' GROUP BY m.id HAVING COUNT(r.id) <> 1`},
	{"every owed release was heard", `SELECT order_no, status, release_epoch FROM tb_seckill_order WHERE release_epoch IS NOT NULL`},
	{"every change of stock is decided", `SELECT id, product_id, delta FROM tb_stock_change WHERE status = 'open'`},
	{"nothing is rebuilt at rest", `SELECT id, epoch, rebuilding FROM tb_seckill_product WHERE rebuilding`},
}

func (b *Book) openTables() *sql.DB {
	b.T.Helper()
	if b.Tables != nil {
		return b.Tables(b.T)
	}
	return OpenStore(b.T, b.engines[0])
}

// hearReleases waits until the ledger has confirmed every release. No metric
// shows an owed release of an order that the ledger never had, so it reads the
// table.
func (b *Book) hearReleases() {
	b.T.Helper()
	db := b.openTables()
	defer db.Close()
	Eventually(b.T, "every owed release is heard", func(ctx context.Context) bool {
		var owed int
		err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM tb_seckill_order WHERE release_epoch IS NOT NULL`).Scan(&owed)
		return err == nil && owed == 0
	})
}

// checkTables applies the rules to the tables of stopped engines, and looks for
// every promised order.
func (b *Book) checkTables() {
	b.T.Helper()
	db := b.openTables()
	defer db.Close()
	for _, rule := range tableRules {
		broken(b.T, db, rule)
	}
	for _, c := range b.Claims {
		var rows int
		if c.No == "" {
			continue
		}
		err := db.QueryRow(`SELECT COUNT(*) FROM tb_seckill_order WHERE order_no = ? AND user_id = ?`, c.No, []byte(c.Buyer.Name)).Scan(&rows)
		if err != nil || rows != 1 {
			b.T.Errorf("I4: promised order %s of %s has %d rows (%v)", c.No, c.Buyer.Name, rows, err)
		}
	}
	b.checkFailures(db)
}

const exactly = "15:04:05.000"

// checkFailures checks that a promised order failed only if mayFail allows it,
// and that it has a reason (I4).
func (b *Book) checkFailures(db *sql.DB) {
	b.T.Helper()
	rows, err := db.Query(`SELECT order_no, reason, cancel_time FROM tb_seckill_order WHERE status = ?`, int(seckill.OrderFailed))
	if err != nil {
		b.T.Fatal(err)
	}
	defer rows.Close()
	type failure struct {
		at     time.Time
		reason string
	}
	failed := make(map[string]failure)
	for rows.Next() {
		var no, reason string
		var at int64
		if err := rows.Scan(&no, &reason, &at); err != nil {
			b.T.Fatal(err)
		}
		failed[no] = failure{time.UnixMilli(at), reason}
	}
	if err := rows.Err(); err != nil {
		b.T.Fatal(err)
	}
	for _, c := range b.promised() {
		if f, found := failed[c.No]; found && !b.mayFail(c, f.at, f.reason) {
			b.T.Errorf("I4: order %s of product %d, asked for at %s, promised at %s, failed at %s (%q), and nothing came in between for which it may",
				c.No, c.Product, c.asked.UTC().Format(exactly), c.since.UTC().Format(exactly), f.at.UTC().Format(exactly), f.reason)
		}
	}
}

func broken(t testing.TB, db *sql.DB, rule noRows) {
	t.Helper()
	rows, err := db.Query(rule.query)
	if err != nil {
		t.Fatalf("%s: %v", rule.promise, err)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b, c any
		if err := rows.Scan(&a, &b, &c); err != nil {
			t.Fatalf("%s: %v", rule.promise, err)
		}
		t.Errorf("%s: broken by %v, %v, %v", rule.promise, a, b, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", rule.promise, err)
	}
}
