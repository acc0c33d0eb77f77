package seckill

import (
	"fmt"
	"time"
)

// OrderStatus is the status of an order. A queued order is not in the store yet: the ledger has
// promised it, and the worker has not confirmed it.
type OrderStatus int8

// The order's states, with the numbers that the store keeps.
const (
	OrderQueued    OrderStatus = -1
	OrderPending   OrderStatus = 0
	OrderPaid      OrderStatus = 1
	OrderCancelled OrderStatus = 2
	OrderFailed    OrderStatus = 3
	OrderRefunded  OrderStatus = 4
)

var orderStatusNames = map[OrderStatus]string{
	OrderQueued: "queued", OrderPending: "pending", OrderPaid: "paid",
	OrderCancelled: "cancelled", OrderFailed: "failed", OrderRefunded: "refunded",
}

func (s OrderStatus) String() string {
	if name, ok := orderStatusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("OrderStatus(%d)", int8(s))
}

// ParseOrderStatus reads a status name.
func ParseOrderStatus(name string) (OrderStatus, error) {
	for status, n := range orderStatusNames {
		if n == name {
			return status, nil
		}
	}
	return 0, Errorf(CodeBadRequest, "unknown order status %q", name)
}

// Live reports whether an order with this status keeps its units and its mark.
func (s OrderStatus) Live() bool {
	return s == OrderQueued || s == OrderPending || s == OrderPaid
}

// Order is a buyer's order. Only the moves below are allowed.
type Order struct {
	OrderNo     OrderNo
	Buyer       string
	ProductID   uint32
	Group       uint32
	ProductName string
	PriceCents  int64 // of one unit
	Currency    string
	Quantity    int
	Ref         string
	Key         string
	Status      OrderStatus
	Reason      string // why it was cancelled or failed, or waits for a retry
	CreatedAt   time.Time
	PayBefore   time.Time // zero while queued
	PaidAt      time.Time
	ClosedAt    time.Time // cancelled, failed or refunded
	Epoch       uint64    // of the product when the order was sold or last restamped; 0 for a direct product
	Shard       int
	Origin      Origin
}

// Origin is the seller of an order, which gets its units back.
type Origin uint8

// The origins, with the numbers that the store keeps.
const (
	OriginLedger Origin = 0 // of a product with a ledger: promised by it, or sold by the store after a takeover
	OriginDirect Origin = 2 // of a product without a ledger
)

// AmountCents returns the amount of one exact payment of the order.
func (o *Order) AmountCents() int64 { return o.PriceCents * int64(o.Quantity) }

func (o *Order) wrongState(move string) error {
	return Errorf(CodeWrongState, "cannot %s an order that is %s", move, o.Status)
}

// Confirm makes a queued order pending: it is in the store, and the buyer's time to pay begins.
func (o *Order) Confirm(now time.Time, expireAfter time.Duration) error {
	if o.Status != OrderQueued {
		return o.wrongState("confirm")
	}
	o.Status, o.PayBefore = OrderPending, now.Add(expireAfter)
	return nil
}

// Pay makes a pending order paid. The caller has compared the amount with AmountCents.
func (o *Order) Pay(now time.Time) error {
	if o.Status != OrderPending {
		return o.wrongState("pay")
	}
	o.Status, o.PaidAt = OrderPaid, now
	return nil
}

// Cancel makes a pending order cancelled: by the buyer, by the operator, or
// because it expired. A paid order is never cancelled (I8).
func (o *Order) Cancel(now time.Time, reason string) error {
	if o.Status != OrderPending {
		return o.wrongState("cancel")
	}
	o.Status, o.ClosedAt, o.Reason = OrderCancelled, now, reason
	return nil
}

// Fail makes a queued order failed, with a reason for the buyer.
func (o *Order) Fail(now time.Time, reason string) error {
	if o.Status != OrderQueued {
		return o.wrongState("fail")
	}
	o.Status, o.ClosedAt, o.Reason = OrderFailed, now, reason
	return nil
}

// Refund makes a paid order refunded, by the operator.
func (o *Order) Refund(now time.Time, reason string) error {
	if o.Status != OrderPaid {
		return o.wrongState("refund")
	}
	o.Status, o.ClosedAt, o.Reason = OrderRefunded, now, reason
	return nil
}

// AsOf returns the order as it was when the event of that kind was written. Orders are read in
// their latest status, but the moves show the earlier one: an order that is refunded now was
// paid when order.paid was written.
//
// Epoch and Shard stay as they are, because recoveries change them without an event. For any
// other kind the order is unchanged, because the kind does not imply a status.
func (o Order) AsOf(kind EventKind) Order {
	switch kind {
	case EventOrderConfirmed, EventOrderExpiring:
		o.Status, o.PaidAt, o.ClosedAt, o.Reason = OrderPending, time.Time{}, time.Time{}, ""
	case EventOrderPaid:
		o.Status, o.ClosedAt, o.Reason = OrderPaid, time.Time{}, ""
	case EventOrderCancelled: // it was never paid (I8)
		o.Status, o.PaidAt = OrderCancelled, time.Time{}
	case EventOrderFailed: // it was never confirmed
		o.Status, o.PaidAt, o.PayBefore = OrderFailed, time.Time{}, time.Time{}
	case EventOrderRefunded:
		o.Status = OrderRefunded
	}
	return o
}

// Reasons of the engine. Pages translate them. Operators may write others.
const (
	ReasonExpired   = "expired"    // not paid in time
	ReasonByBuyer   = "by_buyer"   // cancelled by the buyer
	ReasonLimit     = "limit"      // over the per-buyer limit in the store
	ReasonDuplicate = "duplicate"  // the key belongs to another order
	ReasonLost      = "sold_out"   // adopted too late: no units were left
	ReasonDiscarded = "discarded"  // an operator discarded its letter
	ReasonRetrying  = "retrying"   // waits for a retry; it holds its unit until the ledger is rebuilt
	ReasonDead      = "needs_care" // its letter is dead and waits for the operator
)
