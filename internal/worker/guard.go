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

// lookDeadline bounds one look at the queue.
const lookDeadline = 5 * time.Second

// Guard compares what the store has confirmed with what the queue has. Each
// worker has its own; whoever rebuilds ledgers has one to ask first.
type Guard struct {
	Queue queue.Queue
	Store Store
	// OnTrouble is as in Options.
	OnTrouble func(product uint32, err error)
}

// Look asks the queue for what the store has confirmed, and reports whether
// something is lost. A rebuild does so before it opens an epoch: a loss that is
// noticed only after it would have every product rebuilt once more. So does an
// instance that sells and does not consume: of a ledger that was set back to
// before it knew it, only the store can tell.
func (g *Guard) Look(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	known, err := g.Store.Witness(ctx)
	if err != nil {
		return false, fmt.Errorf("read witness: %w", err)
	}
	lost, unheard := g.Queue.Lost(ctx, known)
	if len(lost) > 0 {
		err = g.lost(ctx, lost)
	}
	return len(lost) > 0, errors.Join(err, unheard)
}

// markAll marks every current product that was preheated for recovery in the
// store.
func (g *Guard) markAll(ctx context.Context) error {
	products, err := g.Store.CurrentProducts(ctx)
	if err != nil {
		return fmt.Errorf("list products: %w", err)
	}
	for i := range products {
		if p := &products[i]; p.Epoch > 0 {
			if err := g.Store.BeginRebuild(ctx, p.ID, p.Epoch); err != nil {
				return fmt.Errorf("mark product %d for recovery: %w", p.ID, err)
			}
		}
	}
	return nil
}

// lost has a loss noticed once: every product is marked for recovery in the
// store, and in place of the witnesses that are gone stand those that the queue
// has.
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

// remembered is what the queue has of streams that lost a witness. Of one that
// does not answer it is told later, by takeOver.
func (g *Guard) remembered(ctx context.Context, lost []queue.ID) []queue.ID {
	carried, _ := g.Queue.HighestWitness(ctx)
	return slices.DeleteFunc(carried, func(id queue.ID) bool {
		return !slices.ContainsFunc(lost, func(gone queue.ID) bool { return gone.Stream == id.Stream })
	})
}

// takeOver raises the store's witness to what the queue remembers, by a
// confirmation of nothing, and returns that: after a loss it is of before, and
// above the store's nothing; it must not pass for a loss of the store's. A
// store without products has nothing to confirm it with, and nothing to
// recover.
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
