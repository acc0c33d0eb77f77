package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/ledger"
)

// Finisher finishes transfers that a dead process left open, for every product with several
// shards. Until then, their units can be sold only to claims that need them. Nothing else
// depends on it.
type Finisher struct {
	Mover *Mover
	// Products returns the products to look at. Those with one shard, or not preheated, are
	// skipped.
	Products func() []*seckill.Product

	aside background.Postponed[uint32] // products with a shard that did not answer
}

const (
	finishAtOnce = 8 // products
	// finishTimeout bounds one product's part of a round. The next round finishes the rest.
	finishTimeout = 3 * time.Second
)

// Round looks at each product once. Products that did not answer the last time come last. It
// continues after an error and returns all errors.
func (f *Finisher) Round(ctx context.Context) error {
	terms := make(map[uint32]*seckill.Product)
	var ids []uint32
	for _, p := range f.Products() {
		if p.Shards > 1 && p.Epoch > 0 && !p.Rebuilding {
			terms[p.ID], ids = p, append(ids, p.ID)
		}
	}
	return f.aside.Each(ctx, finishAtOnce, func(ctx context.Context, id uint32) error {
		err := background.Within(ctx, finishTimeout, func(ctx context.Context) error { return f.Mover.Finish(ctx, terms[id]) })
		if err != nil && !rebuilt(err) {
			return fmt.Errorf("product %d: %w", id, err)
		}
		return nil
	}, ids)
}

// rebuilt reports whether a product's shards are being recovered, or were since this instance
// last looked. The open transfers between them are gone then.
func rebuilt(err error) bool {
	var epoch *ledger.EpochError
	return errors.Is(err, ledger.ErrClosed) || errors.As(err, &epoch)
}
