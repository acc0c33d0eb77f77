package api

import (
	"encoding/json"

	"seckill"
	"seckill/internal/store"
)

// EventVersion is the version of the event envelope.
const EventVersion = 1

// Event is the JSON of an event in the operator's feed and in streams. The fields of
// an order are absent if the event has no order. Sinks send EventData in a
// CloudEvents envelope instead.
type Event struct {
	V           int               `json:"v"`
	ID          int64             `json:"id"` // grows; the feed's cursor
	At          Time              `json:"at"`
	Event       seckill.EventKind `json:"event"`
	ProductID   uint32            `json:"product_id"`
	OrderNo     string            `json:"order_no,omitempty"`
	Buyer       string            `json:"buyer,omitempty"`
	Quantity    int               `json:"quantity,omitempty"`
	AmountCents *int64            `json:"amount_cents,omitempty"` // 0 is an amount too
	Currency    string            `json:"currency,omitempty"`
	Ref         string            `json:"ref,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Test        bool              `json:"test,omitempty"` // of a test product
	Data        json.RawMessage   `json:"data,omitempty"` // seckill.SaleData or seckill.RefundData
}

// EventOf converts an event.
func EventOf(e *seckill.Event) Event {
	event := Event{
		V: EventVersion, ID: e.ID, At: Time(e.At), Event: e.Kind, ProductID: e.ProductID,
		OrderNo: e.OrderNo.String(), Buyer: e.Buyer, Quantity: e.Quantity,
		Currency: e.Currency, Ref: e.Ref, Reason: e.Reason, Test: e.Test, Data: e.Data,
	}
	if e.Quantity > 0 { // the order is known
		event.AmountCents = &e.AmountCents
	}
	return event
}

// Payment is one movement of money.
type Payment struct {
	ID          string `json:"id"`
	Type        string `json:"type"` // payment or refund
	OrderNo     string `json:"order_no"`
	Provider    string `json:"provider"`
	TradeNo     string `json:"trade_no"`
	AmountCents int64  `json:"amount_cents"`
	Currency    string `json:"currency"`
	Status      string `json:"status"`
	Reason      string `json:"reason"`
	PaymentID   string `json:"payment_id"` // of a refund: the payment that it returns
	Attempts    int    `json:"attempts"`
	CreatedAt   Time   `json:"created_at"`
	DoneAt      Time   `json:"done_at"`
}

// PaymentOf converts a movement of money.
func PaymentOf(p *store.Payment) Payment {
	return Payment{
		ID: p.ID, Type: p.Type, OrderNo: p.OrderNo, Provider: p.Provider, TradeNo: p.TradeNo,
		AmountCents: p.AmountCents, Currency: p.Currency, Status: p.Status, Reason: p.Reason,
		PaymentID: p.PaymentID, Attempts: p.Attempts,
		CreatedAt: Time(p.CreatedAt), DoneAt: Time(p.DoneAt),
	}
}

// Audit is one line of the audit log.
type Audit struct {
	ID        int64  `json:"id"`
	At        Time   `json:"at"`
	Actor     string `json:"actor"`
	Action    string `json:"action"`
	ProductID uint32 `json:"product_id,omitempty"`
	OrderNo   string `json:"order_no,omitempty"`
	Reason    string `json:"reason"`
	Detail    string `json:"detail"`
}

// AuditOf converts a line.
func AuditOf(line *store.AuditLine) Audit {
	return Audit{
		ID: line.ID, At: Time(line.At), Actor: line.Actor, Action: line.Action,
		ProductID: line.ProductID, OrderNo: line.OrderNo, Reason: line.Reason, Detail: line.Detail,
	}
}

// StockChange is an operator change of stock.
type StockChange struct {
	ChangeID  string `json:"change_id"`
	ProductID uint32 `json:"product_id"`
	Delta     int64  `json:"delta"`
	Status    string `json:"status"` // open until the ledger has the change, then done
	CreatedAt Time   `json:"created_at"`
}

// StockChangeOf converts a change.
func StockChangeOf(c *store.StockChange) StockChange {
	return StockChange{
		ChangeID: c.ID, ProductID: c.ProductID, Delta: c.Delta, Status: string(c.Status),
		CreatedAt: Time(c.CreatedAt),
	}
}
