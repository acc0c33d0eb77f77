package purchase

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/transfer"
	"seckill/internal/unkept"
)

// Options are the bounds of the stage.
type Options struct {
	QueueSize int           // claims that may wait per shard
	MaxBatch  int           // claims in one ledger step
	Timeout   time.Duration // from a claim's arrival to its answer
	// RecogniseWithin bounds how long a claim waits for what the store knows of
	// it; 0 means recogniseTimeout.
	RecogniseWithin time.Duration
	Lane            ledger.LaneOptions
	// Mover brings units to a shard that has none, for products of several.
	Mover  *transfer.Mover
	Random func() uint64 // for order numbers
	// OnBatch sees every ledger step: its size and how long it took.
	OnBatch func(claims int, took time.Duration)
	// Note remembers a buyer to whom the counter may have sold, and Learn one
	// whom the ledger may remember: of those a shared ledger tells the other
	// instances itself. Learn is Note if it is not set.
	Note, Learn func(group uint32, buyer string)
	// MayHaveSold reports whether the counter may have sold to a buyer: the store
	// is then asked before the ledger, which has no mark of that. nil is never.
	MayHaveSold func(group uint32, buyer string) bool
	// MayHold reports whether the ledger, or the counter, may remember a buyer:
	// such a claim may need no unit. nil is never.
	MayHold func(group uint32, buyer string) bool
	// OnTooHot is told of every claim that was refused as too hot, and why.
	OnTooHot func(TooHot)
	// SharedCounter says that other instances sell direct products too. Their
	// sold-out flag then holds back nobody who is known, so nobody is noted.
	SharedCounter bool
	// OnTrouble is told when a product's ledger is lost, closed or of another
	// epoch. It must not block.
	OnTrouble func(product uint32, err error)

	// Counter sells what needs no ledger; nil without one. ExpireAfter is the
	// time to pay of what it sells.
	Counter     Counter
	ExpireAfter time.Duration
	// Store takes the immediate attempts of dualwrite products, with the same
	// time to pay; nil for none. OnDualWrite counts their batches.
	Store       Confirmer
	OnDualWrite func(DualWriteResult)
	// OnUnkept is told of promises of a product that such an attempt has written
	// as failed orders. It must not block.
	OnUnkept func(product uint32, failed []unkept.Promise)
	// Remember keeps what the ledger has promised until the store has it; nil
	// for none. The entry is given away.
	Remember func(seckill.Entry)
	// Promised finds what is so kept of a product with a fallback share, by the
	// buyer's key; nil finds nothing.
	Promised func(group uint32, buyer, key string) (no seckill.OrderNo, found bool)
	// ShareGone reports whether nothing of a product's fallback share is left,
	// and hands the rest to its ledger; nil when no product has a share.
	ShareGone func(ctx context.Context, product uint32) (gone bool, err error)
	// OnSell sees every transaction of the counter: its claims and how long it
	// took. OnSellFailed is told why one could not be decided.
	OnSell       func(claims int, took time.Duration)
	OnSellFailed func(product uint32, err error)
}

// filled has something to call wherever nil stands for nothing to do, and a
// bound wherever 0 stands for the usual one.
func (opt Options) filled() Options {
	if opt.RecogniseWithin == 0 {
		opt.RecogniseWithin = recogniseTimeout
	}
	if opt.Learn == nil {
		opt.Learn = opt.Note
	}
	if opt.MayHaveSold == nil {
		opt.MayHaveSold = func(uint32, string) bool { return false }
	}
	if opt.MayHold == nil {
		opt.MayHold = func(uint32, string) bool { return false }
	}
	if opt.Promised == nil {
		opt.Promised = func(uint32, string, string) (no seckill.OrderNo, found bool) { return no, false }
	}
	if opt.OnTooHot == nil {
		opt.OnTooHot = func(TooHot) {}
	}
	if opt.OnSell == nil {
		opt.OnSell = func(int, time.Duration) {}
	}
	if opt.OnDualWrite == nil {
		opt.OnDualWrite = func(DualWriteResult) {}
	}
	if opt.OnUnkept == nil {
		opt.OnUnkept = func(uint32, []unkept.Promise) {}
	}
	if opt.OnSellFailed == nil {
		opt.OnSellFailed = func(uint32, error) {}
	}
	return opt
}
