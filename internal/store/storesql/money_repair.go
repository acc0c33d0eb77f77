package storesql

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/store"
)

const (
	sqlRefundsGivenUp = `SELECT id FROM tb_payment WHERE type = 'refund' AND status = 'failed' AND product_id = ? LIMIT ?`

	// The provider treats refunds as idempotent by id, so a retry is safe.
	sqlRetryRefund = `UPDATE tb_payment SET status = 'due', attempts = 0, next_time = ?
		WHERE id = ? AND type = 'refund' AND status = 'failed'`
)

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
		n, err := tx.exec(ctx, sqlRetryRefund, millis(s.now()), id)
		if err != nil {
			return refund, err
		}
		if n == 0 {
			return refund, seckill.Errorf(seckill.CodeWrongState, "refund %s is %s: only a failed refund can be retried", id, refund.Status)
		}
		refund.Status, refund.Attempts = refundDue, 0
		// The audit has only order numbers of the engine. This one comes from the provider.
		var order string
		if _, err := seckill.ParseOrderNo(refund.OrderNo); err == nil {
			order = refund.OrderNo
		}
		return refund, writeAudit(ctx, tx, s.now(), actor, "refund.retry", row.product, order, "refund "+id)
	})
}

func (s *Store) RetryRefunds(ctx context.Context, product uint32, limit int, actor store.Actor) (int, error) {
	return changed(ctx, s, "repay", func(ctx context.Context, tx *session) (int, error) {
		ids, err := selectAll(ctx, tx, sqlRefundsGivenUp, []any{product, limit}, scanValue[string])
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		for _, id := range ids {
			if err := compared(tx.exec(ctx, sqlRetryRefund, millis(s.now()), id)); err != nil {
				return 0, err
			}
		}
		return len(ids), writeAudit(ctx, tx, s.now(), actor, "repair.refunds", product, "", fmt.Sprintf("%d refunds retried", len(ids)))
	})
}
