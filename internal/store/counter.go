package store

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// Counter sells straight from the store: products of strategy direct always, and
// others after a takeover (protocol 5).
type Counter interface {
	// Sell decides a batch of claims of one product in one transaction, in
	// order, with the verdicts of the ledger's Reserve:
	//
	//   - the claim's (buyer, group, key) is known, or its order number ►
	//     VerdictRepeated with the number and status of that order
	//   - the sale is paused or ended ► VerdictPaused, VerdictEnded
	//   - the buyer's live units in the group + quantity > the product's limit ►
	//     VerdictOverLimit with the buyer's live orders in the group, newest first
	//   - fewer units than asked of the stock, without those that parked claims
	//     of the epoch hold ► VerdictSoldOut
	//   - else ► VerdictAccepted: a pending order at the product's present price,
	//     with buyer record, stock log and event, and pay_before = the store's now
	//     + ExpireAfter. The last unit of the stock writes sale.sold_out, as in
	//     Confirm.
	//
	// Live units and keys are those of the whole limit group; a parked claim of
	// the epoch counts as an order that is queued; a claim may be what the next one
	// meets. The ledger is owed nothing for such an order while the store is the
	// seller.
	//
	// If the product's epoch is not the request's: ErrEpoch. A product that was
	// never preheated, that its ledger sells, or whose takeover is not complete is
	// wrong_state. Nothing is changed then.
	Sell(ctx context.Context, req SellRequest) (SellResult, error)

	// CounterBuyers hands over the buyers of all orders of a direct product, dead
	// ones too: whom a Sell may find repeated or over the limit, though nothing is
	// left. One may come several times. An error of each ends it and is returned.
	CounterBuyers(ctx context.Context, product uint32, each func(buyer string) error) error
}

// SellRequest is one transaction of the counter.
type SellRequest struct {
	ProductID   uint32
	Epoch       uint64 // that the caller saw
	Claims      []seckill.Claim
	ExpireAfter time.Duration
}

// SellResult is what became of the claims.
type SellResult struct {
	Verdicts []SellVerdict // one per claim
	Free     int64         // what is left to sell after the step
}

// SellVerdict is the counter's decision on one claim.
type SellVerdict struct {
	ledger.Verdict
	// Status is where the order of VerdictAccepted or VerdictRepeated stands.
	Status seckill.OrderStatus
}
