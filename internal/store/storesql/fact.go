package storesql

import (
	"context"

	"seckill"
	"seckill/internal/store"
)

var (
	sqlKnownOrders = list{
		head: `SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN (`, tail: `)`, columns: 1,
	}
	sqlKnownUnits = list{
		head: `SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = ? AND user_id IN (`, tail: `)`, columns: 1,
	}
)

// facts has what the store knows of a batch's orders, buyers and keys. Each decision in the
// batch updates it.
type facts struct {
	text   []any // the number of each item as text, as in the store
	orders map[seckill.OrderNo]knownOrder
	units  map[string]int64
	keys   map[buyerKey]seckill.OrderNo

	// Parked claims that reserve units while the store is the seller:
	parked   int64                             // their units
	waiting  map[string][]seckill.OrderNo      // by buyer: numbers of parked claims that are not in the request
	lettered map[seckill.OrderNo]seckill.Order // parked claims that are in the request; their own reservation does not count against them
}

type buyerKey struct{ buyer, key string }

type knownOrder struct {
	status seckill.OrderStatus
	origin seckill.Origin
}

// marked reports whether the ledger should have a mark for the order.
func (o knownOrder) marked() bool { return o.origin == seckill.OriginLedger && o.status.Live() }

// emptyFacts returns facts before anything is read.
func emptyFacts(claims []*seckill.Claim) *facts {
	known := &facts{
		text:   make([]any, len(claims)),
		orders: make(map[seckill.OrderNo]knownOrder, len(claims)),
		units:  make(map[string]int64, len(claims)),
		keys:   make(map[buyerKey]seckill.OrderNo),
	}
	for i, claim := range claims {
		known.text[i] = claim.OrderNo.String()
	}
	return known
}

// readFacts reads orders, keys and units, one query per chunk and kind. All claims must be of
// one limit group.
func readFacts(ctx context.Context, tx *session, group uint32, claims []*seckill.Claim) (*facts, error) {
	known := emptyFacts(claims)
	if err := known.readOrders(ctx, tx, known.text); err != nil {
		return nil, err
	}
	buyers, keyed := make([]any, 0, len(claims)), make([]any, 0, 2*len(claims))
	for _, claim := range claims {
		if _, exists := known.orders[claim.OrderNo]; exists {
			continue
		}
		buyers = append(buyers, buyerBytes(claim.Buyer))
		if claim.Key != "" {
			keyed = append(keyed, buyers[len(buyers)-1], claim.Key)
		}
	}
	if err := known.readUnits(ctx, tx, group, buyers); err != nil {
		return nil, err
	}
	err := tx.queryRows(ctx, tx.dialect.knownKeys, []any{group}, keyed, func(row scanner) error {
		var at buyerKey
		var no seckill.OrderNo
		err := row.Scan(&at.buyer, &at.key, orderNo{&no})
		known.keys[at] = no
		return err
	})
	return known, err
}

func (known *facts) readUnits(ctx context.Context, tx *session, group uint32, buyers []any) error {
	return tx.queryRows(ctx, sqlKnownUnits, []any{group}, buyers, func(row scanner) error {
		var buyer string
		var units int64
		err := row.Scan(&buyer, &units)
		known.units[buyer] = units
		return err
	})
}

func (known *facts) readOrders(ctx context.Context, tx *session, nos []any) error {
	return tx.queryRows(ctx, sqlKnownOrders, nil, nos, func(row scanner) error {
		var no seckill.OrderNo
		var order knownOrder
		err := row.Scan(orderNo{&no}, &order.status, &order.origin)
		known.orders[no] = order
		return err
	})
}

func claimsOf(items []store.Item) []*seckill.Claim {
	claims := make([]*seckill.Claim, len(items))
	for i := range items {
		claims[i] = &items[i].Claim
	}
	return claims
}

// keyTaken reports whether the claim's key belongs to another order.
func (known *facts) keyTaken(claim *seckill.Claim) bool {
	if claim.Key == "" {
		return false
	}
	_, taken := known.keys[buyerKey{claim.Buyer, claim.Key}]
	return taken
}

// earlierOrder finds the order with the claim's number or key.
func (known *facts) earlierOrder(claim *seckill.Claim) (no seckill.OrderNo, status seckill.OrderStatus, found bool) {
	if order, exists := known.orders[claim.OrderNo]; exists {
		return claim.OrderNo, order.status, true
	}
	if !known.keyTaken(claim) {
		return no, status, false
	}
	no = known.keys[buyerKey{claim.Buyer, claim.Key}]
	if held, waits := known.lettered[no]; waits {
		return no, held.Status, true
	}
	return no, known.orders[no].status, true
}

// add records a decided order for the claims after it.
func (known *facts) add(order *seckill.Order) {
	known.orders[order.OrderNo] = knownOrder{order.Status, order.Origin}
	known.hold(order)
}

// hold records the key of an order, and its units if it is live.
func (known *facts) hold(order *seckill.Order) {
	if order.Key != "" {
		known.keys[buyerKey{order.Buyer, order.Key}] = order.OrderNo
	}
	if order.Status.Live() {
		known.units[order.Buyer] += int64(order.Quantity)
	}
}

func (known *facts) dropReservation(claim *seckill.Claim) {
	held, waits := known.lettered[claim.OrderNo]
	if !waits {
		return
	}
	delete(known.lettered, claim.OrderNo)
	known.parked -= int64(held.Quantity)
	known.units[held.Buyer] -= int64(held.Quantity)
	if at := (buyerKey{held.Buyer, held.Key}); known.keys[at] == claim.OrderNo {
		delete(known.keys, at)
	}
}
