package storesql

import (
	"context"
	"time"
)

// Several may have the same claim in hand: a worker its entry, a climber its
// letter, an instance its promise. While one writes that the order has failed,
// or the counter sells it, another may have had it adopted: then the ledger
// holds a mark that is nobody's. What would have found it, the claim's entry or
// its letter, must not go without owing the mark's release, under the store's
// epoch; for an order that the ledger does not hold, a release does nothing.

// sqlOweAgain owes the release of orders that are to have no mark, those that
// are dead and those that were sold over the counter, and moves them to the
// epoch whose ledger may hold one.
var sqlOweAgain = list{head: sqlOwe + `order_no IN (`, tail: `)`, columns: 1}

// sqlOweLettered does so for those of them that have a letter. They are counted,
// with a sum as in sqlCloseLetters: of EXISTS MySQL makes a join, which may begin
// with the letters of all products.
var sqlOweLettered = list{
	head: sqlOwe + `(SELECT COUNT(*) FROM tb_dead_letter l
		WHERE l.order_no = tb_seckill_order.order_no AND l.closed_time + 0 IS NULL) > 0 AND order_no IN (`,
	tail: `)`, columns: 1,
}

// sqlOwe makes of a debt that is not heard yet a later one, also within its
// millisecond: what is heard of the first must not settle it.
const sqlOwe = `UPDATE tb_seckill_order SET release_epoch = ?, epoch = ?,
	release_time = CASE WHEN release_time >= ? THEN release_time + 1 ELSE ? END
	WHERE (status IN (2, 3, 4) OR origin <> 0) AND `

// owe runs one of them on orders of one product.
func owe(ctx context.Context, tx *session, by list, epoch uint64, nos []any, now time.Time) error {
	_, err := tx.execRows(ctx, by, []any{epoch, epoch, millis(now), millis(now)}, nos)
	return err
}
