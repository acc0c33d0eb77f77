package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

const (
	// checkDeadline bounds one look at the queue.
	checkDeadline = 5 * time.Second
	// lookDeadline bounds the look for streams that are lost: a part of the queue
	// that is away must not hold up a rebuild.
	lookDeadline = 500 * time.Millisecond
)

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
	marked, unseen := g.checkStreams(ctx)
	if len(lost) > 0 || marked {
		_, err = g.lost(ctx, lost, marked)
	}
	return errors.Join(err, unheard, unseen)
}

// Look asks the queue for what the store has confirmed, and for no more, and
// reports whether something is lost. It is for those who sell and do not
// consume: of a ledger that was set back to before an instance knew it, only
// the store can tell.
func (g *Guard) Look(ctx context.Context) (bool, error) {
	asked, ok := g.Queue.(queue.Witnessing)
	if !ok {
		return false, nil
	}
	known, err := g.Store.Witness(ctx)
	if err != nil {
		return false, fmt.Errorf("read witness: %w", err)
	}
	lost, unheard := asked.Lost(ctx, known)
	if len(lost) > 0 {
		_, err = g.lost(ctx, lost, false)
	}
	return len(lost) > 0, errors.Join(err, unheard)
}

// checkStreams reports whether a stream is lost whole, for which it has marked
// every product: the store may have confirmed nothing of it yet, so that no
// witness tells.
func (g *Guard) checkStreams(ctx context.Context) (marked bool, err error) {
	examining, ok := g.Queue.(queue.Examining)
	if !ok {
		return false, nil
	}
	brief, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	if _, err = examining.Examine(brief, 0, false); !errors.Is(err, queue.ErrLost) {
		return false, err
	}
	_, err = g.markAll(ctx)
	return err == nil, err
}

// markAll marks every preheated product for recovery in the store, and returns
// all products.
func (g *Guard) markAll(ctx context.Context) ([]seckill.Product, error) {
	products, err := g.Store.Products(ctx)
	if err != nil {
		return nil, fmt.Errorf("list products: %w", err)
	}
	for i := range products {
		if p := &products[i]; p.Epoch > 0 {
			if err := g.Store.SetRebuilding(ctx, p.ID, p.Epoch, true); err != nil {
				return nil, fmt.Errorf("mark product %d for recovery: %w", p.ID, err)
			}
		}
	}
	return products, nil
}

// lost has a loss noticed once: every product is marked for recovery in the
// store, and in place of the witnesses that are gone stand those that the queue
// has; marked says that the caller has marked them. Only then the queue is
// mended. It returns what the store has taken over from it.
func (g *Guard) lost(ctx context.Context, lost []queue.ID, marked bool) ([]queue.ID, error) {
	noticed, err := g.Store.WitnessLost(ctx, lost, g.remembered(ctx, lost))
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

// remembered is what the queue has of streams that lost a witness. Of one that
// does not answer it is told later, by takeOver.
func (g *Guard) remembered(ctx context.Context, lost []queue.ID) []queue.ID {
	memory, ok := g.Queue.(queue.Remembering)
	if !ok {
		return nil
	}
	carried, _ := memory.HighestWitness(ctx)
	return slices.DeleteFunc(carried, func(id queue.ID) bool {
		return !slices.ContainsFunc(lost, func(gone queue.ID) bool { return gone.Stream == id.Stream })
	})
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
