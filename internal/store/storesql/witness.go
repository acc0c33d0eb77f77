package storesql

import (
	"context"

	"seckill/internal/queue"
)

const sqlForgetWitness = `DELETE FROM tb_witness WHERE stream = ? AND seq = ? AND tag = ?`

// ForgetWitness drops a witness that the queue has lost, unless it moved on.
func (s *Store) ForgetWitness(ctx context.Context, witness queue.ID) error {
	return s.change(ctx, "witness", func(ctx context.Context, tx *session) error {
		_, err := tx.exec(ctx, sqlForgetWitness, witness.Stream, witness.Seq, int64(witness.Tag))
		return err
	})
}
