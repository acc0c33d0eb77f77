package seckill

import (
	"time"
	"unicode/utf8"
)

// Bounds of the values that a buyer or shop may send.
const (
	MaxBuyerBytes = 64
	MaxKeyBytes   = 64
	MaxRefBytes   = 128
)

// Claim is one buyer's request for units of one product. Its order number is made before the
// ledger is asked, so that the claim has one identity on its whole way to the store.
type Claim struct {
	OrderNo  OrderNo
	Buyer    string
	Quantity int
	// Key is the idempotency key of the request, or "".
	Key string
	// Ref is the shop's own reference, which orders and events repeat.
	Ref string
}

// Entry is one outbox entry: the claims that one atomic step of the ledger accepted together,
// with all data that the worker needs to make orders. It includes price and name, so that a
// later change does not affect a promised order.
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

// CheckBuyer returns an error unless the text is a valid buyer id: 1 to 64 bytes of UTF-8
// without control characters.
func CheckBuyer(buyer string) error {
	return checkText("buyer", buyer, 1, MaxBuyerBytes)
}

// CheckKey returns an error unless the text is a valid idempotency key. Empty means none.
func CheckKey(key string) error { return checkText("Idempotency-Key", key, 0, MaxKeyBytes) }

// CheckRef returns an error unless the text is a valid order reference of a shop. Empty means
// none.
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
