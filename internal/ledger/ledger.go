// Package ledger is the port to the ledger, which decides every purchase.
//
// A product's stock is in the ledger as an allotment, split over one or more shards. A buyer
// has one home shard (seckill.HomeShard). The buyer's marks are the live orders and keys that
// the ledger remembers. They belong to the limit group and are stored next to the shard with
// the same index, so that the products of a group share one limit.
//
// ledger.go has the port, call.go the numbered calls, bound.go their bounds. lane.go numbers a
// process's calls, and settles lost replies by asking; it works with every adapter.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"seckill"
)

// Ledger is the port. Every adapter must pass the suite ledgertest.
//
// # Numbered calls
//
// Every write goes through Do and has a number. For each shard, a process takes its next number
// and sends it once. With it, it sends the highest number whose reply it has received. Per
// shard, epoch and process the ledger keeps a record {last, kept verdicts}, and answers in this
// order:
//
//  1. The shard has another epoch, or is unknown ► OutcomeEpoch with the shard's
//     epoch (0 for none); nothing changes.
//  2. The shard is closed ► OutcomeClosed; nothing changes.
//  3. Seen > last ► the shard closes itself, OutcomeLost: the ledger has
//     forgotten an answer that the process received.
//  4. Kept verdicts ≤ Seen are dropped. Number ≤ last ► OutcomeStale.
//  5. A write with Number ≠ last+1 ► OutcomeGap; nothing changes.
//  6. A write ► applied, last = Number, its Result is kept.
//  7. An ask (Write == nil) ► last = Number, and the kept verdicts are
//     returned. A number that is not among them never happened and never will.
//
// An error that wraps ErrNotExecuted means that the call changed nothing, not even the record:
// the same number may be sent again. After any other error the outcome is unknown and the
// process must ask.
//
// A call has at most MaxClaims claims or orders to release. A call beyond the bounds is the
// caller's mistake: its error wraps both ErrBadCall and ErrNotExecuted.
//
// # Durability
//
// The ledger replies only after its answer, and everything that the answer depends on, is as
// durable as the adapter's settings allow (I4).
//
// # Outbox
//
// The claims that Reserve and Adopt accept are written in the same atomic step as one entry of
// the outbox, which the queue port delivers. At no time is stock deducted without a record of
// the order.
//
// Methods are safe for concurrent use and return within their context's deadline.
type Ledger interface {
	// Do performs one numbered call.
	Do(ctx context.Context, req Request) (Reply, error)

	// Heartbeat sends, without a number, the highest reply that each lane has received. It
	// returns an outcome per beat: OutcomeEpoch, OutcomeClosed, OutcomeLost (the shard closes
	// itself) or OutcomeApplied if all is well. With an error, it returns no outcomes, or the
	// ones that it received and zero for the others.
	Heartbeat(ctx context.Context, beats []Beat) ([]Outcome, error)

	// Install replaces the product's figures and marks on one shard by those of a new epoch,
	// closed. Of earlier orders and keys the ledger then knows only the given marks. Install
	// works only over a lower epoch: over the same or a higher one it changes nothing and
	// returns the shard's epoch. It never changes an entry of the outbox, nor marks of other
	// products of the group. It is atomic: if it fails, the shard is as it was, or closed.
	Install(ctx context.Context, a Allotment, marks iter.Seq2[Mark, error]) (epoch uint64, err error)

	// Open opens the shard if it has exactly this epoch, and reports whether it has. Close
	// closes it if it has this epoch or a lower one.
	Open(ctx context.Context, shard Shard) (bool, error)
	Close(ctx context.Context, shard Shard) error

	// SetState pauses, resumes or ends the sale on the shard if it has exactly this epoch, and
	// reports whether it has. A Reserve that is applied after SetState returned sees the new
	// state, on every instance.
	//
	// Version is the product's version in the store when it had this state. If the shard has
	// already got a higher version in this epoch, the call changes nothing: it was delayed, and
	// would undo a newer state.
	SetState(ctx context.Context, shard Shard, state seckill.SaleState, version uint64) (bool, error)

	// Instruct keeps an instruction to pause or end the sale that the store does not have yet,
	// and executes it in the same step. A Reserve that is applied after Instruct returned sees
	// that state. It works on a shard of any epoch, and on one that was never installed.
	//
	// An instruction to end replaces one to pause; otherwise the first one stays. Instruct
	// returns the one that the shard keeps from then on. The caller brings that one to the
	// store, and never one from its own memory: the store may have executed that long ago, and
	// would not do so again.
	//
	// While the shard keeps an instruction, neither SetState nor Install sets a state below
	// that of the instruction (order: open, paused, ended). A new epoch keeps it.
	Instruct(ctx context.Context, shard Shard, in seckill.Instruction) (seckill.Instruction, error)
	// Settle removes the instruction that has this id, because the store has it now. The state
	// stays as it is. The caller must set the store's state first. Otherwise delayed calls of
	// SetState with older states would count again.
	Settle(ctx context.Context, shard Shard, id string) error

	// Read reads one shard atomically. Shard.Epoch is ignored. A shard that was
	// never installed reads as the zero Figures.
	Read(ctx context.Context, shard Shard) (Figures, error)

	// Held lists the buyer's live orders of the product on the shard, newest first. Shard.Epoch
	// is ignored. If the buyer's entry is not a valid mark, the error wraps ErrDamaged.
	Held(ctx context.Context, shard Shard, buyer string) ([]Holding, error)

	// Audit counts the live orders of the product in a shard's marks, while other calls are
	// served. An order that is live from the beginning to the end is counted at least once.
	// Shard.Epoch is ignored.
	Audit(ctx context.Context, shard Shard) (Audit, error)

	// Intact reports whether the outbox still has the shard's oldest unacknowledged entry, and
	// a worker has it or will get it. It is true if there is no such entry. If it is false, an
	// entry was lost: the product must be rebuilt, and Install makes the shard intact again.
	// Shard.Epoch is ignored.
	Intact(ctx context.Context, shard Shard) (bool, error)

	// Now returns the time of the ledger's clock, which sale windows follow.
	Now(ctx context.Context) (time.Time, error)
}

