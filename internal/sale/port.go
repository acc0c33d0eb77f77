package sale

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/alert"
)

// The parts that a sale calls and that others implement. No method of Waker,
// Recoverer, Alerter, Peers, Follower and Closer blocks.

// Waker wakes background duties.
type Waker interface {
	// Wake has a duty look now, at the instance where it runs.
	Wake(duty string)
}

// Recoverer has the ledger of a product recovered.
type Recoverer interface {
	// RequestRecovery asks for a product whose ledger is in trouble; product 0 means
	// all.
	RequestRecovery(product uint32, cause error)
}

// Alerter tells an operator.
type Alerter interface {
	Raise(kind alert.Kind, product uint32, err error)
}

// Peers are the other instances.
type Peers interface {
	// ProductChanged asks them to read a product again.
	ProductChanged(product uint32)
	// SoldOut tells them that the ledger was asked at that instant, and had no unit.
	SoldOut(product uint32, asked time.Time)
	// UnitsBack tells them that a product has free units again.
	UnitsBack(product uint32)
	// CatchUp calls raise when this instance has heard of every buyer who bought
	// elsewhere before the call. If it cannot find out, it never calls raise.
	CatchUp(s *Sale, raise func())
}

// Follower follows what the catalogue reads. It must not change a product.
type Follower interface {
	// LedgerRebuilt is called for a new epoch of a product's ledger, before the
	// catalogue shows it: while the ledger is rebuilt, and again when it is
	// installed. The ledger then remembers buyers that came from the store, of whom
	// this instance may never have heard. There is no call for the first epoch,
	// before which nobody has bought.
	LedgerRebuilt(p *seckill.Product)
	// RebuildBegins is called when a ledger is about to be rebuilt, here or by
	// another instance, after the catalogue shows it. Its promises are to be written
	// now.
	RebuildBegins()
	// ProductGone is called for a product that was deleted, after the catalogue no
	// longer finds it.
	ProductGone(s *Sale)
}

// Closer closes a sale at this instance.
type Closer interface {
	// SaleEnded is called when a sale is over. It may be called again.
	SaleEnded(product uint32)
}

// WitnessChecker compares what the store has confirmed with what the queue has,
// and has a loss of the queue mended.
type WitnessChecker interface {
	CheckWitness(ctx context.Context) error
}

// Alone is the Peers of an instance that has none.
type Alone struct{}

// ProductChanged does nothing.
func (Alone) ProductChanged(uint32) {}

// SoldOut does nothing.
func (Alone) SoldOut(uint32, time.Time) {}

// UnitsBack does nothing.
func (Alone) UnitsBack(uint32) {}

// CatchUp calls raise at once: nobody sells elsewhere.
func (Alone) CatchUp(_ *Sale, raise func()) { raise() }

// NoFollower does nothing. A follower that needs one method embeds it.
type NoFollower struct{}

// LedgerRebuilt does nothing.
func (NoFollower) LedgerRebuilt(*seckill.Product) {}

// RebuildBegins does nothing.
func (NoFollower) RebuildBegins() {}

// ProductGone does nothing.
func (NoFollower) ProductGone(*Sale) {}

// nobody stands where a lifecycle has no waker, alerter or closer.
type nobody struct{}

func (nobody) Wake(string)                     {}
func (nobody) Raise(alert.Kind, uint32, error) {}
func (nobody) SaleEnded(uint32)                {}
