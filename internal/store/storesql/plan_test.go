package storesql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/store"
)

// listing is a query for a page or a frequent query. sorts means that it may sort its few rows.
type listing struct {
	name, query string
	args        []any
	sorts       bool
}

// listings returns the pages with every combination of filters.
func listings(d *dialect) (all []listing) {
	add := func(sorts bool, name, query string, args []any) {
		all = append(all, listing{name, query, args, sorts})
	}
	no := seckill.NewOrderNo(fromMillis(1), 7, 1)
	status := seckill.OrderCancelled
	for bits := range 1 << 5 {
		given := func(bit int) bool { return bits>>bit&1 == 1 }
		orders := store.OrderFilter{Limit: 50}
		payments := store.PaymentFilter{Limit: 50}
		letters := store.LetterFilter{Limit: 50}
		audit := store.AuditFilter{Limit: 50}
		before := store.Payment{}
		if given(0) {
			orders.Before, letters.After, audit.Before = no, 5, 5
			before = store.Payment{ID: "x", Type: typePayment, CreatedAt: fromMillis(5)}
		}
		if given(1) {
			orders.ProductID, payments.ProductID, letters.ProductID, audit.ProductID = 7, 7, 7, 7
		}
		if given(2) {
			orders.Status, letters.DeadOnly = &status, true
		}
		if given(3) {
			orders.Ref, payments.OrderNo, audit.OrderNo = "ref", "x", "x"
		}
		if given(4) {
			orders.Buyer, letters.Buyer = "bob", "bob"
		}
		query, args := d.searchOrders(&orders)
		add(given(4), "orders", query, args)
		for _, kind := range []string{typePayment, typeRefund} {
			query, args = d.pageOfPayments(&payments, kind, &before)
			add(given(3), "payments", query, args)
		}
		query, args = d.pageOfLetters(&letters)
		add(false, "letters", query, args)
		query, args = d.pageOfAudit(&audit)
		add(given(3), "audit", query, args)
		query, args = d.pageOfReports(audit.ProductID, audit.Before, 50)
		add(false, "reports", query, args)
	}
	add(false, "products", sqlProducts, []any{5, 50})
	add(true, "current products", sqlCurrentProducts, []any{1})
	add(true, "uncounted ends", sqlUncountedEnds, []any{50})
	add(true, "tally", sqlTally, []any{7})
	add(true, "open letters", sqlOpenLetters, []any{7})
	return all
}

// TestListings_ReadAnIndexInItsOrder checks that every page reads about as many rows as it
// shows, however large the table is. No query scans a table or sorts many rows.
func TestListings_ReadAnIndexInItsOrder(t *testing.T) {
	everyDatabase(t, func(t *testing.T, s *Store) {
		manyOfAll(t, s)
		for _, l := range listings(s.dialect) {
			plan := planOf(t, s, l.query, l.args)
			for _, step := range plan {
				walks := strings.HasPrefix(step, "SCAN tb_") || strings.HasPrefix(step, "ALL ")
				page := strings.Contains(l.query, "ORDER BY") && len(l.args) <= 1 // the newest of all: the index is read from its end
				if walks && !page || !l.sorts && (strings.Contains(step, "TEMP B-TREE") || strings.Contains(step, "filesort")) {
					t.Errorf("%s: %s\n\t%s", l.name, l.query, strings.Join(plan, "; "))
				}
			}
		}
	})
}

// manyOfAll fills the listed tables, mostly with rows that no filter matches.
func manyOfAll(t *testing.T, s *Store) {
	t.Helper()
	p := sale(t, s, 100_000)
	for range 4 {
		if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 500))); err != nil {
			t.Fatal(err)
		}
	}
	for _, fill := range []string{
		`INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency, status, reason, attempts, last_error, create_time)
			SELECT order_no, 'payment', order_no, 7, 'p', order_no, 1, 'CNY', 'applied', '', 0, '', create_time FROM tb_seckill_order`,
		`INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail)
			SELECT 1, 'o', 'a', 9, order_no, '', '' FROM tb_seckill_order`,
		`INSERT INTO tb_reconciliation (product_id, create_time, body) SELECT 9, 1, '' FROM tb_seckill_order`,
		`INSERT INTO tb_dead_letter (order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref, product_name, price_cents,
			currency, per_user_limit, attempts, reason, next_time, create_time, closed_time)
			SELECT order_no, user_id, 7, 7, 0, 1, 1, 1, '', '', '', 1, 'CNY', 1, 1, '', 1, 1, 1 FROM tb_seckill_order`,
	} {
		damage(t, s, fill)
	}
	for i := range 500 {
		damage(t, s, fmt.Sprintf(`INSERT INTO tb_seckill_product (id, ref, product_name, image_url, price_cents, currency, stock, offered, per_user_limit, limit_group,
			starts_at, ends_at, shards, strategy, fallback, seller, store_open, shard_key, state, unlisted, test, epoch, version, log_seq, rebuilding, ended_time, create_time)
			SELECT %[1]d, ref, product_name, image_url, price_cents, currency, stock, offered, per_user_limit, %[1]d, starts_at, ends_at, shards, strategy, fallback,
			seller, store_open, shard_key, state, unlisted, test, epoch, version, log_seq, rebuilding, 1, create_time FROM tb_seckill_product WHERE id = 7`, 1000+i))
	}
	for _, table := range []string{"tb_seckill_order", "tb_payment", "tb_audit", "tb_reconciliation", "tb_dead_letter", "tb_seckill_product"} {
		analyze := "ANALYZE "
		if s.dialect.batchedEvents {
			analyze = "ANALYZE TABLE "
		}
		err := s.db.read(t.Context(), func(r *session) error {
			return r.query(t.Context(), analyze+table, nil, func(scanner) error { return nil })
		})
		if err != nil && s.dialect.batchedEvents {
			t.Fatal(err)
		}
	}
}

// planOf returns how a statement reads its tables: SQLite's plan, or "kind table by index:
// extra" for a server.
func planOf(t *testing.T, s *Store, query string, args []any) (plan []string) {
	t.Helper()
	if s.dialect.batchedEvents {
		steps, err := explain(t.Context(), s, query, args)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for _, step := range steps {
			if strings.HasPrefix(step.table, "tb_") {
				plan = append(plan, fmt.Sprintf("%s %s by %s: %s", step.kind, step.table, step.key, step.extra))
			}
		}
		return plan
	}
	err := s.snapshot(t.Context(), "explain", func(ctx context.Context, r *session) error {
		return r.query(ctx, "EXPLAIN QUERY PLAN "+query, args, func(row scanner) error {
			var detail sql.NullString
			err := row.Scan(new(int), new(int), new(int), &detail)
			plan = append(plan, detail.String)
			return err
		})
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return plan
}
