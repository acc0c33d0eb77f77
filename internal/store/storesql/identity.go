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
	// sqlPreheated finds a product that a ledger sells under the lost name.
	sqlPreheated  = `SELECT 1 FROM tb_seckill_product WHERE epoch > 0 LIMIT 1`
	identityBytes = 16
)

// errIdentityLost means that the store's name was lost, for example by a restore of some tables
// only. With a new name the keys in Redis would get new names too, and the orders that wait
// under the old keys would never be written.
var errIdentityLost = errors.New("the database has products that were preheated, but table tb_store, which names their keys in Redis, is empty: " +
	"restore tb_store from the same backup as the other tables")

// Identity returns a random name that the store keeps for good, also in its backups. The first
// call creates it.
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
		used, err := tx.row(ctx, sqlPreheated, nil, new(int))
		if err != nil {
			return "", err
		}
		if used {
			if _, err = tx.row(ctx, sqlIdentity, nil, &name); err == nil && name == "" {
				err = errIdentityLost
			}
			return name, err
		}
		if _, err := tx.exec(ctx, sqlTakeIdentity, hex.EncodeToString(random)); err != nil {
			return "", err
		}
		_, err = tx.row(ctx, sqlIdentity, nil, &name) // another process may have been faster
		return name, err
	})
}
