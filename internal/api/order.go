package api

import (
	"seckill"
	"seckill/internal/store"
)

// Order is the JSON of an order for its buyer.
type Order struct {
	OrderNo     string `json:"order_no"`
	ProductID   uint32 `json:"product_id"`
	ProductName string `json:"product_name"`
	Quantity    int    `json:"quantity"`
	AmountCents int64  `json:"amount_cents"`
	Currency    string `json:"currency"`
	Ref         string `json:"ref"`
	Status      string `json:"status"`
	Reason      string `json:"reason"`
	CreatedAt   Time   `json:"created_at"`
	PayBefore   Time   `json:"pay_before"` // null until it is confirmed
	// Link shows the order without a login. Only the buyer gets it, when reading this
	// one order.
	Link string `json:"link,omitempty"`
}

// OrderOf converts an order for its buyer.
func OrderOf(o *seckill.Order) Order {
	return Order{
		OrderNo: o.OrderNo.String(), ProductID: o.ProductID, ProductName: o.ProductName,
		Quantity: o.Quantity, AmountCents: o.AmountCents(), Currency: o.Currency, Ref: o.Ref,
		Status: o.Status.String(), Reason: o.Reason,
		CreatedAt: Time(o.CreatedAt), PayBefore: Time(o.PayBefore),
	}
}

// AdminOrder is the JSON of an order for the operator.
type AdminOrder struct {
	Order
	Buyer      string `json:"buyer"`
	LimitGroup uint32 `json:"limit_group"`
	PriceCents int64  `json:"price_cents"`
	Key        string `json:"key"` // the idempotency key, "" for none
	PaidAt     Time   `json:"paid_at"`
	ClosedAt   Time   `json:"closed_at"` // cancelled, failed or refunded
	Epoch      uint64 `json:"epoch"`
	Shard      int    `json:"shard"`
	Test       bool   `json:"test"` // of a test product
}

// AdminOrderOf converts an order for the operator. test is true for an order of a
// test product.
func AdminOrderOf(o *seckill.Order, test bool) AdminOrder {
	return AdminOrder{
		Order: OrderOf(o), Buyer: o.Buyer, LimitGroup: o.Group, PriceCents: o.PriceCents,
		Key: o.Key, PaidAt: Time(o.PaidAt), ClosedAt: Time(o.ClosedAt), Epoch: o.Epoch, Shard: o.Shard, Test: test,
	}
}

// OrderStory is an order with its history.
type OrderStory struct {
	AdminOrder
	Story []StoryLine `json:"story"`
}

// StoryLine is one line of an order's history.
type StoryLine struct {
	At   Time   `json:"at"`
	Kind string `json:"kind"` // event, payment, letter or stock
	What string `json:"what"`
}

// StoryLineOf converts a line.
func StoryLineOf(line *store.StoryLine) StoryLine {
	return StoryLine{At: Time(line.At), Kind: line.Kind, What: line.What}
}

// Letter is a claim on the retry ladder.
type Letter struct {
	ID         int64  `json:"id"`
	OrderNo    string `json:"order_no"`
	ProductID  uint32 `json:"product_id"`
	Buyer      string `json:"buyer"`
	Quantity   int    `json:"quantity"`
	Ref        string `json:"ref"`
	State      string `json:"state"` // parked or dead
	Attempts   int    `json:"attempts"`
	Reason     string `json:"reason"`
	ReservedAt Time   `json:"reserved_at"`
	NextAt     Time   `json:"next_at"`
	CreatedAt  Time   `json:"created_at"`
	DeadAt     Time   `json:"dead_at"` // null while parked
}

// LetterOf converts a letter. A dead letter has no next retry.
func LetterOf(l *store.Letter) Letter {
	letter := Letter{
		ID: l.ID, OrderNo: l.Item.Claim.OrderNo.String(), ProductID: l.Item.ProductID,
		Buyer: l.Item.Claim.Buyer, Quantity: l.Item.Claim.Quantity, Ref: l.Item.Claim.Ref,
		State: "parked", Attempts: l.Attempts, Reason: l.Reason, ReservedAt: Time(l.Item.At),
		NextAt: Time(l.NextAt), CreatedAt: Time(l.CreatedAt),
	}
	if l.Dead {
		letter.State, letter.NextAt, letter.DeadAt = "dead", Time{}, Time(l.DeadAt)
	}
	return letter
}
