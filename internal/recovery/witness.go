package recovery

import (
	"context"
	"errors"

	"seckill/internal/sale"
)

// QueueGuard compares what the store has confirmed with what the queue has.
type QueueGuard interface {
	// Look reports whether the queue has lost something. It has then marked every
	// product for a rebuild.
	Look(ctx context.Context) (lost bool, err error)
}

// Witness finds a ledger that was set back to before this instance knew it, by what
// the store has confirmed since. An instance that has sold meanwhile notices with
// its next call, and a worker with its next acknowledgement. One that only sells,
// and has just started or was idle, would sell again what is sold until a worker
// comes. A rebuild looks before it opens an epoch.
type Witness struct {
	Guard   QueueGuard
	Catalog *sale.Catalog
	Peers   sale.Peers
}

// CheckWitness looks once.
func (w *Witness) CheckWitness(ctx context.Context) error {
	lost, err := w.Guard.Look(ctx)
	if lost {
		w.Peers.ProductChanged(0) // every product is marked by now
		// However long the look has taken: nothing more is sold from the old ledger.
		refreshing, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
		defer cancel()
		err = errors.Join(err, w.Catalog.Refresh(refreshing))
	}
	return err
}
