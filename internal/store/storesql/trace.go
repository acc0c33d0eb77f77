package storesql

import (
	"context"

	"seckill"
	"seckill/internal/store"
)

const sqlTraces = `SELECT order_no, user_id, quantity, idem_key, status, origin, limit_group, shard,
	release_epoch IS NULL, release_time IS NULL, pay_before IS NULL FROM tb_seckill_order
	WHERE product_id = ? AND (status NOT IN (2, 3, 4) OR idem_key IS NOT NULL OR release_epoch IS NOT NULL OR release_time IS NOT NULL)`

// WalkOrders hands over what a ledger can know of the product's orders.
func (s *Store) WalkOrders(ctx context.Context, id uint32, each func(store.Trace) error) error {
	return s.snapshot(ctx, "walk orders", func(ctx context.Context, r *session) error {
		p, err := readProduct(ctx, r, id)
		if err != nil {
			return err
		}
		var row tracedRow
		into := []any{
			&row.no, &row.buyer, &row.quantity, text{&row.key}, &row.status, &row.origin, &row.group, &row.shard,
			&row.heard, &row.undue, &row.endless,
		}
		return r.query(ctx, sqlTraces, []any{id}, func(found scanner) error {
			if err := found.Scan(into...); err != nil {
				return err
			}
			return each(row.trace(&p.Product))
		})
	})
}

// tracedRow is what a row says of its order.
type tracedRow struct {
	no, buyer, key string
	quantity       int
	knownOrder
	group   uint32
	shard   int
	heard   bool // no release is owed
	undue   bool // none is due
	endless bool // nothing says until when it may be paid
}

func (row *tracedRow) trace(p *seckill.Product) store.Trace {
	trace := store.Trace{Buyer: row.buyer, Quantity: row.quantity, Key: row.key, Marked: row.marked(), Wrong: row.wrong(p)}
	if no, err := seckill.ParseOrderNo(row.no); err == nil { // else it was altered by hand
		trace.OrderNo = no
	}
	returned := row.status == seckill.OrderCancelled || row.status == seckill.OrderRefunded
	trace.Known = row.origin == seckill.OriginLedger && row.key != "" && returned
	return trace
}

// wrong says what was altered by hand, so that a duty does not find the order,
// or looks for its mark in the wrong place.
func (row *tracedRow) wrong(p *seckill.Product) string {
	switch {
	case row.group != p.Group:
		return "a limit group that is not the product's"
	case row.shard != seckill.HomeShard(p, row.buyer):
		return "a shard that is not its buyer's"
	case row.heard != row.undue:
		return "a release that is owed and not due, or due and not owed"
	case row.status == seckill.OrderPending && row.endless:
		return "no end of its time to pay"
	case row.status > seckill.OrderRefunded:
		return "an unknown status"
	}
	return ""
}
