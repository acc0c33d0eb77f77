package seckill

import "time"

// EventKind names a change that feeds, webhooks and pages read.
type EventKind string

// The events of orders and sales.
const (
	EventOrderConfirmed EventKind = "order.confirmed"
	EventOrderPaid      EventKind = "order.paid"
	EventOrderCancelled EventKind = "order.cancelled"
	EventOrderFailed    EventKind = "order.failed"
	EventOrderRefunded  EventKind = "order.refunded"
	EventOrderExpiring  EventKind = "order.expiring"
	EventSaleStarted    EventKind = "sale.started"
	EventSaleSoldOut    EventKind = "sale.sold_out"
	EventSaleEnded      EventKind = "sale.ended"
)

// Event is one row of the event table, written in the same transaction as the
// change itself. ID grows by one per row and is the feed's cursor.
type Event struct {
	ID          int64
	At          time.Time
	Kind        EventKind
	ProductID   uint32
	OrderNo     OrderNo // zero for events of a sale
	Buyer       string
	Quantity    int
	AmountCents int64
	Currency    string
	Ref         string
	Reason      string
}
