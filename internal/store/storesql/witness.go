package storesql

import (
	"context"
	"errors"

	"seckill/internal/queue"
)

const (
	sqlToMark        = `SELECT id, limit_group FROM tb_seckill_product WHERE epoch > 0 AND seller = 0 AND strategy <> 'direct'`
	sqlMarkAll       = `UPDATE tb_seckill_product SET rebuilding = 1 WHERE epoch > 0 AND seller = 0 AND strategy <> 'direct'`
	sqlForgetWitness = `DELETE FROM tb_witness WHERE stream = ? AND seq = ? AND tag = ?`
)

// errNoticed undoes what was to be done about a loss: another did it.
var errNoticed = errors.New("the loss was noticed by another")

// WitnessLost forgets witnesses that the queue has lost and marks every product
// that its ledger sells, unless they moved on. Products come first, as in a
// confirmation, and in the order of all locks (lock.go): two such transactions
// wait for each other, and not in a circle.
func (s *Store) WitnessLost(ctx context.Context, lost, kept []queue.ID) (bool, error) {
	err := s.change(ctx, "witness", func(ctx context.Context, tx *session) error {
		if err := lockLedgers(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, sqlMarkAll); err != nil {
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
			return errNoticed
		}
		return raiseWitness(ctx, tx, kept)
	})
	if errors.Is(err, errNoticed) {
		return false, nil
	}
	return err == nil, err
}

// lockLedgers holds every product that its ledger sells now.
func lockLedgers(ctx context.Context, tx *session) error {
	groups := make(map[uint32]uint32)
	err := tx.query(ctx, sqlToMark, nil, func(row scanner) error {
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
