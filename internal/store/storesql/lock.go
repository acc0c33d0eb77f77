package storesql

import (
	"context"
	"maps"
	"slices"
)

// Who changes a product's stock, epoch, state, orders or buyer records locks
// the product first, and the owner of its limit group, whose buyers are those
// of every product in it. So one product's changes come one after the other,
// the compare-and-set of its version does not fail, and workers that are added
// wait in the database's queue instead of repeating each other's work.
//
// Locks are taken in one order, which no deadlock can come from: members of
// limit groups by id, then owners by id. An owner is its own group.

const sqlLockProduct = `SELECT id FROM tb_seckill_product WHERE id = ?`

// lockProduct reads a product and holds it, with its group's owner, until the
// transaction ends.
func lockProduct(ctx context.Context, tx *session, id uint32) (productRow, error) {
	p, err := queryProduct(ctx, tx, sqlProduct+tx.dialect.forUpdate, id)
	if err != nil || p.Group == p.ID {
		return p, err
	}
	return p, lockRow(ctx, tx, p.Group)
}

// lockProducts holds several, given by id with their limit groups.
func lockProducts(ctx context.Context, tx *session, groups map[uint32]uint32) error {
	if tx.dialect.forUpdate == "" {
		return nil
	}
	owners := make(map[uint32]bool, len(groups))
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		owners[groups[id]] = true
		if groups[id] == id {
			continue
		}
		if err := lockRow(ctx, tx, id); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		if err := lockRow(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

func lockRow(ctx context.Context, tx *session, id uint32) error {
	if tx.dialect.forUpdate == "" {
		return nil
	}
	_, err := tx.row(ctx, sqlLockProduct+tx.dialect.forUpdate, []any{id}, new(uint32))
	return err
}
