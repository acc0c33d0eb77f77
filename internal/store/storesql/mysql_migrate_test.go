package storesql

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"testing"

	"seckill/internal/store"
	"seckill/test/server"
)

func TestMigrate_ManyInstancesOnMariaDBAtOnce(t *testing.T) {
	dsn := server.SharedMariaDB(t).NewDatabase(t)
	const rivals = 5
	var wg sync.WaitGroup
	for range rivals {
		s, err := Open(t.Context(), dsn, Options{MaxConns: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		wg.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := s.CurrentProducts(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestMigrate_RefusesNewerMariaDBSchema(t *testing.T) {
	s := openMaria(t)
	damage(t, s, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`)
	if err := s.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("got %v", err)
	}
}

// The lock's name contains the database, which was dropped, so the lock has no name.
func TestMigrate_FailsIfTheLockCannotBeGiven(t *testing.T) {
	s := openMaria(t)
	conn, err := s.db.(*mysqlDB).writePool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{`CREATE DATABASE dropped_meanwhile`, `USE dropped_meanwhile`, `DROP DATABASE dropped_meanwhile`} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := takeMigrateLock(t.Context(), conn); err == nil || !strings.Contains(err.Error(), "lock of migrations") {
		t.Errorf("got %v", err)
	}
}

// The server commits each statement of a migration by itself. If the process ends between two
// of them, the next migration creates the missing tables.
func TestMigrate_CompletesAnInterruptedMigration(t *testing.T) {
	s := openMaria(t)
	sale(t, s, 10)
	for _, undo := range []string{
		`DROP TABLE tb_takeover_ack`,
		`DROP TABLE tb_lease, tb_store, tb_sink, tb_sink_delivery, tb_instance, tb_takeover_ack`,
		`DELETE FROM tb_feed`,
		`DELETE FROM goose_db_version`, // created but empty
	} {
		damage(t, s, undo)
		damage(t, s, `DELETE FROM goose_db_version WHERE version_id > 0`)
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatalf("after %q: %v", undo, err)
		}
	}
	if current, latest, err := s.Version(t.Context()); current != latest || err != nil {
		t.Errorf("the tables have version %d of %d: %v", current, latest, err)
	}
	p, err := s.Product(t.Context(), 7)
	if err != nil || p.Stock != 10 {
		t.Fatalf("the product is %+v %v", p, err)
	}
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 2))); err != nil {
		t.Error(err)
	}
	if events, err := s.Events(t.Context(), 0, 10); len(events) == 0 || err != nil {
		t.Errorf("%d events: %v", len(events), err)
	}
}

// Frequent queries must not scan a table that grows.
func TestFrequentQueries_UseTheirIndexInMariaDB(t *testing.T) {
	s := openMaria(t)
	p := sale(t, s, 100_000)
	for range 4 {
		if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 500))); err != nil {
			t.Fatal(err)
		}
	}
	damage(t, s, `UPDATE tb_seckill_order SET status = 2, release_epoch = 1, release_time = 1 ORDER BY order_no LIMIT 20`)
	// Another product's orders are older, and most of them live.
	damage(t, s, `INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref,
		status, reason, create_time, epoch, shard, origin)
		SELECT CONCAT('0', order_no), user_id, 9, 9, 'Kettle', 999, 'CNY', 1, '', IF(RAND() < 0.05, 2, 1), '', 1, 1, 0, 0 FROM tb_seckill_order`)
	// Another product's claims wait, as after an outage.
	damage(t, s, `INSERT INTO tb_dead_letter (order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
		product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time)
		SELECT CONCAT(order_no, 'L'), user_id, 8, 8, 0, 1, 1, 1, '', '', 'Kettle', 999, 'CNY', 1, 1, '', create_time, 1 FROM tb_seckill_order WHERE product_id = 7`)
	// A delivery log with some retrying rows.
	damage(t, s, `INSERT INTO tb_sink_delivery (sink, event_id, delivery_key, event, message_id, event_time, state, attempts, last_status,
		latency_ms, last_error, last_time, next_time)
		SELECT 'shop', batch_id * 1000 + place, COALESCE(order_no, 'product:7'), event, 'evt', 1, IF(place % 50 = 0, 1, 4), 1, '204', 1, '', 1, 1 FROM tb_event`)
	for _, table := range []string{"tb_seckill_order", "tb_event", "tb_stock_log", "tb_user_seckill", "tb_dead_letter", "tb_event_batch", "tb_sink_delivery"} {
		err := s.db.read(t.Context(), func(r *session) error {
			return r.query(t.Context(), "ANALYZE TABLE "+table, nil, func(scanner) error { return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	some, err := s.SearchOrders(t.Context(), store.OrderFilter{Limit: 1})
	if err != nil || len(some) == 0 {
		t.Fatal("no order", err)
	}
	no := some[0].OrderNo.String()
	for _, c := range []struct {
		query string
		args  []any
		index string
	}{
		{sqlOrder, []any{no}, "PRIMARY"},
		{statement{sqlKnownOrders, 20}.text(), numbers(20), "PRIMARY"},
		{statement{sqlKnownUnits, 20}.text(), append([]any{7}, numbers(20)...), "PRIMARY"},
		{statement{mysqlDialect.knownKeys, 20}.text(), append([]any{7}, numbers(40)...), "uk_order_key"},
		{statement{sqlLiveNos, 20}.text(), append([]any{7}, numbers(20)...), "uk_order_key"},
		{sqlDueOrders + "1 = 1 LIMIT ?", []any{1, 10}, "ix_order_due"},
		{sqlDueOrders + "product_id <> ? LIMIT ?", []any{1, 7, 10}, "ix_order_due"},
		{sqlOrdersToWarn, []any{1, 2, 10}, "ix_order_due"},
		{statement{sqlWarned, 20}.text(), numbers(20), "PRIMARY"},
		{statement{sqlOrdersByNo, 20}.text(), numbers(20), "PRIMARY"},
		{statement{sqlDueAmong, 20}.text(), append([]any{1}, numbers(20)...), "PRIMARY"},
		{sqlReleasesDue + "NOT (product_id = ? AND shard = ?)" + sqlReleasesOrder, []any{8, 0, 10}, "ix_order_release"},
		{statement{sqlSettleReleases, 20}.text(), append([]any{1}, debts(20)...), "PRIMARY"},
		{statement{sqlOweAgain, 20}.text(), append([]any{1, 1, 2, 2}, numbers(20)...), "PRIMARY"},
		{statement{sqlOweLettered, 20}.text(), append([]any{1, 1, 2, 2}, numbers(20)...), "PRIMARY"},
		{sqlOwedCount, []any{7}, "ix_order_release"},
		{sqlUnits, []any{7}, "ix_order_product_status"},
		{sqlDeadKeys, []any{9}, "ix_order_product_status"},
		{statement{sqlPendingUntil, 2}.text(), []any{8, 9}, "ix_order_product_status"},
		{sqlLettersDue + "product_id <> ?" + sqlLettersDueOrder, []any{1, 8, 10}, "ix_letter_due"},
		{sqlDeadLetters + "1 = 1" + sqlDeadLettersOrder, []any{1, 10}, "ix_letter_due"},
		{sqlDeadLetters + "product_id <> ?" + sqlDeadLettersOrder, []any{1, 7, 10}, "ix_letter_due"},
		{sqlAnyLetters, []any{7}, "ix_letter_product"},
		{sqlLettersToHold, []any{7, 3, 100}, "ix_letter_product"},
		{sqlRefundsDue, []any{1, 10}, "ix_payment_due"},
		{sqlStockChangesDue + "product_id <> ?" + sqlStockChangesOrder, []any{8, 10}, "ix_stock_change_open"},
		{sqlAnyUnread, nil, "uk_event_batch_last"},
		{sqlUnread, []any{10}, "uk_event_batch_last"},
		{sqlBatches, []any{1 << 40, 10}, "uk_event_batch_last"},
		{statement{sqlBatchEvents, 2}.text(), []any{1, 2}, "PRIMARY"},
		{mysqlDialect.storyEvents, []any{no}, "ix_event_order"},
		{sqlStoryAudit, []any{no}, "ix_audit_order"},
		{sqlStoryStock, []any{no}, "ix_stock_log_order"},
		{sqlStockLog, []any{7}, "PRIMARY"},
		{sqlLockProduct, []any{7}, "PRIMARY"},
		{sqlOpenDeliveries, []any{"shop"}, "ix_delivery_state"},
		{sqlDeliveriesDue, []any{"shop", 1, 10}, "ix_delivery_state"},
		{sqlSettledDeliveries, []any{"shop"}, "ix_delivery_state"},
		{statement{sqlOpenKeys, 20}.text(), append([]any{"shop"}, numbers(20)...), "ix_delivery_key"},
		{statement{sqlLines, 20}.text(), append([]any{"shop"}, numbers(20)...), "ix_delivery_key"},
		{sqlDeliveredFrom, []any{"shop", 1 << 40, 10}, "PRIMARY"},
		{sqlSweepable, []any{"shop", 1, 10}, "PRIMARY"},
		{sqlUnreadEvents, nil, "uk_event_batch_last"},
	} {
		plan, err := explain(t.Context(), s, c.query, c.args)
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		if first := plan[0]; first.key != c.index || first.kind == "ALL" {
			t.Errorf("%s\n\tis read by %q (%s), not by %s", c.query, first.key, first.kind, c.index)
		}
	}
}

// step is how a query reads one table.
type step struct{ table, kind, key, extra string }

// explain returns how a query reads its tables, the first one first.
func explain(ctx context.Context, s *Store, query string, args []any) (plan []step, err error) {
	err = s.db.read(ctx, func(r *session) error {
		return r.query(ctx, "EXPLAIN FORMAT=TRADITIONAL "+query, args, func(row scanner) error {
			names, err := row.(*sql.Rows).Columns() // MySQL has two columns more than MariaDB
			if err != nil {
				return err
			}
			cells, texts := make([]any, len(names)), make([]sql.NullString, len(names))
			for i := range cells {
				cells[i] = &texts[i]
			}
			if err := row.Scan(cells...); err != nil {
				return err
			}
			cell := func(name string) string { return texts[slices.Index(names, name)].String }
			plan = append(plan, step{table: cell("table"), kind: cell("type"), key: cell("key"), extra: cell("Extra")})
			return nil
		})
	})
	return plan, err
}

// numbers returns n distinct arguments.
func numbers(n int) []any {
	args := make([]any, n)
	for i := range args {
		args[i] = []byte{'b', byte(i)}
	}
	return args
}

// debts returns the arguments of n releases that are owed at the same time.
func debts(n int) []any {
	var args []any
	for _, no := range numbers(n) {
		args = append(args, no, 1)
	}
	return args
}
