package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// checkDeadline bounds one look at the queue.
const checkDeadline = 5 * time.Second

// Guard compares what the store has confirmed with what the queue has. Each
// worker has its own; whoever rebuilds ledgers has one to ask first.
type Guard struct {
	Queue queue.Queue
	Store Store
	// OnTrouble is as in Options.
	OnTrouble func(product uint32, err error)
}

// Check asks the queue for what the store has confirmed. A rebuild does so
// before it opens an epoch: a loss that is noticed only after it would have
// every product rebuilt once more.
func (g *Guard) Check(ctx context.Context) error {
	asked, ok := g.Queue.(queue.Witnessing)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkDeadline)
	defer cancel()
	known, err := g.Store.Witness(ctx)
	if err != nil {
		return fmt.Errorf("read witness: %w", err)
	}
	lost, unheard := asked.Lost(ctx, known)
	if len(lost) > 0 {
		_, err = g.lost(ctx, lost, false)
	}
	return errors.Join(err, unheard)
}

// lost has a loss noticed once: every product is marked for recovery in the
// store, and the witnesses that are gone are forgotten; marked says that the
// caller has marked them. Only then the queue is mended. It returns what the
// store has taken over from it.
func (g *Guard) lost(ctx context.Context, lost []queue.ID, marked bool) ([]queue.ID, error) {
	noticed, err := g.Store.WitnessLost(ctx, lost)
	if err != nil {
		return nil, fmt.Errorf("forget witness: %w", err)
	}
	if !noticed && !marked {
		return nil, nil
	}
	defer g.OnTrouble(0, queue.ErrLost)
	if examining, ok := g.Queue.(queue.Examining); ok {
		if _, err := examining.Examine(ctx, 0, true); err != nil {
			return nil, fmt.Errorf("mend queue: %w", err)
		}
	}
	products, err := g.Store.Products(ctx)
	if err != nil {
		return nil, fmt.Errorf("list products: %w", err)
	}
	return g.takeOver(ctx, products)
}

// takeOver raises the store's witness to what the queue remembers, by a
// confirmation of nothing, and returns that: after a loss it is of before, and
// above the store's nothing; it must not pass for a loss of the store's. A
// store without products has nothing to confirm it with, and nothing to
// recover.
func (g *Guard) takeOver(ctx context.Context, products []seckill.Product) ([]queue.ID, error) {
	memory, ok := g.Queue.(queue.Remembering)
	if !ok || len(products) == 0 {
		return nil, nil
	}
	carried, err := memory.HighestWitness(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = g.Store.Confirm(ctx, store.ConfirmRequest{ProductID: products[0].ID, Witness: carried}); err != nil {
		return nil, fmt.Errorf("take over the queue's witness: %w", err)
	}
	return carried, nil
}
