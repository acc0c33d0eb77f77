package storesql

import (
	"context"
	"time"
)

// Several parts may work on one claim: a worker on its entry, another worker on its letter, an
// instance on its promise. While one writes that the order failed, or the store sells it,
// another may have had the claim adopted. Then the ledger holds a mark that belongs to no
// order. The entry or the letter would have revealed it. Before they go, the release of the
// mark must be owed under the store's epoch. A release of an order that the ledger does not
// hold does nothing.

// sqlOweAgain owes the release of orders that must have no mark: dead orders and orders that
// the store sold. It also moves them to the epoch whose ledger may have a mark.
var sqlOweAgain = list{head: sqlOwe + `order_no IN (`, tail: `)`, columns: 1}

// sqlOweLettered does the same for those of the orders that have a letter. It counts letters
// and adds 0 as in sqlCloseLetters. MySQL turns EXISTS into a join, which may begin with the
// letters of all products.
var sqlOweLettered = list{
	head: sqlOwe + `(SELECT COUNT(*) FROM tb_dead_letter l
		WHERE l.order_no = tb_seckill_order.order_no AND l.closed_time + 0 IS NULL) > 0 AND order_no IN (`,
	tail: `)`, columns: 1,
}

// sqlOwe gives a release that is not settled yet a later time, even within one millisecond. So
// settling the first release does not settle the second.
const sqlOwe = `UPDATE tb_seckill_order SET release_epoch = ?, epoch = ?,
	release_time = CASE WHEN release_time >= ? THEN release_time + 1 ELSE ? END
	WHERE (status IN (2, 3, 4) OR origin <> 0) AND `

// owe runs sqlOweAgain or sqlOweLettered for orders of one product.
func owe(ctx context.Context, tx *session, by list, epoch uint64, nos []any, now time.Time) error {
	_, err := tx.execRows(ctx, by, []any{epoch, epoch, millis(now), millis(now)}, nos)
	return err
}
