package store

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// DirectSales sells directly from the store: products of strategy direct always, other products
// after a takeover (protocol 5).
type DirectSales interface {
	// Sell decides a batch of claims of one product in one transaction, in order, with the
	// verdicts of the ledger's Reserve. The verdict is the first that holds:
	//   - The (buyer, group, key) or the order number is known ► VerdictRepeated with the
	//     number and status of that order.
	//   - The sale is paused or ended ► VerdictPaused, VerdictEnded.
	//   - The buyer's live units in the group + quantity > the product's limit ►
	//     VerdictOverLimit with the buyer's live orders in the group, newest first.
	//   - The stock, less the units that parked claims of the epoch reserve, is below the
	//     quantity ► VerdictSoldOut.
	//   - Otherwise ► VerdictAccepted: a pending order at the product's present price, with
	//     buyer record, stock log and event, and pay_before = the store's now + ExpireAfter.
	//     The last unit of the stock writes sale.sold_out, as in Confirm.
	//
	// Live units and keys are those of the whole limit group. A parked claim of the epoch
	// counts as a queued order. Each claim sees the results of the claims before it. While the
	// store is the seller, such an order owes the ledger nothing.
	//
	// ErrEpoch if the product's epoch is not the request's. wrong_state if the product was
	// never preheated, if its ledger sells it, or if its takeover is not complete. Nothing is
	// changed then.
	Sell(ctx context.Context, req SellRequest) (SellResult, error)

	// DirectBuyers calls each with the buyers of all orders of a direct product, dead ones
	// too: a Sell may find them repeated or over the limit even if all is sold. A buyer may
	// come several times. An error of each ends the walk and is returned.
	DirectBuyers(ctx context.Context, product uint32, each func(buyer string) error) error
}

// SellRequest is one transaction of DirectSales.
type SellRequest struct {
	ProductID   uint32
	Epoch       uint64 // the epoch that the caller knows
	Claims      []seckill.Claim
	ExpireAfter time.Duration
}

// SellResult has the decisions on the claims.
type SellResult struct {
	Verdicts []SellVerdict // one per claim
	Free     int64         // units left to sell after the transaction
}

// SellVerdict is the decision of Sell on one claim.
type SellVerdict struct {
	ledger.Verdict
	// Status is that of the order, for VerdictAccepted and VerdictRepeated.
	Status seckill.OrderStatus
}
