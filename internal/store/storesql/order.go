package storesql

import (
	"context"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/store"
)

// orderColumns are the columns of an order. A live order that the ledger sold always has its
// product's epoch, so that opening an epoch need not write a million rows. The row gets its own
// epoch when the order dies. That epoch also remains if somebody deletes the product's row.
const orderColumns = `order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin`

const (
	sqlOrder        = `SELECT ` + orderColumns + ` FROM tb_seckill_order WHERE order_no = ?`
	sqlSearchOrders = `SELECT ` + orderColumns + ` FROM tb_seckill_order`
)

var (
	sqlOrdersByNo = list{
		head: `SELECT ` + orderColumns + ` FROM tb_seckill_order WHERE order_no IN (`, tail: `)`, columns: 1,
	}
	sqlPendingUntil = list{
		head: `SELECT product_id, MAX(pay_before) FROM tb_seckill_order WHERE status = 0 AND product_id IN (`,
		tail: `) GROUP BY product_id`, columns: 1,
	}
	sqlInsertOrders = list{
		head: `INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES `,
		columns: 20,
	}
)

func scanOrder(row scanner, o *seckill.Order) error {
	err := row.Scan(orderNo{&o.OrderNo}, &o.Buyer, &o.ProductID, &o.Group, &o.ProductName, &o.PriceCents, &o.Currency,
		&o.Quantity, &o.Ref, text{&o.Key}, &o.Status, &o.Reason, millisTime{&o.CreatedAt}, millisTime{&o.PayBefore},
		millisTime{&o.PaidAt}, millisTime{&o.ClosedAt}, &o.Epoch, &o.Shard, &o.Origin)
	if err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	return nil
}

func readOrder(ctx context.Context, r *session, no string) (seckill.Order, error) {
	order, found, err := selectOne(ctx, r, sqlOrder, []any{no}, scanOrder)
	if err == nil && !found {
		err = seckill.Errorf(seckill.CodeNotFound, "no order %s", no)
	}
	return order, err
}

// owing is the epoch under which a release is owed, and whether one is owed.
type owing struct {
	epoch uint64
	owed  bool
}

// insertArgs appends the row of an order. at is the time since which a release is owed.
func insertArgs(args []any, o *seckill.Order, no string, owes owing, at int64) []any {
	args = append(args, no, buyerBytes(o.Buyer), o.ProductID, o.Group, o.ProductName, o.PriceCents, o.Currency,
		o.Quantity, o.Ref, nullText(o.Key), int64(o.Status), o.Reason, millis(o.CreatedAt), nullMillis(o.PayBefore),
		nullMillis(o.ClosedAt), o.Epoch, o.Shard, int64(o.Origin))
	if owes.owed {
		return append(args, owes.epoch, at)
	}
	return append(args, nil, nil)
}

func (s *Store) Order(ctx context.Context, no seckill.OrderNo) (seckill.Order, error) {
	var o seckill.Order
	err := s.read(ctx, "read order", func(ctx context.Context, r *session) (err error) {
		o, err = readOrder(ctx, r, no.String())
		return err
	})
	return o, err
}

func (s *Store) PendingUntil(ctx context.Context, products []uint32) (map[uint32]time.Time, error) {
	until := make(map[uint32]time.Time)
	err := s.read(ctx, "read the latest pay_before", func(ctx context.Context, r *session) error {
		return r.queryRows(ctx, sqlPendingUntil, nil, anys(products), func(row scanner) error {
			var id uint32
			var at time.Time
			if err := row.Scan(&id, millisTime{&at}); err != nil {
				return fmt.Errorf("read the latest pay_before: %w", err)
			}
			until[id] = at
			return nil
		})
	})
	return until, err
}

func (s *Store) OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error) {
	args := make([]any, len(nos))
	for i, no := range nos {
		args[i] = no.String()
	}
	var orders []seckill.Order
	err := s.read(ctx, "read orders", func(ctx context.Context, r *session) error {
		return r.queryRows(ctx, sqlOrdersByNo, nil, args, appending(&orders, scanOrder))
	})
	return orders, err
}

func (s *Store) SearchOrders(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
	query, args := s.dialect.searchOrders(&filter)
	return listed(ctx, s, "search orders", query, args, scanOrder)
}

// searchOrders returns a search and its arguments. It reads an index in the order of the page,
// or all orders of a buyer, which are few because of the limits.
func (d *dialect) searchOrders(filter *store.OrderFilter) (string, []any) {
	var where conditions
	var index string
	switch {
	case filter.Buyer != "":
		index = "uk_order_key"
	case filter.Ref != "":
		index = "ix_order_ref"
	case filter.ProductID != 0 && filter.Status != nil:
		index = "ix_order_product_status"
	case filter.ProductID != 0:
		index = "ix_order_product"
	case filter.Status != nil:
		index = "ix_order_status"
	}
	if filter.Buyer != "" {
		where.add("user_id = ?", buyerBytes(filter.Buyer))
	}
	if filter.ProductID != 0 {
		where.add("product_id = ?", filter.ProductID)
	}
	if filter.Status != nil {
		where.add("status = ?", int64(*filter.Status))
	}
	if filter.Ref != "" {
		where.add("ref = ? AND ref <> ''", filter.Ref) // the second condition lets SQLite's partial index serve
	}
	if !filter.Before.IsZero() {
		where.add("order_no < ?", filter.Before.String())
	}
	return sqlSearchOrders + d.by(index) + where.text() + " ORDER BY order_no DESC LIMIT ?", where.with(filter.Limit)
}
