package storesql

import (
	"context"
	"maps"
	"slices"
)

// A change of a product's stock, epoch, state, orders or buyer records first locks the product,
// and then the owner of its limit group, whose buyers belong to every product in it. So changes
// of one product run one after the other, and the compare-and-set of its version does not fail.
// Additional workers wait in the database's queue instead of repeating each other's work.
//
// All locks are taken in one order, so there is no deadlock: members of limit groups by id,
// then owners by id. An owner is its own group.

const sqlLockProduct = `SELECT id FROM tb_seckill_product WHERE id = ?`

// sqlLockProducts locks in the order in which the server reads the rows: by id.
var sqlLockProducts = list{head: `SELECT id FROM tb_seckill_product WHERE id IN (`, tail: `) ORDER BY id`, columns: 1}

// lockProduct reads a product, and locks it and its group's owner until the transaction ends.
func lockProduct(ctx context.Context, tx *session, id uint32) (productRow, error) {
	p, err := queryProduct(ctx, tx, sqlProduct+tx.dialect.forUpdate, id)
	if err != nil || p.Group == p.ID {
		return p, err
	}
	return p, lockRow(ctx, tx, p.Group)
}

// lockProducts locks several products, given by id with their limit groups.
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

// lockRows locks products by ascending id. A loss of the queue locks all products: one by one,
// 2,000 take a busy server seconds.
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
