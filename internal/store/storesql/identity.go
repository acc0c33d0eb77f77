package storesql

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
)

const (
	sqlIdentity = `SELECT identity FROM tb_store WHERE id = 1`
	// sqlTakeIdentity names a store that has no name yet.
	sqlTakeIdentity = `INSERT INTO tb_store (id, identity) SELECT 1, ? FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_store WHERE id = 1)`
	identityBytes = 16
)

// Identity is a random name that this store has for good, and that goes with
// its backups. The first to ask makes it.
func (s *Store) Identity(ctx context.Context) (string, error) {
	var name string
	err := s.read(ctx, "read the store's identity", func(ctx context.Context, r *session) error {
		_, err := r.row(ctx, sqlIdentity, nil, &name)
		return err
	})
	if err != nil || name != "" {
		return name, err
	}
	random := make([]byte, identityBytes)
	if _, err := io.ReadFull(s.opt.Random, random); err != nil {
		return "", fmt.Errorf("make the store's identity: %w", err)
	}
	return changed(ctx, s, "identity", func(ctx context.Context, tx *session) (name string, err error) {
		if _, err := tx.exec(ctx, sqlTakeIdentity, hex.EncodeToString(random)); err != nil {
			return "", err
		}
		_, err = tx.row(ctx, sqlIdentity, nil, &name) // another may have been first
		return name, err
	})
}
