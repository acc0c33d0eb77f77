package store

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// Counter sells straight from the store, without a ledger: products of
// strategy direct, and fallback shares while the ledger is down (protocol 5).
type Counter interface {
	// Sell decides a batch of claims of one product in one transaction, in
	// order, with the verdicts of the ledger's Reserve:
	//
	//   - the claim's (buyer, group, key) is known, or its order number ►
	//     VerdictRepeated with the number and status of that order
	//   - the sale is paused or ended ► VerdictPaused, VerdictEnded
	//   - the buyer's live units in the group + quantity > the product's limit ►
	//     VerdictOverLimit with the buyer's live orders in the group, newest first
	//   - fewer units than asked of the stock (OriginDirect) or of the share that
	//     is left (OriginFallback) ► VerdictSoldOut
	//   - else ► VerdictAccepted: a pending order of that origin at the product's
	//     present price, with buyer record, stock log and event, and pay_before =
	//     the store's now + ExpireAfter; a fallback order is also taken off the
	//     share. The last unit of the stock writes sale.sold_out, as in Confirm.
	//
	// Live units and keys are those of the whole limit group, whoever sold them;
	// a claim may be what the next one meets.
	//
	// The ledger is owed nothing for such an order, whatever becomes of it. When
	// it dies its units return to the stock, and a fallback order's to the share
	// too, also after TakeShare, in the transaction that ends it. Only if the
	// ledger was asked for the same order number and its claim is settled after
	// all, by Confirm, Fail or a discard, that one's release is owed.
	//
	// A product that was never preheated, a direct sale of a product that has a
	// ledger, or a fallback sale of one without a share is wrong_state.
	Sell(ctx context.Context, req SellRequest) (SellResult, error)

	// Known decides claims of one product as far as the store knows them, and
	// sells nothing: each gets what Sell would say of it alone, if that is
	// VerdictRepeated or VerdictOverLimit, and else the zero verdict. All are
	// decided on one state of the store. A product that is not there is not_found.
	Known(ctx context.Context, product uint32, claims []seckill.Claim) ([]SellVerdict, error)

	// CounterBuyers hands over the buyers of all orders of the product that Sell
	// has sold, dead ones too: whom a Sell may find repeated or over the limit,
	// though nothing is left. One may come several times. An error of each ends
	// it and is returned.
	CounterBuyers(ctx context.Context, product uint32, each func(buyer string) error) error

	// TakeShare moves what is left of a product's share to the ledger's side: in
	// one transaction the share becomes 0 and an open upward stock change of as
	// many units is recorded under the id, stamped with the product's epoch. It
	// adds nothing to stock and offered. Repeated, it returns what was recorded.
	// With nothing left it records nothing and returns a done change of 0. A
	// product that was never preheated is wrong_state.
	//
	// The change is finished like any upward one (protocol 4): a ledger of a
	// higher epoch has counted the units in its snapshot, for they were
	// allottable by then.
	TakeShare(ctx context.Context, product uint32, changeID string, actor Actor) (StockChange, error)
}

// SellRequest is one transaction of the counter.
type SellRequest struct {
	ProductID   uint32
	Origin      seckill.Origin // OriginDirect or OriginFallback
	Claims      []seckill.Claim
	ExpireAfter time.Duration
}

// SellResult is what became of the claims.
type SellResult struct {
	Verdicts []SellVerdict // one per claim
	// Free is what is left to sell after the step: of the stock, or of the
	// share.
	Free int64
}

// SellVerdict is the counter's decision on one claim.
type SellVerdict struct {
	ledger.Verdict
	// Status is where the order of VerdictAccepted or VerdictRepeated stands.
	Status seckill.OrderStatus
}
