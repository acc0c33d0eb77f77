package worker

import (
	"context"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// settleStrays settles claims of one product whose copies came by a broker and
// whose entries do not wait in the outbox. Those that have an order are done.
// The others are of lost entries: they are adopted, or fail. To confirm them
// would make orders that the ledger does not know of (I3).
func (w *Worker) settleStrays(ctx context.Context, items []store.Item) error {
	if len(items) == 0 {
		return nil
	}
	nos := make([]seckill.OrderNo, len(items))
	for i := range items {
		nos[i] = items[i].Claim.OrderNo
	}
	stored := make(map[seckill.OrderNo]bool, len(nos))
	err := w.untilAvailable(ctx, func(ctx context.Context) error {
		orders, err := w.store.OrdersByNo(ctx, nos)
		for i := range orders {
			stored[orders[i].OrderNo] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	var lost []store.Item
	for _, item := range items {
		if !stored[item.Claim.OrderNo] {
			lost = append(lost, item)
		}
	}
	outcome, err := w.adopt(ctx, lost)
	w.tellUnkept(items[0].ProductID, outcome.Failed)
	return err
}

// unlessDeleted is nil if the product of entries was deleted: nothing can come of
// them any more. A broker may deliver a copy again after the deletion, and a Redis
// that lost its last seconds has entries again that were acknowledged.
func (w *Worker) unlessDeleted(ctx context.Context, deliveries []queue.Delivery, missing error) error {
	product, deleted := deliveries[0].Entry.ProductID, false
	err := w.untilAvailable(ctx, func(ctx context.Context) (err error) {
		deleted, err = w.store.Deleted(ctx, product)
		return err
	})
	switch {
	case err != nil:
		return err
	case !deleted:
		return missing
	}
	w.opt.Logger.Info("entries of a deleted product are done with", "product", product, "entries", len(deliveries))
	return nil
}
