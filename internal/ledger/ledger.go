// Package ledger is the port of stage ④: the ledger decides every purchase.
//
// A product's stock lives in the ledger as an allotment, split over one or
// more shards. A buyer has one home shard (seckill.HomeShard); the buyer's
// marks, what the ledger remembers of live orders and keys, belong to the
// limit group and stand beside the shard of the same index, so that products
// of one group share one limit.
//
// The package also holds what is the same for every adapter: the Lane, which
// numbers a process's calls and settles lost replies by asking.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"seckill"
)

// Ledger is the port. An adapter is done when it passes ledgertest.
//
// # Numbered calls
//
// Every write goes through Do and is numbered: a process takes its next
// number for a shard, sends it once, and carries the highest number whose
// reply it has heard. Per shard, epoch and process the ledger keeps a record
// {last, kept verdicts}, and answers in this order:
//
//  1. the shard is of another epoch, or unknown ► OutcomeEpoch with the epoch
//     that is there (0 for none); nothing changes.
//  2. the shard is closed ► OutcomeClosed; nothing changes.
//  3. Seen > last ► the shard closes itself, OutcomeLost: the ledger has
//     forgotten something that the process heard.
//  4. kept verdicts ≤ Seen are dropped. Number ≤ last ► OutcomeStale.
//  5. a write with Number ≠ last+1 ► OutcomeGap, no change.
//  6. a write ► applied, last = Number, its Result is kept.
//  7. an ask (Write == nil) ► last = Number, and the kept verdicts are
//     returned. A number that is not among them never happened and never will.
//
// An error that wraps ErrNotExecuted means that the call changed nothing, not
// even the record: the same number may be sent again. After any other error
// the outcome is unknown and the process must ask.
//
// A call carries at most MaxClaims claims or orders to release. One with more,
// or with what no ledger could keep, is the caller's mistake: its error wraps
// ErrBadCall beside ErrNotExecuted.
//
// # Durability
//
// A reply leaves only after all that it says, and all that it was decided
// upon, is as durable as the adapter's settings make anything (I4).
//
// # Outbox
//
// What Reserve and Adopt accept is written, in the same atomic step, as one
// entry of the outbox, which the queue port delivers. There is no instant at
// which stock is gone and the order unrecorded.
//
// Methods are safe for concurrent use and return within their context's
// deadline.
type Ledger interface {
	// Do performs one numbered call.
	Do(ctx context.Context, req Request) (Reply, error)

	// Heartbeat tells, without a number, what each lane has heard, and returns
	// an outcome per beat: OutcomeEpoch, OutcomeClosed, OutcomeLost (the shard
	// closes itself) or OutcomeApplied when all is well. With an error, it
	// returns the outcomes that it did hear, and zero for every other, or none.
	Heartbeat(ctx context.Context, beats []Beat) ([]Outcome, error)

	// Install replaces the product's figures and marks on one shard by those of
	// a new epoch, closed. It does so only over a lower epoch: over the same or
	// a higher one it changes nothing and returns the epoch that is there. It
	// never touches the outbox, nor marks of other products of the group. It is
	// atomic: a call that fails leaves the shard as it was, or closed. In a
	// ledger that is Inspecting, an epoch more than MaxEpochLead above the new
	// one is damage, and is replaced.
	Install(ctx context.Context, a Allotment, marks iter.Seq2[Mark, error]) (epoch uint64, err error)

	// Open opens the shard if it is of exactly this epoch, and reports whether
	// it is. Close closes it if it is of this epoch or a lower one.
	Open(ctx context.Context, shard Shard) (bool, error)
	Close(ctx context.Context, shard Shard) error

	// SetState pauses, resumes or ends the sale on the shard if it is of
	// exactly this epoch, and reports whether it is. A Reserve that is applied
	// after SetState returned meets the new state, on every instance.
	//
	// Version is the product's in the store when it had this state. A call whose
	// version is below that of one that the shard has heard in this epoch changes
	// nothing: it was held up on its way, and would undo a later word.
	SetState(ctx context.Context, shard Shard, state seckill.SaleState, version uint64) (bool, error)

	// Read reads one shard atomically. Shard.Epoch is ignored. A shard that was
	// never installed reads as the zero Figures.
	Read(ctx context.Context, shard Shard) (Figures, error)

	// Held lists what the buyer's mark holds for the product on the shard, live
	// orders only, newest first. Shard.Epoch is ignored.
	Held(ctx context.Context, shard Shard, buyer string) ([]Holding, error)

	// Now is the ledger's clock, which sale windows follow.
	Now(ctx context.Context) (time.Time, error)
}

// Auditing is a ledger whose marks outsiders can tamper with, and that can count
// them.
type Auditing interface {
	// Audit counts the product's live orders in the marks of a shard, while
	// others are served. Shard.Epoch is ignored.
	Audit(ctx context.Context, shard Shard) (Audit, error)
}

// Bound is a ledger that belongs to one store and that outsiders can give to
// another while it is used: they empty it, and who comes first has it.
//
// Once another store has it, no method of the ledger, nor of its queue, reads
// or changes a sale of that store; it fails with ErrOtherStore instead.
type Bound interface {
	// CheckStore fails with ErrOtherStore if the ledger is another store's. One
	// that is nobody's is no error: it will be this store's.
	CheckStore(ctx context.Context) error
	// Rebind makes a ledger that is nobody's this store's, with whatever a former
	// owner has left in it, and fails with ErrOtherStore if it is another's.
	Rebind(ctx context.Context) error
}

// ErrOtherStore says that the ledger belongs to another store. Two stores on
// one ledger would confirm each other's orders and rebuild each other's
// products.
var ErrOtherStore = errors.New("the ledger belongs to another store")

