package storesql

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/store"
)

const (
	// Refunds that nothing will try: given up, or due at no time or one that
	// never comes. They are idempotent by id at the provider: to try again is
	// safe, unless somebody made another sum or trade of them.
	sqlRefundsIdle = `SELECT r.id FROM tb_payment r JOIN tb_payment p ON p.id = r.payment_id AND p.type = 'payment' AND ` + sqlSameMoney + `
		WHERE r.type = 'refund' AND r.done_time IS NULL
		AND (r.status = 'failed' OR r.status = 'due' AND (r.next_time IS NULL OR r.next_time > ?)) AND `
	sqlRefundsIdleOf = sqlRefundsIdle + `r.product_id = ? LIMIT ?`
	sqlRefundIdle    = sqlRefundsIdle + `r.id = ?`

	sqlRetryRefund = `UPDATE tb_payment SET status = 'due', attempts = 0, next_time = ?
		WHERE id = ? AND type = 'refund' AND status IN ('failed', 'due')`

	// Money to give back that nobody owes: that of any order that is over, and
	// all excess money. An order that is pending or paid could still be meant, and
	// so could the refund of the same trade that names another payment.
	sqlMoneyToOwe = `SELECT ` + paymentColumns + ` FROM tb_payment WHERE id IN (SELECT id FROM (
		SELECT p.id FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no
		WHERE p.product_id = ? AND p.type = 'payment' AND (p.status = 'excess' OR o.status IN (2, 3, 4))
		AND NOT EXISTS (SELECT 1 FROM tb_payment r WHERE r.payment_id = p.id)
		AND NOT EXISTS (SELECT 1 FROM tb_payment r WHERE r.provider = p.provider AND r.trade_no = p.trade_no AND r.type = 'refund')
		LIMIT ?) AS kept)`

	sqlOrderStatus = `SELECT status FROM tb_seckill_order WHERE order_no = ?`
	sqlMakeExcess  = `UPDATE tb_payment SET status = 'excess' WHERE id = ? AND status = 'applied'`
)

// RetryRefund makes a refund that nothing will try due now.
func (s *Store) RetryRefund(ctx context.Context, id string, actor store.Actor) (store.Payment, error) {
	return changed(ctx, s, "repay", func(ctx context.Context, tx *session) (store.Payment, error) {
		row, found, err := selectOne(ctx, tx, sqlRefund, []any{id}, scanPayment)
		refund := row.Payment
		if err == nil && !found {
			err = seckill.Errorf(seckill.CodeNotFound, "no refund %q", id)
		}
		if err != nil {
			return refund, err
		}
		n, err := s.retryRefunds(ctx, tx, sqlRefundIdle, id)
		if err != nil {
			return refund, err
		}
		if n == 0 {
			return refund, seckill.Errorf(seckill.CodeWrongState, "refund %s is %s: only one that was given up, and returns what its payment brought, is tried again", id, refund.Status)
		}
		refund.Status, refund.Attempts = refundDue, 0
		// The audit's order numbers are the engine's; this one is the provider's word.
		var order string
		if _, err := seckill.ParseOrderNo(refund.OrderNo); err == nil {
			order = refund.OrderNo
		}
		return refund, writeAudit(ctx, tx, s.now(), actor, "refund.retry", row.product, order, "refund "+id)
	})
}

// retryRefunds makes the refunds that a query of idle ones selects due now.
func (s *Store) retryRefunds(ctx context.Context, tx *session, query string, args ...any) (count int, err error) {
	ids, err := selectAll(ctx, tx, query, append([]any{s.refundHorizon()}, args...), scanValue[string])
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		n, err := tx.exec(ctx, sqlRetryRefund, millis(s.now()), id)
		if err != nil {
			return 0, err
		}
		count += int(n)
	}
	return count, nil
}

// RepairMoney owes the refund of money that nobody owes yet, and has refunds
// that nothing will try tried again.
func (s *Store) RepairMoney(ctx context.Context, id uint32, limit int, actor store.Actor) (int, error) {
	return changed(ctx, s, "repair", func(ctx context.Context, tx *session) (int, error) {
		again, err := s.retryRefunds(ctx, tx, sqlRefundsIdleOf, id, limit)
		if err != nil {
			return 0, err
		}
		if again > 0 {
			if err := writeAudit(ctx, tx, s.now(), actor, "repair.refunds", id, "", fmt.Sprintf("%d refunds tried again", again)); err != nil {
				return 0, err
			}
		}
		money, err := queryPayments(ctx, tx, sqlMoneyToOwe, id, limit)
		if err != nil || len(money) == 0 {
			return again, err
		}
		for i := range money {
			if err := s.repairPayment(ctx, tx, &money[i]); err != nil {
				return 0, err
			}
		}
		detail := fmt.Sprintf("%d refunds, first of payment %s, %d %s", len(money), money[0].ID, money[0].AmountCents, money[0].Currency)
		return len(money) + again, writeAudit(ctx, tx, s.now(), actor, "repair.money", id, "", detail)
	})
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
