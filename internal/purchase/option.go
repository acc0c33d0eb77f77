package purchase

import (
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/transfer"
	"seckill/internal/recovery"
	"seckill/internal/sale"
)

// Options are the bounds of the stage, and the parts that it uses.
type Options struct {
	QueueSize int           // claims that may wait per shard
	MaxBatch  int           // claims in one ledger step
	Timeout   time.Duration // from a claim's arrival to its answer
	Lane      ledger.LaneOptions
	// Mover brings units to a shard that has none, for products of several.
	Mover  *transfer.Mover
	Random func() uint64 // for order numbers
	// Memory knows the buyers who may have an order. The stage adds to it, and
	// lets such a buyer wait although all units seem to be sold: the claim may
	// need none. nil is a memory of the stage's own.
	Memory *sale.Memory
	// SharedStore says that other instances sell from the store too. The sold-out
	// flag of such a product then holds back no proven buyer, so nobody is learned.
	SharedStore bool

	// DirectSeller sells from the store; nil without one. ExpireAfter is the
	// time to pay of what it sells.
	DirectSeller DirectSeller
	ExpireAfter  time.Duration
	// Store takes the immediate attempts of dualwrite products, with the same
	// time to pay; nil for none.
	Store Confirmer
	// Promises keeps what the ledger has promised until the store has it; nil for
	// none. Journal has it on disk before the buyer is answered; nil for none.
	Promises Promises
	Journal  Journal

	// Recoverer, Reports and Figures may be nil.
	Recoverer Recoverer
	Reports   Reports
	Figures   Figures
}

// Promises remembers accepted orders.
type Promises interface {
	// Remember keeps the claims of an entry until the store has their orders. The
	// entry is given away.
	Remember(entry seckill.Entry)
}

// Recoverer rebuilds the ledger of a product.
type Recoverer interface {
	// RequestRecovery asks for a product whose ledger is lost, closed or of another
	// epoch. It returns at once.
	RequestRecovery(product uint32, cause error)
}

// Reports counts and logs what the stage could not do. No method blocks.
type Reports interface {
	// TooHot counts a claim that the line did not take, or not serve.
	TooHot(why TooHot)
	// DualWrite counts a batch of a dualwrite product.
	DualWrite(result DualWriteResult)
	// NotKept names promises that a dualwrite attempt has written as failed orders.
	NotKept(product uint32, failed []recovery.FailedPromise)
	// SellFailed says why the store could not decide a batch.
	SellFailed(product uint32, err error)
}

// Figures measure the steps of the stage; a nil one measures nothing.
type Figures struct {
	ReserveClaims, ReserveSeconds Histogram // of the ledger's steps
	SellClaims, SellSeconds       Histogram // of the store's transactions
}

// Histogram is what the stage needs of one of Prometheus.
type Histogram interface{ Observe(float64) }

// nobody stands where nobody listens.
type nobody struct{}

func (nobody) RequestRecovery(uint32, error)            {}
func (nobody) TooHot(TooHot)                            {}
func (nobody) DualWrite(DualWriteResult)                {}
func (nobody) NotKept(uint32, []recovery.FailedPromise) {}
func (nobody) SellFailed(uint32, error)                 {}
func (nobody) Observe(float64)                          {}

// filled has somebody to call wherever nil stands for nobody.
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
