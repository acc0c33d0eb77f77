package purchase

import (
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
	"seckill/internal/recovery"
	"seckill/internal/sale"
)

// Options are the bounds and dependencies of the stage.
type Options struct {
	QueueSize int           // waiting claims per shard
	MaxBatch  int           // claims in one ledger step
	Timeout   time.Duration // from the arrival of a claim to its answer
	Lane      ledger.LaneOptions
	// Mover brings units to an empty shard, for products with several shards.
	Mover  *transfer.Mover
	Random func() uint64 // for order numbers
	// Memory knows the buyers who may have an order. The stage adds buyers to it. It
	// lets such a buyer wait although all units seem sold, because a repeated claim
	// needs no unit. nil makes a memory of the stage's own.
	Memory *sale.Memory
	// SharedStore: other instances sell from the store too. The sold-out flag then
	// lets every verified buyer of such a product pass, so none is remembered.
	SharedStore bool

	// DirectSeller sells from the store; nil without one. ExpireAfter is the time
	// to pay for its orders.
	DirectSeller DirectSeller
	ExpireAfter  time.Duration
	// Store writes the immediate attempts of dualwrite products, with the same time
	// to pay; nil for none.
	Store Confirmer
	// Promises keeps the ledger's promises until the store has them; nil for none.
	// Journal writes them to disk before the buyer is answered; nil for none.
	Promises Promises
	Journal  Journal

	// Recoverer, Reports and Figures may be nil.
	Recoverer Recoverer
	Reports   Reports
	Figures   Figures
}

// Promises remembers accepted orders.
type Promises interface {
	// Remember keeps the claims of an entry until the store has their orders. It
	// takes ownership of the entry.
	Remember(entry seckill.Entry)
}

// Recoverer rebuilds the ledger of a product.
type Recoverer interface {
	// RequestRecovery requests a recovery of a product whose ledger is lost, closed
	// or of another epoch. It returns at once.
	RequestRecovery(product uint32, cause error)
}

// Reports counts and logs failures of the stage. No method blocks.
type Reports interface {
	// TooHot counts a claim that was refused as too_hot.
	TooHot(why TooHot)
	// DualWrite counts a batch of a dualwrite product.
	DualWrite(result DualWriteResult)
	// NotKept reports promises that a dualwrite attempt has written as failed orders.
	NotKept(product uint32, failed []recovery.FailedPromise)
	// SellFailed reports why the store could not decide a batch.
	SellFailed(product uint32, err error)
}

// Figures measure the stage's steps. nil histograms measure nothing.
type Figures struct {
	ReserveClaims, ReserveSeconds Histogram // of the ledger's steps
	SellClaims, SellSeconds       Histogram // of the store's transactions
}

// Histogram is the part of a Prometheus histogram that the stage uses.
type Histogram interface{ Observe(float64) }

// nobody is the default of the interfaces in Options: it does nothing.
type nobody struct{}

func (nobody) RequestRecovery(uint32, error)            {}
func (nobody) TooHot(TooHot)                            {}
func (nobody) DualWrite(DualWriteResult)                {}
func (nobody) NotKept(uint32, []recovery.FailedPromise) {}
func (nobody) SellFailed(uint32, error)                 {}
func (nobody) Observe(float64)                          {}

// filled sets nobody for each nil interface.
func (opt Options) filled() Options {
	if opt.Memory == nil {
		opt.Memory = sale.NewMemory()
	}
	if opt.Recoverer == nil {
		opt.Recoverer = nobody{}
	}
	if opt.Reports == nil {
		opt.Reports = nobody{}
	}
	f := &opt.Figures
	for _, h := range []*Histogram{&f.ReserveClaims, &f.ReserveSeconds, &f.SellClaims, &f.SellSeconds} {
		if *h == nil {
			*h = nobody{}
		}
	}
	return opt
}
