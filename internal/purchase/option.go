package purchase

import (
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
	"seckill/internal/recovery"
)

// Options are the bounds of the stage.
type Options struct {
	QueueSize int           // claims that may wait per shard
	MaxBatch  int           // claims in one ledger step
	Timeout   time.Duration // from a claim's arrival to its answer
	Lane      ledger.LaneOptions
	// Mover brings units to a shard that has none, for products of several.
	Mover  *transfer.Mover
	Random func() uint64 // for order numbers
	// OnBatch sees every ledger step: its size and how long it took.
	OnBatch func(claims int, took time.Duration)
	// Learn remembers a buyer whom the ledger, or the store, may remember.
	Learn func(group uint32, buyer string)
	// MayHold reports whether the ledger, or the store, may remember a buyer:
	// such a claim may need no unit. nil is never.
	MayHold func(group uint32, buyer string) bool
	// OnTooHot is told of every claim that was refused as too hot, and why.
	OnTooHot func(TooHot)
	// SharedStore says that other instances sell from the store too. The sold-out
	// flag of such a product then holds back no proven buyer, so nobody is learned.
	SharedStore bool
	// OnTrouble is told when a product's ledger is lost, closed or of another
	// epoch. It must not block.
	OnTrouble func(product uint32, err error)

	// Counter sells from the store; nil without one. ExpireAfter is the
	// time to pay of what it sells.
	Counter     Counter
	ExpireAfter time.Duration
	// Store takes the immediate attempts of dualwrite products, with the same
	// time to pay; nil for none. OnDualWrite counts their batches.
	Store       Confirmer
	OnDualWrite func(DualWriteResult)
	// OnUnkept is told of promises of a product that such an attempt has written
	// as failed orders. It must not block.
	OnUnkept func(product uint32, failed []recovery.FailedPromise)
	// Remember keeps what the ledger has promised until the store has it; nil
	// for none. The entry is given away.
	Remember func(seckill.Entry)
	// Journal has what Remember keeps on disk before the buyer is answered; nil
	// for none.
	Journal Journal
	// OnSell sees every transaction of the counter: its claims and how long it
	// took. OnSellFailed is told why one could not be decided.
	OnSell       func(claims int, took time.Duration)
	OnSellFailed func(product uint32, err error)
}

// filled has something to call wherever nil stands for nothing to do.
func (opt Options) filled() Options {
	if opt.MayHold == nil {
		opt.MayHold = func(uint32, string) bool { return false }
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
		opt.OnUnkept = func(uint32, []recovery.FailedPromise) {}
	}
	if opt.OnSellFailed == nil {
		opt.OnSellFailed = func(uint32, error) {}
	}
	return opt
}
