package ledger

import (
	"time"

	"seckill"
)

// ProcessID is 128 random bits, new at each start of a lane and never stored.
type ProcessID [16]byte

// Call numbers a request.
type Call struct {
	Process ProcessID
	Number  uint64 // below 2⁵³
	Seen    uint64 // highest number whose reply the process has received
}

// Request is one numbered call. Without a Write it is an ask.
type Request struct {
	Shard Shard
	Call  Call
	Write Write
}

// Write is what a numbered call does: Reserve, Adopt, Release, StockChange,
// Debit, Credit or Clear.
type Write interface{ write() }

// Reserve takes units for a batch of claims. Each is decided in order, and the verdict is the
// first that holds:
//   - The key is known, or an order with the claim's number is live ► VerdictRepeated with the
//     order number of the key; nothing changes. A key is known from its acceptance or its
//     install until the epoch ends, also after its order was released.
//   - The sale is paused or ended ► VerdictPaused, VerdictEnded.
//   - The buyer's live units in the group + quantity > Limit ► VerdictOverLimit with the
//     buyer's live orders in the group, newest first.
//   - The group remembers MaxReturned dead orders of the buyer by their keys ► VerdictRefused.
//   - The shard has fewer free units than the quantity ► VerdictSoldOut. With several shards
//     the caller must still look at the others and at transfers.
//   - Otherwise ► VerdictAccepted: the units are deducted and the mark is written.
//
// The accepted claims make one outbox entry.
//
// If deciding all items of a Reserve, Adopt or Release would make other calls wait too long, a
// ledger may leave the last items undecided. They are VerdictUndecided, have no effect, and may
// be sent again. The first item is always decided, and so is an item of a buyer of whom at most
// one order is remembered.
type Reserve struct {
	At         time.Time
	PriceCents int64
	Currency   string
	Name       string
	Claims     []seckill.Claim
}

// Adopt reserves claims of an older epoch under their old order numbers. Each claim is decided
// on its own:
//   - Its order is live here already ► VerdictRepeated.
//   - Its key belongs to another order ► VerdictRepeated with that order's number.
//   - Otherwise as in Reserve, but a paused or ended sale and MaxReturned do not refuse it.
//
// The accepted claims make one new outbox entry of the shard's epoch.
type Adopt struct {
	At         time.Time
	PriceCents int64
	Currency   string
	Name       string
	Claims     []seckill.Claim
}

// Release returns the units of dead orders. An order with a live mark is released
// (VerdictReleased), any other is VerdictNotHeld. The caller is done with it in both cases.
// Keys of released orders stay known. The order number alone selects the order; the buyer only
// locates its mark.
type Release struct {
	Orders []ReleaseOrder
}

// ReleaseOrder names one order to release.
type ReleaseOrder struct {
	OrderNo seckill.OrderNo
	Buyer   string
}

// StockChange adds Delta to the shard's free units and to its allotment. A negative delta that
// exceeds the free units is refused as a whole (VerdictRefused). It is applied once per ID and
// epoch. A repeated call returns the first verdict.
type StockChange struct {
	ID    string
	Delta int64
}

// Debit, Credit and Clear are the three steps of a transfer of units from one shard to another
// of the same product and epoch. Any process may send any of them, repeated or late.
//
// Debit goes to the donor. It takes effect only if the donor's last debit towards To is number
// N−1 and has no open record. Then units leave (the free ones, at most Units), and the record
// (N, ID, units) is open. If no unit is free, no record is opened. Result.Transfer is always
// the open record towards To, or the last number with zero units if none is open.
type Debit struct {
	To    int
	N     uint64
	ID    uint64
	Units int64
}

// Credit goes to the receiver with the donor's open record. If N = last credit + 1, the units
// arrive. If N ≤ last, nothing changes. If N > last + 1, the shard closes itself, OutcomeLost.
// Result.Transfer is the receiver's last (number, id).
type Credit struct {
	From  int
	N     uint64
	ID    uint64
	Units int64
}

// Clear goes to the donor with the receiver's answer. If the answer equals the open record, the
// record is cleared. If its number is above the donor's last, or has another id, the shard
// closes itself, OutcomeLost. Any other answer is ignored.
type Clear struct {
	To int
	N  uint64
	ID uint64
}

func (Reserve) write()     {}
func (Adopt) write()       {}
func (Release) write()     {}
func (StockChange) write() {}
func (Debit) write()       {}
func (Credit) write()      {}
func (Clear) write()       {}

// Outcome is the result of a numbered call.
type Outcome uint8

// The outcomes.
const (
	OutcomeApplied Outcome = iota + 1 // the write was applied, or the ask answered
	OutcomeStale
	OutcomeGap
	OutcomeLost
	OutcomeClosed
	OutcomeEpoch
)

// Reply answers a numbered call.
type Reply struct {
	Outcome Outcome
	Epoch   uint64 // the shard's epoch
	Result  Result // if OutcomeApplied of a write
	Kept    []Kept // if OutcomeApplied of an ask
}

// Kept is the result of an earlier number of the same process.
type Kept struct {
	Number uint64
	Result Result
}

// Result is the effect of an applied write.
type Result struct {
	// Verdicts has one verdict per claim or order to release, or one for a stock change.
	Verdicts []Verdict
	// Free is the shard's free units after the write.
	Free int64
	// Transfer is the result of a transfer step.
	Transfer Transfer
}

// Transfer is a transfer between two shards, as one of them records it.
type Transfer struct {
	Peer  int // the other shard
	N     uint64
	ID    uint64
	Units int64
}

// VerdictCode is the ledger's decision on one item.
type VerdictCode uint8

// The verdicts.
const (
	VerdictAccepted VerdictCode = iota + 1
	VerdictRepeated
	VerdictSoldOut
	VerdictOverLimit
	VerdictPaused
	VerdictEnded
	VerdictReleased
	VerdictNotHeld
	VerdictApplied
	VerdictRefused
	VerdictUndecided
)

// Verdict is the decision on one item.
type Verdict struct {
	Code    VerdictCode
	OrderNo seckill.OrderNo   // of VerdictAccepted and VerdictRepeated
	Held    []seckill.OrderNo // of VerdictOverLimit, newest first
}
