package transfer

import (
	"context"
	"errors"
	"fmt"

	"seckill"
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
}

// Round looks at each product once. It goes on past one in trouble and returns
// all errors.
func (f *Finisher) Round(ctx context.Context) error {
	var errs []error
	for _, p := range f.Products() {
		if p.Shards < 2 || p.Epoch == 0 || p.Rebuilding {
			continue
		}
		if err := f.Mover.Finish(ctx, p); err != nil && !rebuilt(err) {
			errs = append(errs, fmt.Errorf("product %d: %w", p.ID, err))
		}
	}
	return errors.Join(errs...)
}

// rebuilt reports whether a product's shards are being recovered, or were while
// this instance did not look: what was open between them is then gone.
func rebuilt(err error) bool {
	var epoch *ledger.EpochError
	return errors.Is(err, ledger.ErrClosed) || errors.As(err, &epoch)
}
