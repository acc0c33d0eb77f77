package storesql

import (
	"context"

	"seckill"
	"seckill/internal/store"
)

var (
	sqlKnownOrders = list{
		head: `SELECT order_no, status FROM tb_seckill_order WHERE order_no IN (`, tail: `)`, columns: 1,
	}
	sqlKnownUnits = list{
		head: `SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = ? AND user_id IN (`, tail: `)`, columns: 1,
	}
)

// facts is what the store knows of a batch's orders, buyers and keys, kept up
// to date as the batch is decided.
type facts struct {
	text   []any // the number of each item, as it stands in the store
	status map[seckill.OrderNo]seckill.OrderStatus
	units  map[string]int64
	keys   map[buyerKey]seckill.OrderNo
}

type buyerKey struct{ buyer, key string }

// readFacts reads them by one query per chunk and kind. Items are of one
// limit group.
func readFacts(ctx context.Context, tx *session, group uint32, items []store.Item) (*facts, error) {
	known := &facts{
		text:   make([]any, len(items)),
		status: make(map[seckill.OrderNo]seckill.OrderStatus, len(items)),
		units:  make(map[string]int64, len(items)),
		keys:   make(map[buyerKey]seckill.OrderNo),
	}
	for i := range items {
		known.text[i] = items[i].Claim.OrderNo.String()
	}
	err := tx.queryRows(ctx, sqlKnownOrders, nil, known.text, func(row scanner) error {
		var no seckill.OrderNo
		var status int64
		err := row.Scan(orderNo{&no}, &status)
		known.status[no] = seckill.OrderStatus(status)
		return err
	})
	if err != nil {
		return nil, err
	}
	buyers, keyed := make([]any, 0, len(items)), make([]any, 0, 2*len(items))
	for i := range items {
		claim := &items[i].Claim
		if _, exists := known.status[claim.OrderNo]; exists {
			continue
		}
		buyers = append(buyers, buyerBytes(claim.Buyer))
		if claim.Key != "" {
			keyed = append(keyed, buyers[len(buyers)-1], claim.Key)
		}
	}
	err = tx.queryRows(ctx, sqlKnownUnits, []any{group}, buyers, func(row scanner) error {
		var buyer string
		var units int64
		err := row.Scan(&buyer, &units)
		known.units[buyer] = units
		return err
	})
	if err != nil {
		return nil, err
	}
	err = tx.queryRows(ctx, tx.dialect.knownKeys, []any{group}, keyed, func(row scanner) error {
		var at buyerKey
		var no seckill.OrderNo
		err := row.Scan(&at.buyer, &at.key, orderNo{&no})
		known.keys[at] = no
		return err
	})
	return known, err
}

// keyTaken reports whether the claim's key belongs to another order.
func (known *facts) keyTaken(claim *seckill.Claim) bool {
	if claim.Key == "" {
		return false
	}
	_, taken := known.keys[buyerKey{claim.Buyer, claim.Key}]
	return taken
}

// add takes a decided order into account for the claims after it.
func (known *facts) add(order *seckill.Order) {
	known.status[order.OrderNo] = order.Status
	if order.Key != "" {
		known.keys[buyerKey{order.Buyer, order.Key}] = order.OrderNo
	}
	if order.Status.Live() {
		known.units[order.Buyer] += int64(order.Quantity)
	}
}
