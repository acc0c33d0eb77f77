package storesql

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/store"
)

const (
	sqlOrdersUnpaid = `SELECT o.order_no, o.price_cents * o.quantity, o.currency, COUNT(p.id),
		COALESCE(SUM(p.amount_cents = o.price_cents * o.quantity AND p.currency = o.currency), 0) AS exact
		FROM tb_seckill_order o LEFT JOIN tb_payment p ON p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied'
		WHERE o.product_id = ? AND o.status IN (1, 4) GROUP BY o.order_no, o.price_cents, o.quantity, o.currency
		HAVING COUNT(p.id) <> 1 OR exact <> 1 LIMIT ?`

	sqlAppliedWrong = `SELECT p.id, p.order_no, o.status FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no
		WHERE p.product_id = ? AND p.type = 'payment' AND p.status = 'applied' AND (o.status IS NULL OR o.status NOT IN (1, 4)) LIMIT ?`

	// Excess money and that of a refunded order go back once; that of a paid
	// order stays.
	sqlRefundsWrong = `SELECT p.id, p.order_no, p.status, COUNT(r.id), (p.status = 'excess' OR o.status = 4) AS want
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no LEFT JOIN tb_payment r ON r.payment_id = p.id
		WHERE p.product_id = ? AND p.type = 'payment' AND (p.status = 'excess' OR o.status IN (1, 4)) GROUP BY p.id, p.order_no, p.status, o.status
		HAVING COUNT(r.id) <> want LIMIT ?`

	sqlRefundsTooMuch = `SELECT r.id, r.order_no, COALESCE(p.amount_cents, 0), COALESCE(p.currency, r.currency), r.amount_cents, r.currency
		FROM tb_payment r LEFT JOIN tb_payment p ON p.id = r.payment_id WHERE r.product_id = ? AND r.type = 'refund'
		AND (p.id IS NULL OR r.amount_cents > p.amount_cents OR r.currency <> p.currency) LIMIT ?`

	sqlRefundsStuck = `SELECT id, order_no, amount_cents, currency, last_error FROM tb_payment
		WHERE product_id = ? AND type = 'refund' AND status = 'failed' LIMIT ?`

	// Refunds are idempotent by id at the provider: to try again is safe.
	sqlRetryRefunds = `UPDATE tb_payment SET status = 'due', attempts = 0, next_time = ? WHERE id IN (SELECT id FROM (
		SELECT id FROM tb_payment WHERE product_id = ? AND type = 'refund' AND status = 'failed' LIMIT ?) AS stuck)`

	// Money to give back that nobody owes: that of any order that is over, and
	// all excess money. An order that is pending or paid could still be meant.
	sqlMoneyToOwe = `SELECT ` + paymentColumns + ` FROM tb_payment WHERE id IN (SELECT id FROM (
		SELECT p.id FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no
		WHERE p.product_id = ? AND p.type = 'payment' AND (p.status = 'excess' OR o.status IN (2, 3, 4))
		AND NOT EXISTS (SELECT 1 FROM tb_payment r WHERE r.payment_id = p.id) LIMIT ?) AS kept)`

	sqlOrderStatus = `SELECT status FROM tb_seckill_order WHERE order_no = ?`
	sqlMakeExcess  = `UPDATE tb_payment SET status = 'excess' WHERE id = ? AND status = 'applied'`
)

