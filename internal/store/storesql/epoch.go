package storesql

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/store"
)

const (
	sqlBumpEpoch = `UPDATE tb_seckill_product SET epoch = ?, seller = 0, store_open = 0, version = version + 1, rebuilding = 1
		WHERE id = ? AND version = ?`
	sqlMarkedOrders = `SELECT ` + orderColumns + ` FROM tb_seckill_order WHERE product_id = ? AND status IN (0, 1) AND origin = 0`
	sqlDeadKeys     = `SELECT ` + orderColumns + ` FROM tb_seckill_order WHERE product_id = ? AND status IN (2, 3, 4) AND idem_key IS NOT NULL`
	sqlMoveHome     = `UPDATE tb_seckill_order SET shard = ? WHERE order_no = ?`
)

// OpenEpoch opens the product's next epoch. That restamps its live orders (see orderColumns).
// Live orders, parked claims and dead orders with keys are passed to mark inside the
// transaction. So they and the stock are one snapshot, but other writers wait while mark runs.
func (s *Store) OpenEpoch(ctx context.Context, id uint32, seen, floor uint64, actor store.Actor, mark func(seckill.Order) error) (seckill.Product, error) {
	var p productRow
	marked := false
	err := s.change(ctx, "epoch", func(ctx context.Context, tx *session) (err error) {
		if marked {
			// mark has collected orders of a transaction that was undone.
			return fmt.Errorf("%w: the snapshot was interrupted", store.ErrUnavailable)
		}
		if p, err = s.lockToChange(ctx, tx, id); err != nil {
			return err
		}
		if p.Epoch != seen {
			return fmt.Errorf("%w: it is %d, not %d", store.ErrEpoch, p.Epoch, seen)
		}
		below := max(seen, floor)
		if below >= store.MaxEpoch {
			return seckill.Errorf(seckill.CodeWrongState, "there is no epoch above %d", below)
		}
		next := below + 1
		if err := compared(tx.exec(ctx, sqlBumpEpoch, next, id, p.Version)); err != nil {
			return err
		}
		p.Epoch, p.Version, p.Rebuilding, p.Seller, p.StoreOpen = next, p.Version+1, true, seckill.SellerLedger, false
		if err := writeAudit(ctx, tx, s.now(), actor, "product.epoch", id, "", fmt.Sprintf("epoch %d -> %d", seen, p.Epoch)); err != nil {
			return err
		}
		parked, err := s.holdLetters(ctx, tx, &p.Product)
		if err != nil {
			return err
		}
		var strays []seckill.Order
		hand := func(row scanner) error {
			var order seckill.Order
			if err := scanOrder(row, &order); err != nil {
				return err
			}
			if home := seckill.HomeShard(&p.Product, order.Buyer); order.Shard != home {
				order.Shard = home
				strays = append(strays, order)
			}
			marked = true
			return mark(order)
		}
		if err := tx.query(ctx, sqlMarkedOrders, []any{id}, hand); err != nil {
			return err
		}
		for _, order := range parked {
			marked = true
			if err := mark(order); err != nil {
				return err
			}
		}
		if err := tx.query(ctx, sqlDeadKeys, []any{id}, hand); err != nil {
			return err
		}
		return moveHome(ctx, tx, strays)
	})
	if err != nil {
		return seckill.Product{}, err
	}
	return p.Product, nil
}

// moveHome writes the buyer's home shard into orders that name another shard. Such orders exist
// only if somebody edited rows by hand.
func moveHome(ctx context.Context, tx *session, strays []seckill.Order) error {
	for i := range strays {
		if _, err := tx.exec(ctx, sqlMoveHome, strays[i].Shard, strays[i].OrderNo.String()); err != nil {
			return err
		}
	}
	return nil
}
