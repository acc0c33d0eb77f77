package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"seckill/internal/queue"
	"seckill/internal/store"
)

// lookDeadline bounds one check of the queue.
const lookDeadline = 5 * time.Second

// Guard compares the entries that the store has confirmed with those in the
// queue. Each worker has a guard. A rebuild of a ledger uses one too.
type Guard struct {
	Queue queue.Queue
	Store Store
	// OnTrouble is the same as in Options.
	OnTrouble func(product uint32, err error)
}

// Look checks whether the queue still has what the store has confirmed, and
// reports whether entries are lost.
//
// A rebuild calls it before it opens an epoch. Otherwise a loss that is noticed
// later would rebuild every product again. An instance that sells without a
// worker calls it too: if the ledger was set back to before the instance
// connected, only the store shows it.
func (g *Guard) Look(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	known, err := g.Store.Witness(ctx)
	if err != nil {
		return false, fmt.Errorf("read witness: %w", err)
	}
	lost, lookErr := g.Queue.Lost(ctx, known)
	if len(lost) > 0 {
		err = g.lost(ctx, lost)
	}
	return len(lost) > 0, errors.Join(err, lookErr)
}

// requestRebuilds requests a rebuild of every current product that was
// preheated. The request stands in the store.
func (g *Guard) requestRebuilds(ctx context.Context) error {
	products, err := g.Store.CurrentProducts(ctx)
	if err != nil {
		return fmt.Errorf("list products: %w", err)
	}
	for i := range products {
		if p := &products[i]; p.Epoch > 0 {
			if err := g.Store.BeginRebuild(ctx, p.ID, p.Epoch); err != nil {
				return fmt.Errorf("request the recovery of product %d: %w", p.ID, err)
			}
		}
	}
	return nil
}

// lost handles a loss once, whichever instance finds it. It
// requests a rebuild of every product in the store. It replaces each lost
// witness by the one that the queue has.
func (g *Guard) lost(ctx context.Context, lost []queue.ID) error {
	noticed, err := g.Store.WitnessLost(ctx, lost, g.remembered(ctx, lost))
	if err != nil {
		return fmt.Errorf("forget witness: %w", err)
	}
	if !noticed {
		return nil
	}
	defer g.OnTrouble(0, queue.ErrLost)
	_, err = g.takeOver(ctx)
	return err
}

// remembered returns the witnesses that the queue has of streams that lost one.
// A stream that does not answer is missing; takeOver asks for it later.
func (g *Guard) remembered(ctx context.Context, lost []queue.ID) []queue.ID {
	carried, _ := g.Queue.HighestWitness(ctx)
	return slices.DeleteFunc(carried, func(id queue.ID) bool {
		return !slices.ContainsFunc(lost, func(gone queue.ID) bool { return gone.Stream == id.Stream })
	})
}

// takeOver raises the witness of the store to the one that the queue remembers,
// by a confirmation without items. After a loss, the queue's witness is older
// than the loss and the store has none. Without this step, the store would look
// older than the queue. A store without products has nothing to recover.
func (g *Guard) takeOver(ctx context.Context) ([]queue.ID, error) {
	products, err := g.Store.Products(ctx, store.ProductFilter{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("list products: %w", err)
	}
	if len(products) == 0 {
		return nil, nil
	}
	carried, err := g.Queue.HighestWitness(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = g.Store.Confirm(ctx, store.ConfirmRequest{ProductID: products[0].ID, Witness: carried}); err != nil {
		return nil, fmt.Errorf("take over the queue's witness: %w", err)
	}
	return carried, nil
}
