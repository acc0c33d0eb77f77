package seckill

import (
	"encoding/json"
	"time"
)

// EventKind is the kind of a change that feeds, webhooks and pages read.
type EventKind string

// The events of orders, refunds and sales.
const (
	EventOrderConfirmed  EventKind = "order.confirmed"
	EventOrderPaid       EventKind = "order.paid"
	EventOrderCancelled  EventKind = "order.cancelled"
	EventOrderFailed     EventKind = "order.failed"
	EventOrderRefunded   EventKind = "order.refunded"
	EventOrderExpiring   EventKind = "order.expiring"
	EventRefundRequired  EventKind = "refund.required"
	EventRefundSettled   EventKind = "refund.settled"
	EventSaleCreated     EventKind = "sale.created"
	EventSaleStarted     EventKind = "sale.started"
	EventSaleSoldOut     EventKind = "sale.sold_out"
	EventSaleBackInStock EventKind = "sale.back_in_stock"
	EventSalePaused      EventKind = "sale.paused"
	EventSaleResumed     EventKind = "sale.resumed"
	EventSaleEnded       EventKind = "sale.ended"
)

// Event is one row of the event table, written in the same transaction as its change. IDs grow,
// and are the cursor of the feed.
//
// Buyer, Quantity, AmountCents, Currency and Ref are those of the order. They are empty if
// there is no order: for events of a sale, and for a refund of money that names an unknown
// order.
type Event struct {
	ID          int64
	At          time.Time
	Kind        EventKind
	ProductID   uint32  // 0 for a refund of money whose order number is not ours
	OrderNo     OrderNo // zero for events of a sale, and if ProductID is 0
	Buyer       string
	Quantity    int
	AmountCents int64
	Currency    string
	Ref         string
	Reason      string
	Test        bool // of a test product
	// Data is a JSON object: SaleData for events of a sale, RefundData for those of a refund.
	// Events of an order have none, nor do events from before version 8 of the tables.
	Data json.RawMessage
}

// SaleData is a sale's figures at the time of an event, in units.
//
// Every event has Offered and Stock. Counted is nil in events of a running sale (sold out, back
// in stock, paused, resumed), because counting would read every order while the product is
// locked.
type SaleData struct {
	Offered int64 `json:"offered"`
	Stock   int64 `json:"stock"`
	*Counted
	// ReturnedUnits, in sale.ended only, is the unsold stock, which goes back to the shop.
	// Orders that are still queued take from it when they are confirmed. Orders that are
	// cancelled or refunded later add to it.
	ReturnedUnits *int64 `json:"returned_units,omitempty"`
}

// Counted has the units of a sale's orders, by status.
type Counted struct {
	Pending   int64 `json:"pending"`
	Paid      int64 `json:"paid"`
	Cancelled int64 `json:"cancelled"`
	Failed    int64 `json:"failed"`
	Refunded  int64 `json:"refunded"`
}

// RefundData is the refund of an event.
type RefundData struct {
	ID          string `json:"id"`
	AmountCents int64  `json:"amount_cents"`
	Currency    string `json:"currency"`
	Provider    string `json:"provider"`
	TradeNo     string `json:"trade_no"` // of the payment that the refund returns
	OrderNo     string `json:"order_no"` // as the provider gave it
	Reason      string `json:"reason"`   // late, doubled, wrong_amount, unknown_order or operator
}
