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
	"strings"
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
	// a new epoch, closed. Of the orders and keys before it nothing is known but
	// what the marks say. It does so only over a lower epoch: over the same or
	// a higher one it changes nothing and returns the epoch that is there. It
	// never touches an entry of the outbox, nor marks of other products of the
	// group. It is atomic: a call that fails leaves the shard as it was, or
	// closed.
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

	// Instruct keeps an instruction to pause or end the sale that the store does
	// not have yet, and carries it out in the same step: a Reserve that is applied
	// after it returned meets that state. It does so on a shard of any epoch, and
	// on one that was never installed. An instruction to end replaces one to
	// pause; otherwise the first one stays. It returns the one that the shard
	// keeps from then on, from the same step: the caller brings that one to the
	// store, and never one that it remembers. The store may have carried out the
	// remembered one long ago, and would not do so again.
	//
	// While the shard keeps an instruction, neither SetState nor Install sets a
	// state below that of the instruction (open, paused, ended). A new epoch keeps
	// it.
	Instruct(ctx context.Context, shard Shard, in seckill.Instruction) (seckill.Instruction, error)
	// Settle forgets the instruction that has this id: the store has it now. The
	// state stays as it is. The caller has set the store's state before, or older
	// words about it would count again.
	Settle(ctx context.Context, shard Shard, id string) error

	// Read reads one shard atomically. Shard.Epoch is ignored. A shard that was
	// never installed reads as the zero Figures.
	Read(ctx context.Context, shard Shard) (Figures, error)

	// Held lists what the buyer's mark holds for the product on the shard, live
	// orders only, newest first. Shard.Epoch is ignored. Of what is no mark the
	// error wraps ErrDamaged.
	Held(ctx context.Context, shard Shard, buyer string) ([]Holding, error)

	// Audit counts the live orders of the product in a shard's marks, while others
	// are served. An order that is held from the beginning to the end is counted;
	// any may be twice. Shard.Epoch is ignored.
	Audit(ctx context.Context, shard Shard) (Audit, error)

	// Intact reports whether the outbox still has the oldest entry of the shard
	// that is not acknowledged, and a worker has it or will be given it; true if
	// there is none. Otherwise something was lost: the product is to be rebuilt,
	// and Install makes the shard whole.
	// Shard.Epoch is ignored.
	Intact(ctx context.Context, shard Shard) (bool, error)

	// Now is the ledger's clock, which sale windows follow.
	Now(ctx context.Context) (time.Time, error)
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

// MaxReturned is how many dead orders of a buyer, in one limit group, a ledger
// remembers by their keys before it sells nothing more to that buyer: what it
// remembers is searched for every claim, and the limit bounds only what is
// live. So much cancelling is no shopper's.
const MaxReturned = 128

// MaxInstructionID bounds the id of an instruction.
const MaxInstructionID = 64

// CheckInstruction refuses what is no instruction to pause or end a sale.
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

// ShardOf is a shard of a product at the epoch of its terms.
func ShardOf(p *seckill.Product, index int) Shard {
	return Shard{Product: p.ID, Group: p.Group, Index: index, Epoch: p.Epoch}
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

// Mark is one order that Install carries into the new epoch: a live one, or one
// of quantity 0, which is dead, counts as nothing, and is remembered for its
// key, as if it had been released in this epoch. A mark whose buyer's home is
// another shard, or of quantity 0 without a key, is the caller's mistake.
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
	// Instruction is what waits for the store; without an ID there is none.
	Instruction seckill.Instruction
}

// Balanced reports whether the figures add up (I5).
func (f *Figures) Balanced() bool {
	return f.Available+f.Marked == f.Allotted+f.Received-f.Sent
}

// Unsold is the shard's part of the units that nobody has. Those in transit
// count where they were sent, so that only the sum over all shards is a number
// of units.
func (f *Figures) Unsold() int64 { return f.Available + f.Sent - f.Received }

// Audit is what the marks of a shard hold of a product, and what the shard's
// figures say that they hold.
type Audit struct {
	// Epoch is the shard's from the beginning to the end; 0 when it changed
	// meanwhile, or there are more marks than the ledger walks: the rest is then
	// without meaning.
	Epoch uint64
	// Steady is false, and the counts without meaning, when orders came or went
	// meanwhile.
	Steady        bool
	Units, Orders int64 // counted in the marks
	Marked, Live  int64 // units and orders as the figures have them
}
