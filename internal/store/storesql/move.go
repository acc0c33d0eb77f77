package storesql

import (
	"context"
	"slices"
	"time"

	"seckill"
	"seckill/internal/store"
)

const (
	// Due orders are processed in any order. Without ORDER BY the query ends at its limit,
	// however many are due.
	sqlDueOrders = `SELECT product_id, order_no FROM tb_seckill_order
		WHERE status = 0 AND warned IN (0, 1) AND pay_before <= ? AND `
	sqlOrdersToWarn = `SELECT ` + orderColumns + ` FROM tb_seckill_order
		WHERE status = 0 AND warned = 0 AND pay_before > ? AND pay_before < ? ORDER BY pay_before LIMIT ?`
)

var (
	sqlCloseOrders = list{
		head: `UPDATE tb_seckill_order SET status = ?, reason = ?, cancel_time = ?, epoch = ?, release_epoch = ?, release_time = ?
			WHERE status = ? AND order_no IN (`,
		tail: `)`, columns: 1,
	}
	// sqlCloseSold closes orders while the store is the seller: no release is owed then.
	sqlCloseSold = list{
		head: `UPDATE tb_seckill_order SET status = ?, reason = ?, cancel_time = ? WHERE status = ? AND order_no IN (`,
		tail: `)`, columns: 1,
	}
	sqlDropBuyers = list{
		head: `DELETE FROM tb_user_seckill WHERE quantity <= 0 AND product_id = ? AND user_id IN (`, tail: `)`, columns: 1,
	}
	// sqlNewestOrders sets the order number of the remaining buyer records to a live order.
	sqlNewestOrders = list{
		head: `UPDATE tb_user_seckill SET order_no = COALESCE((SELECT MAX(o.order_no) FROM tb_seckill_order o
			WHERE o.user_id = tb_user_seckill.user_id AND o.limit_group = tb_user_seckill.product_id AND o.status IN (0, 1)), order_no)
			WHERE product_id = ? AND user_id IN (`,
		tail: `)`, columns: 1,
	}
	// The database must not scan ix_order_due, all pending orders, for each list of numbers.
	// Adding 0 prevents that.
	sqlDueAmong = list{
		head: `SELECT product_id, order_no FROM tb_seckill_order WHERE status + 0 = 0 AND pay_before + 0 <= ? AND order_no IN (`,
		tail: `)`, columns: 1,
	}
	sqlWarned = list{head: `UPDATE tb_seckill_order SET warned = 1 WHERE status + 0 = 0 AND warned + 0 = 0 AND order_no IN (`, tail: `)`, columns: 1}
)

// returnUnits writes orders of one product as closed. All must have moved alike from the status
// from. Their units return to stock and leave the buyer records. If the ledger is the seller,
// the releases are owed under the product's epoch.
func (s *Store) returnUnits(ctx context.Context, tx *session, from seckill.OrderStatus, orders []seckill.Order, kind seckill.EventKind, now time.Time) error {
	p, err := s.lockToChange(ctx, tx, orders[0].ProductID)
	if err != nil {
		return err
	}
	moves := make([]stockMove, len(orders))
	buyers := make([]any, len(orders))
	var nos []any
	var returned int64
	records := make([]any, 0, len(orders)*tx.dialect.addUnits.columns)
	for i := range orders {
		o := &orders[i]
		n := int64(o.Quantity)
		no := any(o.OrderNo.String())
		buyers[i] = buyerBytes(o.Buyer)
		moves[i] = stockMove{orderNo: no, quantity: n, delta: n}
		records = append(records, p.Group, buyers[i], no, -n)
		nos = append(nos, no)
		returned += n
	}
	closed, err := closeOrders(ctx, tx, &p, from, &orders[0], nos, now)
	if err != nil {
		return err
	}
	if closed != int64(len(orders)) {
		return errVersion // one of them was moved since it was read
	}
	soldOut, err := wasSoldOut(ctx, tx, &p)
	if err != nil {
		return err
	}
	if err := moveStock(ctx, tx, &p, logReturned, moves, 0, now); err != nil {
		return err
	}
	if err := subtractUnits(ctx, tx, p.Group, records, buyers); err != nil {
		return err
	}
	if err := writeOrderEvents(ctx, tx, kind, orders, now); err != nil {
		return err
	}
	if soldOut {
		if err := writeSaleEvent(ctx, tx, &p, seckill.EventSaleBackInStock, now); err != nil {
			return err
		}
	}
	return countUnits(ctx, tx, p.ID, units{from, -returned}, units{orders[0].Status, returned})
}

// closeOrders writes the state of to into those of the orders that still have status from, and
// returns their number.
func closeOrders(ctx context.Context, tx *session, p *productRow, from seckill.OrderStatus, to *seckill.Order, nos []any, now time.Time) (int64, error) {
	at := millis(now)
	if p.SoldByStore() {
		return tx.execRows(ctx, sqlCloseSold, []any{int64(to.Status), to.Reason, at, int64(from)}, nos)
	}
	return tx.execRows(ctx, sqlCloseOrders, []any{int64(to.Status), to.Reason, at, p.Epoch, p.Epoch, at, int64(from)}, nos)
}

// subtractUnits subtracts units from buyer records. units are rows of addUnits with negative
// quantities.
func subtractUnits(ctx context.Context, tx *session, group uint32, units, buyers []any) error {
	if _, err := tx.execRows(ctx, tx.dialect.addUnits, nil, units); err != nil {
		return err
	}
	if _, err := tx.execRows(ctx, sqlDropBuyers, []any{group}, buyers); err != nil {
		return err
	}
	_, err := tx.execRows(ctx, sqlNewestOrders, []any{group}, buyers)
	return err
}

