package storesql

import (
	"context"
	"encoding/hex"
	"errors"
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
	name, err := s.identity(ctx)
	if err != nil || name != "" {
		return name, err
	}
	random := make([]byte, identityBytes)
	if _, err := io.ReadFull(s.opt.Random, random); err != nil {
		return "", fmt.Errorf("make the store's identity: %w", err)
	}
	made := s.change(ctx, "identity", func(ctx context.Context, tx *session) error {
		_, err := tx.exec(ctx, sqlTakeIdentity, hex.EncodeToString(random))
		return err
	})
	// Another may have been first: what the store has now counts.
	if name, err = s.identity(ctx); err == nil && name == "" {
		err = errors.New("the store has no identity")
	}
	if err != nil {
		return "", errors.Join(made, err)
	}
	return name, nil
}

// identity reads it; "" when there is none yet.
func (s *Store) identity(ctx context.Context) (name string, err error) {
	err = s.read(ctx, "read the store's identity", func(ctx context.Context, r *session) error {
		_, err := r.row(ctx, sqlIdentity, nil, &name)
		return err
	})
	return name, err
}
