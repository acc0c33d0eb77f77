package app

import (
	"context"
	"errors"
	"time"

	"seckill/internal/worker"
)

// witnessTimeout bounds a round of the duty.
const witnessTimeout = 5 * time.Second

// checkWitness finds a ledger that was set back to before this instance knew it,
// by what the store has confirmed since. An instance that has sold meanwhile
// notices with its next call, and a worker with its next acknowledgement; one
// that only sells, and has just started or was idle, would sell again what is
// sold until a worker comes. A rebuild looks before it opens an epoch.
func (p *parts) checkWitness(ctx context.Context) error {
	guard := worker.Guard{Queue: p.queue, Store: p.store, OnTrouble: p.signals.raise}
	lost, err := guard.Look(ctx)
	if lost {
		p.changed(0) // every product is due for recovery by now
		// However long the look has taken: nothing more is sold from the old ledger.
		refreshing, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
		defer cancel()
		err = errors.Join(err, p.catalog.Refresh(refreshing))
	}
	return err
}

// checkBefore looks before the first purchase. A part that is away does not keep
// the shop from opening: what it cannot say now it says with a next look.
func (p *parts) checkBefore(ctx context.Context) {
	if err := p.checkWitness(ctx); err != nil {
		p.log.Warn("witness not checked before the start", "error", err)
	}
}

// witness has the lifecycle check it before a rebuild.
type witness struct{ p *parts }

// CheckWitness looks for a loss of the queue.
func (w witness) CheckWitness(ctx context.Context) error { return w.p.checkWitness(ctx) }
