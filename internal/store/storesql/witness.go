package storesql

import (
	"context"
	"errors"

	"seckill/internal/queue"
)

const (
	sqlSoldByLedger  = ` WHERE epoch > 0 AND seller = 0 AND strategy <> 'direct' AND limit_group IN (SELECT current FROM ` + sqlCurrentGroups + `)`
	sqlToMark        = `SELECT id, limit_group FROM tb_seckill_product` + sqlSoldByLedger
	sqlMarkAll       = `UPDATE tb_seckill_product SET rebuilding = 1` + sqlSoldByLedger
	sqlForgetWitness = `DELETE FROM tb_witness WHERE stream = ? AND seq = ? AND tag = ?`
)

// errLossHandled undoes the handling of a loss, because another worker has handled it.
var errLossHandled = errors.New("another worker has handled the loss")

// WitnessLost forgets lost witnesses and requests a rebuild of every current product that its
// ledger sells, unless the witnesses have changed since. It locks products first, like a
// confirmation, and in the order of all locks (lock.go). So two such transactions wait for each
// other without a deadlock.
func (s *Store) WitnessLost(ctx context.Context, lost, kept []queue.ID) (bool, error) {
	err := s.change(ctx, "witness", func(ctx context.Context, tx *session) error {
		since := s.currentSince()
		if err := lockLedgers(ctx, tx, since); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, sqlMarkAll, since); err != nil {
			return err
		}
		forgotten := int64(0)
		for _, id := range lost {
			n, err := tx.exec(ctx, sqlForgetWitness, id.Stream, id.Seq, int64(id.Tag))
			if err != nil {
				return err
			}
			forgotten += n
		}
		if forgotten == 0 {
			return errLossHandled
		}
		return raiseWitness(ctx, tx, kept)
	})
	if errors.Is(err, errLossHandled) {
		return false, nil
	}
	return err == nil, err
}

// lockLedgers locks every current product that its ledger sells.
func lockLedgers(ctx context.Context, tx *session, since int64) error {
	groups := make(map[uint32]uint32)
	err := tx.query(ctx, sqlToMark, []any{since}, func(row scanner) error {
		var id, group uint32
		err := row.Scan(&id, &group)
		groups[id] = group
		return err
	})
	if err != nil {
		return err
	}
	return lockProducts(ctx, tx, groups)
}