// CheckMoney compares the product's orders with its payments (I8).
func (s *Store) CheckMoney(ctx context.Context, id uint32, limit int) ([]store.Finding, error) {
	walks := []struct {
		query string
		each  func(scanner, *findings) error
	}{
		{sqlOrdersUnpaid, findUnpaid}, {sqlAppliedWrong, findMisapplied},
		{sqlRefundsWrong, findUnrefunded}, {sqlRefundsTooMuch, findTooMuch}, {sqlRefundsStuck, findStuck},
	}
	return s.check(ctx, "check money", limit, func(ctx context.Context, r *session, f *findings) error {
		for _, walk := range walks {
			// One row more than there is room for ends the walk.
			left := limit - len(f.list) + 1
			err := r.query(ctx, walk.query, []any{id, left}, func(row scanner) error { return walk.each(row, f) })
			if err != nil {
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

func findStuck(row scanner, f *findings) error {
	var id, no, currency, reason string
	var amount int64
	if err := row.Scan(&id, &no, &amount, &currency, &reason); err != nil {
		return err
	}
	return f.add(fmt.Sprintf("%d %s returned", amount, currency), "given up", "refund %s of order %s: %s", id, no, reason)
}

func findMisapplied(row scanner, f *findings) error {
	var id, no string
	var status *seckill.OrderStatus
	if err := row.Scan(&id, &no, &status); err != nil {
		return err
	}
	return f.add("a paid or refunded order", statusName(status), "payment %s is applied to order %s", id, no)
}

func findUnrefunded(row scanner, f *findings) error {
	var id, no, status string
	var count, want int64
	if err := row.Scan(&id, &no, &status, &count, &want); err != nil {
		return err
	}
	return f.add(fmt.Sprintf("%d refunds", want), fmt.Sprintf("%d refunds", count), "payment %s (%s) of order %s", id, status, no)
}

func findTooMuch(row scanner, f *findings) error {
	var id, no, paidIn, backIn string
	var paid, back int64
	if err := row.Scan(&id, &no, &paid, &paidIn, &back, &backIn); err != nil {
		return err
	}
	return f.add(fmt.Sprintf("at most %d %s", paid, paidIn), fmt.Sprintf("%d %s", back, backIn), "refund %s of order %s", id, no)
}

// RepairMoney owes the refund of money that nobody owes yet, and has refunds
// that were given up tried again.
func (s *Store) RepairMoney(ctx context.Context, id uint32, limit int, actor store.Actor) (int, error) {
	count := 0
	err := s.change(ctx, "repair", func(ctx context.Context, tx *session) error {
		again, err := tx.exec(ctx, sqlRetryRefunds, millis(s.now()), id, limit)
		if err != nil {
			return err
		}
		if again > 0 {
			if err := writeAudit(ctx, tx, s.now(), actor, "repair.refunds", id, "", fmt.Sprintf("%d refunds tried again", again)); err != nil {
				return err
			}
		}
		money, err := queryPayments(ctx, tx, sqlMoneyToOwe, id, limit)
		count = len(money) + int(again)
		if err != nil || len(money) == 0 {
			return err
		}
		for i := range money {
			if err := s.repairPayment(ctx, tx, &money[i]); err != nil {
				return err
			}
		}
		detail := fmt.Sprintf("%d refunds, first of payment %s, %d %s", len(money), money[0].ID, money[0].AmountCents, money[0].Currency)
		return writeAudit(ctx, tx, s.now(), actor, "repair.money", id, "", detail)
	})
	if err != nil {
		return 0, err
	}
	return count, nil
}

func (s *Store) repairPayment(ctx context.Context, tx *session, money *paymentRow) error {
	var status seckill.OrderStatus
	known, err := tx.row(ctx, sqlOrderStatus, []any{money.OrderNo}, &status)
	if err != nil {
		return err
	}
	reason := refundLate
	switch {
	case !known:
		reason = refundUnknown
	case status == seckill.OrderRefunded && money.Status == moneyApplied:
		reason = refundOperator
	case status == seckill.OrderPaid || status == seckill.OrderRefunded:
		reason = refundDoubled
	case status == seckill.OrderPending:
		reason = refundAmount
	case money.Status == moneyApplied: // to an order that is cancelled or failed
		if _, err := tx.exec(ctx, sqlMakeExcess, money.ID); err != nil {
			return err
		}
	}
	return s.oweRefund(ctx, tx, money, reason, s.now())
}