func (s *Store) Cancel(ctx context.Context, no seckill.OrderNo, reason string, actor store.Actor) (seckill.Order, error) {
	return changed(ctx, s, "cancel", func(ctx context.Context, tx *session) (seckill.Order, error) {
		order, err := readOrder(ctx, tx, no.String())
		if err != nil {
			return order, err
		}
		now, from := s.now(), order.Status
		if err := order.Cancel(now, reason); err != nil {
			return order, err
		}
		if err := s.returnUnits(ctx, tx, from, []seckill.Order{order}, seckill.EventOrderCancelled, now); err != nil {
			return order, err
		}
		return order, writeAudit(ctx, tx, now, actor, "order.cancel", order.ProductID, no.String(), reason)
	})
}

func (s *Store) Refund(ctx context.Context, no seckill.OrderNo, actor store.Actor) (seckill.Order, error) {
	return changed(ctx, s, "refund", func(ctx context.Context, tx *session) (seckill.Order, error) {
		order, err := readOrder(ctx, tx, no.String())
		if err != nil {
			return order, err
		}
		now, from := s.now(), order.Status
		if err := order.Refund(now, actor.Reason); err != nil {
			return order, err
		}
		if err := s.returnUnits(ctx, tx, from, []seckill.Order{order}, seckill.EventOrderRefunded, now); err != nil {
			return order, err
		}
		if err := s.oweApplied(ctx, tx, no.String(), now); err != nil {
			return order, err
		}
		detail := amount(order.AmountCents(), order.Currency)
		return order, writeAudit(ctx, tx, now, actor, "order.refund", order.ProductID, no.String(), detail)
	})
}

func (s *Store) Expire(ctx context.Context, limit int) ([]seckill.Order, error) {
	return s.expireListed(ctx, s.dueOrders, limit)
}

func (s *Store) ExpireOrders(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error) {
	sorted := slices.SortedFunc(slices.Values(nos), seckill.NewestFirst)
	sorted = slices.Compact(sorted) // a number given twice would be cancelled twice
	args := make([]any, len(sorted))
	for i, no := range sorted {
		args[i] = no.String()
	}
	list := func(ctx context.Context, except []uint32, _ int) (found []dueRow[string], err error) {
		err = s.read(ctx, "read orders to expire", func(ctx context.Context, r *session) error {
			found = nil
			return r.queryRows(ctx, sqlDueAmong, []any{millis(s.now())}, args, appending(&found, scanDue))
		})
		return slices.DeleteFunc(found, func(d dueRow[string]) bool { return slices.Contains(except, d.product) }), err
	}
	return s.expireListed(ctx, list, len(sorted))
}

// expireListed cancels at most limit orders that list returns.
func (s *Store) expireListed(ctx context.Context, list func(ctx context.Context, except []uint32, room int) ([]dueRow[string], error), limit int) ([]seckill.Order, error) {
	var expired []seckill.Order
	err := settleDue(ctx, s, &due[string]{
		table: "tb_seckill_order",
		list:  list,
		settle: func(ctx context.Context, product uint32, nos []string) error {
			cancelled, err := s.expire(ctx, product, nos)
			expired = append(expired, cancelled...)
			return err
		},
	}, limit)
	return expired, err
}

// dueOrders lists pending orders whose pay_before has passed.
func (s *Store) dueOrders(ctx context.Context, except []uint32, limit int) ([]dueRow[string], error) {
	others := exceptProducts(except)
	args := concat([]any{millis(s.now())}, others.with(limit))
	return listed(ctx, s, "list due orders", sqlDueOrders+others.text()+" LIMIT ?", args, scanDue[string])
}

// expire cancels the listed orders of a product that are still due.
func (s *Store) expire(ctx context.Context, product uint32, listed []string) ([]seckill.Order, error) {
	nos := make([]any, len(listed))
	for i := range listed {
		nos[i] = listed[i]
	}
	return changed(ctx, s, "expire", func(ctx context.Context, tx *session) (expired []seckill.Order, err error) {
		now := s.now()
		if _, err := lockProduct(ctx, tx, product); err != nil {
			return nil, err
		}
		if err := tx.queryRows(ctx, sqlOrdersByNo, nil, nos, appending(&expired, scanOrder)); err != nil {
			return nil, err
		}
		expired = slices.DeleteFunc(expired, func(o seckill.Order) bool {
			return o.Status != seckill.OrderPending || o.PayBefore.After(now)
		})
		if len(expired) == 0 {
			return nil, nil // other transactions moved all of them
		}
		for i := range expired {
			if err := expired[i].Cancel(now, seckill.ReasonExpired); err != nil {
				return nil, err
			}
		}
		return expired, s.returnUnits(ctx, tx, seckill.OrderPending, expired, seckill.EventOrderCancelled, now)
	})
}

func (s *Store) WarnExpiring(ctx context.Context, lead time.Duration, limit int) (int, error) {
	return changed(ctx, s, "warn", func(ctx context.Context, tx *session) (int, error) {
		now := s.now()
		soon, err := selectAll(ctx, tx, sqlOrdersToWarn, []any{millis(now), millis(now.Add(lead)), limit}, scanOrder)
		if err != nil {
			return 0, err
		}
		nos := make([]any, len(soon))
		for i := range soon {
			nos[i] = soon[i].OrderNo.String()
		}
		warned, err := tx.execRows(ctx, sqlWarned, nil, nos)
		if err != nil {
			return 0, err
		}
		if warned != int64(len(soon)) {
			return 0, errVersion // another transaction moved one of them
		}
		return len(soon), writeOrderEvents(ctx, tx, seckill.EventOrderExpiring, soon, now)
	})
}
