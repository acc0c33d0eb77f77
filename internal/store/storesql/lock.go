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

// sqlLockProducts locks by id, as the server reads the rows.
var sqlLockProducts = list{head: `SELECT id FROM tb_seckill_product WHERE id IN (`, tail: `) ORDER BY id`, columns: 1}

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
	var members []any
	owners := make(map[uint32]bool, len(groups))
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		owners[groups[id]] = true
		if groups[id] != id {
			members = append(members, id)
		}
	}
	if err := lockRows(ctx, tx, members); err != nil {
		return err
	}
	var sorted []any
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		sorted = append(sorted, id)
	}
	return lockRows(ctx, tx, sorted)
}

// lockRows holds products by ascending id. A loss of the queue holds all of them:
// one by one, 2,000 take a busy server for seconds.
func lockRows(ctx context.Context, tx *session, ids []any) error {
	l := sqlLockProducts
	l.tail += tx.dialect.forUpdate
	return tx.queryRows(ctx, l, nil, ids, func(scanner) error { return nil })
}

func lockRow(ctx context.Context, tx *session, id uint32) error {
	if tx.dialect.forUpdate == "" {
		return nil
	}
	_, err := tx.row(ctx, sqlLockProduct+tx.dialect.forUpdate, []any{id}, new(uint32))
	return err
}
