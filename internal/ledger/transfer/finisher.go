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

// Finisher finishes, for every product that has several shards, the transfers
// that a dead process left open. Nothing depends on it but the time until those
// units can be sold where no claim looks for them.
type Finisher struct {
	Mover *Mover
	// Products are those to look at; of one shard, or not preheated, they are
	// passed over.
	Products func() []*seckill.Product

	aside background.Shelf[uint32] // products whose shards did not all answer
}

const (
	finishAtOnce = 8 // products
	// finishTimeout bounds one product's part of a round. What it leaves open is
	// finished by the next.
	finishTimeout = 3 * time.Second
)

// Round looks at each product once, last at those that did not answer the last
// time. It goes on past one in trouble and returns all errors.
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

// rebuilt reports whether a product's shards are being recovered, or were while
// this instance did not look: what was open between them is then gone.
func rebuilt(err error) bool {
	var epoch *ledger.EpochError
	return errors.Is(err, ledger.ErrClosed) || errors.As(err, &epoch)
}
