package worker

import (
	"context"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// settleStrays settles copies from a broker whose entries do not wait in the
// outbox. Claims that have an order are done. The others belong to lost
// entries: they are adopted or they fail. If they were confirmed, their orders
// would have no mark in the ledger (I3).
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
	w.reportFailed(items[0].ProductID, outcome.Failed)
	return err
}

// unlessDeleted returns nil if the product of the entries was deleted, because
// such entries need no order. A broker may deliver a copy after the deletion. A
// Redis that lost its last seconds has acknowledged entries again.
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
	w.opt.Logger.Info("entries of a deleted product dropped", "product", product, "entries", len(deliveries))
	return nil
}
