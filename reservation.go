package seckill

import (
	"time"
	"unicode/utf8"
)

// Bounds of what a shopper or shop may send.
const (
	MaxBuyerBytes = 64
	MaxKeyBytes   = 64
	MaxRefBytes   = 128
)

// Claim is one buyer's request for units of one product. The order number is
// made before the ledger is asked, so that a claim has one identity on the
// whole way to the store.
type Claim struct {
	OrderNo  OrderNo
	Buyer    string
	Quantity int
	// Key is the idempotency key under which the buyer asked; empty for none.
	Key string
	// Ref is the shop's own reference, echoed in orders and events.
	Ref string
}

// Entry is one outbox entry: the claims that one atomic step of the ledger
// accepted together, with all that the worker needs to make orders of them.
// Price and name stand here, so that a later change does not touch a promised
// order.
type Entry struct {
	ProductID  uint32
	Group      uint32 // limit group
	Shard      int
	Epoch      uint64
	At         time.Time // of the reservation, by the ledger's clock
	PriceCents int64
	Currency   string
	Name       string
	Limit      int // per buyer, over the group
	Claims     []Claim
}

// CheckBuyer reports whether a buyer id is one: 1 to 64 bytes of UTF-8
// without control characters.
func CheckBuyer(buyer string) error {
	return checkText("buyer", buyer, 1, MaxBuyerBytes)
}

// CheckKey reports whether an idempotency key is one; empty means none.
func CheckKey(key string) error { return checkText("Idempotency-Key", key, 0, MaxKeyBytes) }

// CheckRef reports whether a shop's order reference is one; empty means none.
func CheckRef(ref string) error { return checkText("ref", ref, 0, MaxRefBytes) }

func checkText(field, text string, least, most int) error {
	if len(text) < least || len(text) > most {
		return Errorf(CodeBadRequest, "%s must have %d to %d bytes", field, least, most)
	}
	if !utf8.ValidString(text) {
		return Errorf(CodeBadRequest, "%s must be UTF-8", field)
	}
	for _, r := range text {
		if r < 0x20 || r >= 0x7F && r < 0xA0 {
			return Errorf(CodeBadRequest, "%s must not have control characters", field)
		}
	}
	return nil
}
