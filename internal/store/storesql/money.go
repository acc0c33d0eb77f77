package storesql

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/store"
)

const (
	// Counted order by order: a join with a group would sort a million orders.
	sqlOrdersUnpaid = `SELECT o.order_no, o.price_cents * o.quantity, o.currency, (` + sqlCountApplied + `), (` + sqlCountExact + `)
		FROM tb_seckill_order o WHERE o.product_id = ? AND o.status IN (1, 4)
		AND ((` + sqlCountApplied + `) <> 1 OR (` + sqlCountExact + `) <> 1) LIMIT ?`
	sqlCountApplied = `SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied'`
	sqlCountExact   = sqlCountApplied + ` AND p.amount_cents = o.price_cents * o.quantity AND p.currency = o.currency`

	sqlPaymentsWrong = `SELECT p.id, p.order_no, o.status
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no WHERE p.product_id = ? AND p.type = 'payment'
		AND p.status = 'applied' AND (o.status IS NULL OR o.status NOT IN (1, 4)) LIMIT ?`

	// Money in excess, and the money of a refunded order, go back once. The money of a paid
	// order stays. A unique key keeps a payment from having two refunds.
	sqlRefundsMissing = `SELECT p.id, p.order_no, p.status, r.id
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no LEFT JOIN tb_payment r ON r.payment_id = p.id
		WHERE p.product_id = ? AND p.type = 'payment' AND (r.id IS NULL AND (p.status = 'excess' OR o.status = 4)
		OR r.id IS NOT NULL AND p.status = 'applied' AND o.status = 1) LIMIT ?`

	// A refund returns the whole payment, by its trade number.
	sqlRefundsWrong = `SELECT r.id, r.order_no, r.provider, r.trade_no, r.amount_cents, r.currency,
		COALESCE(p.provider, ''), COALESCE(p.trade_no, ''), COALESCE(p.amount_cents, 0), COALESCE(p.currency, '')
		FROM tb_payment r LEFT JOIN tb_payment p ON p.id = r.payment_id
		WHERE r.product_id = ? AND r.type = 'refund' AND (p.id IS NULL OR r.provider <> p.provider OR r.trade_no <> p.trade_no
			OR r.amount_cents <> p.amount_cents OR r.currency <> p.currency) LIMIT ?`

	// A refund that was given up breaks no rule, but is a finding, because an operator must
	// act.
	sqlRefundsFailed = `SELECT id, order_no, amount_cents, currency, last_error FROM tb_payment
		WHERE product_id = ? AND type = 'refund' AND status = 'failed' LIMIT ?`
)

func (s *Store) CheckMoney(ctx context.Context, id uint32, limit int) ([]store.Finding, error) {
	walks := []struct {
		query string
		each  func(scanner, *findings) error
	}{
		{sqlOrdersUnpaid, findUnpaid},
		{sqlPaymentsWrong, findMisapplied},
		{sqlRefundsMissing, findUnrefunded},
		{sqlRefundsWrong, findOtherMoney},
		{sqlRefundsFailed, findGivenUp},
	}
	return s.check(ctx, "check money", limit, func(ctx context.Context, r *session, f *findings) error {
		for _, walk := range walks {
			// One row more than there is room for ends the walk.
			args := []any{id, limit - len(f.list) + 1}
			if err := r.query(ctx, walk.query, args, func(row scanner) error { return walk.each(row, f) }); err != nil {
				return err
			}
		}
		return nil
	})
}

func findUnpaid(row scanner, f *findings) error {
	var no, currency string
	var amount, count, exact int64
	if err := row.Scan(&no, &amount, &currency, &count, &exact); err != nil {
		return err
	}
	return f.add(fmt.Sprintf("one payment of %d %s", amount, currency), fmt.Sprintf("%d payments, %d exact", count, exact), "order %s", no)
}

func findMisapplied(row scanner, f *findings) error {
	var id, no string
	var status *seckill.OrderStatus
	if err := row.Scan(&id, &no, &status); err != nil {
		return err
	}
	found := "unknown"
	if status != nil {
		found = status.String()
	}
	return f.add("a paid or refunded order", found, "payment %s is applied to order %s", id, no)
}

func findUnrefunded(row scanner, f *findings) error {
	var id, no, status string
	var refund *string
	if err := row.Scan(&id, &no, &status, &refund); err != nil {
		return err
	}
	if refund == nil {
		return f.add("a refund", "none", "payment %s (%s) of order %s", id, status, no)
	}
	return f.add("no refund", "refund "+*refund, "payment %s (%s) of order %s", id, status, no)
}

// movement has the fields that a payment and its refund must share.
type movement struct {
	provider, trade, currency string
	cents                     int64
}

func (m *movement) String() string {
	return fmt.Sprintf("%d %s, %s trade %s", m.cents, m.currency, m.provider, m.trade)
}

func findOtherMoney(row scanner, f *findings) error {
	var id, no string
	var back, paid movement
	err := row.Scan(&id, &no, &back.provider, &back.trade, &back.cents, &back.currency, &paid.provider, &paid.trade, &paid.cents, &paid.currency)
	if err != nil {
		return err
	}
	return f.add(&paid, &back, "refund %s of order %s", id, no)
}

func findGivenUp(row scanner, f *findings) error {
	var id, no, currency, reason string
	var amount int64
	if err := row.Scan(&id, &no, &amount, &currency, &reason); err != nil {
		return err
	}
	return f.add(fmt.Sprintf("%d %s returned", amount, currency), "given up", "refund %s of order %s: %s", id, no, reason)
}