// ErrDamaged means that the ledger's storage has something that no ledger wrote. The affected
// products must be recovered.
var ErrDamaged = errors.New("the ledger is damaged")

// ErrNotExecuted means that the ledger refused or failed the call before it changed anything.
var ErrNotExecuted = errors.New("ledger did not execute the call")

// ErrBadCall means that the call itself is wrong. It is refused however often it is sent.
var ErrBadCall = errors.New("bad call")

// MaxReturned is how many dead orders of a buyer, in one limit group, a ledger remembers by
// their keys. After that it sells nothing more to the buyer. Every claim searches these orders,
// and the limit bounds only live orders. No real buyer cancels so often.
const MaxReturned = 128

// MaxInstructionID bounds the id of an instruction.
const MaxInstructionID = 64

// CheckInstruction refuses an instruction that does not pause or end a sale.
func CheckInstruction(in *seckill.Instruction) error {
	if in.State != seckill.SalePaused && in.State != seckill.SaleEnded ||
		in.ID == "" || len(in.ID) > MaxInstructionID || strings.ContainsAny(in.ID, " \t\r\n") {
		return fmt.Errorf("%w: instruction %q to state %d", ErrBadCall, in.ID, in.State)
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

// ShardOf returns a shard of a product in its present epoch.
func ShardOf(p *seckill.Product, index int) Shard {
	return Shard{Product: p.ID, Group: p.Group, Index: index, Epoch: p.Epoch}
}

// Beat is the heartbeat of one lane.
type Beat struct {
	Shard   Shard
	Process ProcessID
	Seen    uint64
}

// Allotment is the content of a new epoch on a shard.
type Allotment struct {
	Shard Shard // with the new epoch
	// Available is the free units. The shard's allotted units are these plus the units of the
	// marks.
	Available int64
	Limit     int
	State     seckill.SaleState
}

// Mark is one order that Install carries into the new epoch. Quantity 0 means a dead order that
// is remembered for its key only, as if it had been released in this epoch. A mark of a buyer
// with another home shard, and one of quantity 0 without a key, are mistakes of the caller.
type Mark struct {
	Buyer    string
	OrderNo  seckill.OrderNo
	Quantity int
	Key      string
}

// Holding is one live order in a buyer's mark. Entry is its outbox entry, with this claim
// alone, while that is not acknowledged. Otherwise Entry.ProductID is 0.
type Holding struct {
	OrderNo  seckill.OrderNo
	Quantity int
	Key      string
	Entry    seckill.Entry
}

// Figures are one shard's numbers at one instant. A healthy shard always has Available + Marked
// = Allotted + Received − Sent.
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
	// Instruction is the one that the store does not have yet. Its ID is "" if there is none.
	Instruction seckill.Instruction
}

// Balanced reports whether the figures add up (I5).
func (f *Figures) Balanced() bool {
	return f.Available+f.Marked == f.Allotted+f.Received-f.Sent
}

// Unsold returns the shard's part of the unsold units. Units in transit count at the shard that
// sent them, so only the sum over all shards is a meaningful number.
func (f *Figures) Unsold() int64 { return f.Available + f.Sent - f.Received }

// Audit compares the marks of a shard, for one product, with the shard's figures.
type Audit struct {
	// Epoch is the shard's during the whole audit. It is 0, and the other fields mean nothing,
	// if the epoch changed or there are more marks than the ledger walks.
	Epoch uint64
	// Steady is false, and the counts mean nothing, if orders came or went during the audit.
	Steady        bool
	Units, Orders int64 // counted in the marks
	Marked, Live  int64 // units and orders according to the figures
}