// CheckStore asks a ledger whether it still is its store's; nil for one that
// nobody could take away.
func CheckStore(ctx context.Context, l Ledger) error {
	if bound, ok := l.(Bound); ok {
		return bound.CheckStore(ctx)
	}
	return nil
}

// Rebind makes a ledger this store's that has lost its owner; nil for one that
// nobody could take away.
func Rebind(ctx context.Context, l Ledger) error {
	if bound, ok := l.(Bound); ok {
		return bound.Rebind(ctx)
	}
	return nil
}

// Audit is what the marks of a shard hold of a product, and what the shard's
// figures say that they hold.
type Audit struct {
	// Steady is false, and the rest without meaning, when orders came or went
	// meanwhile, or there are more marks than the ledger counts.
	Steady        bool
	Units, Orders int64 // counted in the marks
	Marked, Live  int64 // units and orders as the figures have them
}

// Inspecting is a ledger in whose place outsiders can put something else, and
// that can tell.
type Inspecting interface {
	// Sound reports whether what a shard is kept in, beside the figures that Read
	// reads, can be used, and whether those balance. One that is not sound is to
	// be recovered, which mends it. Shard.Epoch is ignored.
	Sound(ctx context.Context, shard Shard) (bool, error)
}

// ErrDamaged says that something is in the ledger's place that no ledger wrote.
// The products concerned are to be recovered.
var ErrDamaged = errors.New("the ledger is damaged")

// ErrNotExecuted says that the ledger refused or failed the call before it
// changed anything.
var ErrNotExecuted = errors.New("ledger did not execute the call")

// ErrBadCall says that the call itself is at fault, whatever the ledger's
// condition: sent again as it is, it is refused again.
var ErrBadCall = errors.New("bad call")

// MaxClaims bounds the claims of one Reserve or Adopt and the orders of one
// Release: a step holds up everybody else on its shard, and one of so many is
// still a matter of milliseconds.
const MaxClaims = 2048

// MaxEpochLead is how far a shard's epoch may be above its store's and still be
// taken for one that a ledger wrote: a store that was set back is behind by as
// many rebuilds as it has lost. What is further above was written by hand.
// Even one that goes up by so much at a time needs 8,192 steps to where float64,
// in which scripts count, tells no epoch from the next.
const MaxEpochLead = 1 << 40

// CheckClaims refuses a step of so many claims or orders if it is too large.
func CheckClaims(n int) error {
	if n > MaxClaims {
		return fmt.Errorf("%w: %d claims, at most %d fit", ErrBadCall, n, MaxClaims)
	}
	return nil
}

// Shard names one shard of one product at one epoch.
type Shard struct {
	Product uint32
	Group   uint32
	Index   int
	Epoch   uint64
}

// ShardOf is a shard of a product at the epoch of its terms.
func ShardOf(p *seckill.Product, index int) Shard {
	return Shard{Product: p.ID, Group: p.Group, Index: index, Epoch: p.Epoch}
}

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
//     its acceptance until the epoch ends, also after its order was released.
//   - the sale is paused or ended ► VerdictPaused, VerdictEnded
//   - a ledger may bound the orders and keys that it remembers of one buyer, to
//     2,048 or more: a new claim beyond it ► VerdictRefused
//   - the buyer's live units in the group + quantity > Limit ►
//     VerdictOverLimit with the buyer's live orders in the group, newest first
//   - fewer units free on this shard than asked ► VerdictSoldOut (over many
//     shards the caller still has to look at the others and at transfers)
//   - else ► VerdictAccepted: the units are deducted and the mark is written.
//
// The accepted claims make one outbox entry.
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
// paused or ended sale does not refuse, nor a bound of what is remembered.
// Accepted claims make one new outbox
// entry of the shard's epoch.
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
)

// Verdict is the decision on one item.
type Verdict struct {
	Code    VerdictCode
	OrderNo seckill.OrderNo   // of VerdictAccepted and VerdictRepeated
	Held    []seckill.OrderNo // of VerdictOverLimit, newest first
}

// Beat is what one lane tells by heartbeat.
type Beat struct {
	Shard   Shard
	Process ProcessID
	Seen    uint64
}

// Allotment is what Install hands to a shard.
type Allotment struct {
	Shard Shard // with the new epoch
	// Available is the free units. The shard's allotted units are these plus
	// the units of the marks.
	Available int64
	Limit     int
	State     seckill.SaleState
}

// Mark is one live order that Install carries into the new epoch. A mark
// whose buyer's home is another shard is the caller's mistake.
type Mark struct {
	Buyer    string
	OrderNo  seckill.OrderNo
	Quantity int
	Key      string
}

// Holding is one live order in a buyer's mark. Entry is the outbox entry that
// carries it, with this claim alone, while the entry is not acknowledged;
// ProductID 0 when there is none.
type Holding struct {
	OrderNo  seckill.OrderNo
	Quantity int
	Key      string
	Entry    seckill.Entry
}

// Figures are one shard's numbers at one instant. In every state of a healthy
// shard: Available + Marked = Allotted + Received − Sent.
type Figures struct {
	Epoch     uint64
	Open      bool
	State     seckill.SaleState
	Limit     int
	Allotted  int64 // units installed plus stock changes
	Available int64
	Marked    int64 // units of live marks of this product
	Orders    int64 // live orders of this product
	Sent      int64
	Received  int64
	Releases  uint64     // grows with every release that returned units
	Out       []Transfer // open records towards other shards
	In        []Transfer // last credit of each peer
	LastOut   []Transfer // last debit number per peer, open or not
}

// Unsold is the shard's part of the units that nobody has. Those in transit
// count where they were sent, so that only the sum over all shards is a number
// of units.
func (f *Figures) Unsold() int64 { return f.Available + f.Sent - f.Received }
