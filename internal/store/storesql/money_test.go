package storesql

import (
	"context"
	"strings"
	"testing"
)

// moneyWalks are the queries of a report and a repair for a product's money.
var moneyWalks = map[string][]any{
	sqlOrdersUnpaid: {7, 10}, sqlPaymentsWrong: {7, 10}, sqlRefundsMissing: {7, 10}, sqlRefundsWrong: {7, 10},
	sqlRefundsFailed: {7, 10}, sqlRefundsGivenUp: {7, 10},
}

// A report reads the payments of one product by an index. It scans no table and sorts nothing.
func TestCheckMoney_UsesIndexesInSQLite(t *testing.T) {
	s := openNew(t)
	for query, args := range moneyWalks {
		err := s.snapshot(t.Context(), "explain", func(ctx context.Context, r *session) error {
			return r.query(ctx, "EXPLAIN QUERY PLAN "+query, args, func(row scanner) error {
				var detail string
				err := row.Scan(new(int), new(int), new(int), &detail)
				if strings.HasPrefix(detail, "SCAN") || strings.Contains(detail, "TEMP B-TREE") || strings.Contains(detail, "AUTOMATIC") {
					t.Errorf("%s\n\t%s", query, detail)
				}
				return err
			})
		})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

func TestCheckMoney_UsesIndexesInMariaDB(t *testing.T) {
	s := openMaria(t)
	p := sale(t, s, 100_000)
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1000))); err != nil {
		t.Fatal(err)
	}
	damage(t, s, `UPDATE tb_seckill_order SET status = 1 ORDER BY order_no LIMIT 700`)
	damage(t, s, `UPDATE tb_seckill_order SET product_id = 8 ORDER BY user_id LIMIT 500`)
	damage(t, s, `INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency, status, reason,
		attempts, last_error, create_time) SELECT order_no, 'payment', order_no, product_id, 'sandbox', order_no, 1, 'CNY', 'applied', '',
		0, '', 1 FROM tb_seckill_order WHERE status = 1`)
	for _, table := range []string{"tb_seckill_order", "tb_payment"} {
		err := s.db.read(t.Context(), func(r *session) error {
			return r.query(t.Context(), "ANALYZE TABLE "+table, nil, func(scanner) error { return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for query, args := range moneyWalks {
		plan, err := explain(t.Context(), s, query, args)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for _, step := range plan {
			if step.kind == "ALL" || strings.Contains(step.extra, "temporary") || strings.Contains(step.extra, "filesort") {
				t.Errorf("%s\n\t%s is read by %s, %s", query, step.table, step.kind, step.extra)
			}
		}
	}
}
