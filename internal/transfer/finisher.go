package transfer

import (
	"context"
	"errors"
	"fmt"

	"seckill"
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
		if err := f.Mover.Finish(ctx, p); err != nil {
			errs = append(errs, fmt.Errorf("product %d: %w", p.ID, err))
		}
	}
	return errors.Join(errs...)
}
