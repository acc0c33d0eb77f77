package storesql

import (
	"context"
	"errors"

	"seckill/internal/queue"
)

const (
	sqlMarkAll       = `UPDATE tb_seckill_product SET rebuilding = 1 WHERE epoch > 0 AND strategy <> 'direct'`
	sqlForgetWitness = `DELETE FROM tb_witness WHERE stream = ? AND seq = ? AND tag = ?`
)

// errNoticed undoes what was to be done about a loss: another did it.
var errNoticed = errors.New("the loss was noticed by another")

// WitnessLost forgets witnesses that the queue has lost and marks every product
// that has a ledger, unless they moved on. Products come first, as in a
// confirmation: two such transactions wait for each other in one order.
func (s *Store) WitnessLost(ctx context.Context, lost []queue.ID) (bool, error) {
	err := s.change(ctx, "witness", func(ctx context.Context, tx *session) error {
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
		return nil
	})
	if errors.Is(err, errNoticed) {
		return false, nil
	}
	return err == nil, err
}
