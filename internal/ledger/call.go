package ledger

import (
	"time"

	"seckill"
)

// ProcessID is 128 random bits per start of a lane, never persisted.
type ProcessID [16]byte

// Call numbers a request.
type Call struct {
	Process ProcessID
	Number  uint64 // below 2⁵³
	Seen    uint64 // highest number whose reply was heard
}

// Request is one numbered call. A nil Write is an ask.
type Request struct {
	Shard Shard
	Call  Call
	Write Write
}

// Write is what a numbered call does: Reserve, Adopt, Release, StockChange,
// Debit, Credit or Clear.
type Write interface{ write() }

// Reserve takes units for a batch of claims, each decided in order:
//
//   - the claim's key is known, or its order number held ► VerdictRepeated
//     with the order number of the key; nothing changes. A key is known from
//     its acceptance, or its install, until the epoch ends, also after its order
//     was released.
//   - the sale is paused or ended ► VerdictPaused, VerdictEnded
//   - the buyer's live units in the group + quantity > Limit ►
//     VerdictOverLimit with the buyer's live orders in the group, newest first
//   - MaxReturned dead orders of the buyer are remembered in the group, by their
//     keys ► VerdictRefused
//   - fewer units free on this shard than asked ► VerdictSoldOut (over many
//     shards the caller still has to look at the others and at transfers)
//   - else ► VerdictAccepted: the units are deducted and the mark is written.
//
// The accepted claims make one outbox entry.
//
// Of Reserve, Adopt and Release a ledger may leave items undecided that come
// behind others, where deciding all would hold up everybody else: those are
// VerdictUndecided, as if they had not been in the call, and may be sent again.
// The first item is always decided, and so is that of a buyer of whom no more
// than one order is remembered.
type Reserve struct {
	At         time.Time
	PriceCents int64
	Currency   string
	Name       string
	Claims     []seckill.Claim
}

// Adopt reserves claims of an older epoch under their old order numbers, each
// on its own: held already ► VerdictRepeated; key of another order ►
// VerdictRepeated with that order's number; else like Reserve, except that a
// paused or ended sale does not refuse, nor MaxReturned. Accepted claims make
// one new outbox entry of the shard's epoch.
type Adopt struct {
	At         time.Time
	PriceCents int64
	Currency   string
	Name       string
	Claims     []seckill.Claim
}

// Release returns the units of dead orders. Only an order that the mark still
// holds is released (VerdictReleased), any other is VerdictNotHeld; both are
// done. Keys of released orders stay known. Never by buyer: always by order
// number, the buyer only tells where to look.
type Release struct {
	Orders []ReleaseOrder
}

// ReleaseOrder names one order to release.
type ReleaseOrder struct {
	OrderNo seckill.OrderNo
	Buyer   string
}

// StockChange adds Delta to the shard's free units and to its allotment. A
// negative delta that exceeds the free units is refused whole
// (VerdictRefused). It is applied once per ID and epoch; repeated, it gives
// the first verdict again.
type StockChange struct {
	ID    string
	Delta int64
}

// Debit, Credit and Clear are the three steps of a transfer of units from one
// shard to another of the same product and epoch. All may be repeated, late,
// or done by anybody.
//
// Debit is sent to the donor. Only if its last debit towards To is number N−1
// and no record is open: units leave (as many as are free, at most Units), and
// the record (N, ID, units) is open; with nothing free, none is opened.
// Always, Result.Transfer is the open record towards To, or the last number
// with zero units when none is open.
type Debit struct {
	To    int
	N     uint64
	ID    uint64
	Units int64
}

// Credit is sent to the receiver with what the donor's open record says.
// N = last credit + 1 ► the units arrive; N ≤ last ► no change; N > last+1 ►
// the shard closes itself, OutcomeLost. Result.Transfer is the receiver's
// last (number, id).
type Credit struct {
	From  int
	N     uint64
	ID    uint64
	Units int64
}

// Clear is sent to the donor with what the receiver said. It equals the open
// record ► cleared; a number above the donor's last, or the same number under
// another id ► the shard closes itself, OutcomeLost; else ignored.
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

// Outcome is how a numbered call ended.
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
	Epoch   uint64 // the epoch that the shard has
	Result  Result // with OutcomeApplied of a write
	Kept    []Kept // with OutcomeApplied of an ask
}

// Kept is the verdict of an earlier number of the same process.
type Kept struct {
	Number uint64
	Result Result
}

// Result is what an applied write did.
type Result struct {
	// Verdicts has one per claim, per order to release, or one for a stock
	// change.
	Verdicts []Verdict
	// Free is the shard's free units after the step.
	Free int64
	// Transfer is the result of a transfer step.
	Transfer Transfer
}

// Transfer is one end's view of a transfer between two shards.
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
