package worker

import (
	"context"
	"errors"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/fault"
	"seckill/internal/queue"
	"seckill/internal/recovery"
	"seckill/internal/store"
)

// confirm settles the deliveries of one product: confirmed, failed, adopted
// or parked. When it returns nil, every claim of them is safe elsewhere and
// the entries may be acknowledged.
func (w *Worker) confirm(ctx context.Context, deliveries []queue.Delivery) error {
	var items, strays []store.Item
	var ids []queue.ID
	for i := range deliveries {
		if deliveries[i].Stray {
			strays = append(strays, store.Items(&deliveries[i].Entry)...)
			continue
		}
		items = append(items, store.Items(&deliveries[i].Entry)...)
		ids = append(ids, deliveries[i].ID)
	}
	if err := w.settleStrays(ctx, strays); err != nil || len(ids) == 0 {
		return err
	}
	b := &batch{worker: w, product: deliveries[0].Entry.ProductID, witness: ids}
	if err := b.confirm(ctx, items); err != nil {
		return err
	}
	if err := b.parkRest(ctx); err != nil {
		return err
	}
	fault.Point("worker.after_confirm")
	outcome, err := w.adopt(ctx, b.old)
	w.tellUnkept(b.product, outcome.Failed)
	if err != nil {
		return err
	}
	w.raise(ids)
	return nil
}

// batch is one product's items on their way into the store.
type batch struct {
	worker  *Worker
	product uint32
	witness []queue.ID
	park    []store.Parked // bad claims, to be written with the next transaction
	old     []store.Item   // of an older epoch: to be adopted
}

// confirm writes items in one transaction. A batch that fails on its data is
// split until the bad claim stands alone; that claim is parked in the next
// transaction of the others, so that nothing waits behind it.
func (b *batch) confirm(ctx context.Context, items []store.Item) error {
	if err := ctx.Err(); err != nil {
		return err // stopping: a transaction may take long, and all of this is safe where it is
	}
	var outcomes []store.ConfirmOutcome
	err := b.worker.untilAvailable(ctx, func(ctx context.Context) (err error) {
		outcomes, err = b.worker.store.Confirm(ctx, store.ConfirmRequest{
			ProductID: b.product, Items: items, Park: b.park, Witness: b.witness, ExpireAfter: b.worker.opt.ExpireAfter,
			Committing: func() { b.worker.doubts.begin(items, b.park) },
		})
		return err
	})
	switch {
	case err == nil:
		b.park = nil
		b.schedule(items, outcomes)
		b.worker.tellUnkept(b.product, recovery.FailedPromises(items, outcomes))
		for i, outcome := range outcomes {
			if outcome == store.ConfirmOldEpoch {
				b.old = append(b.old, items[i])
			}
		}
		return nil
	case errors.Is(err, store.ErrConflict):
		b.setAside(items, "conflict: "+err.Error())
		return nil
	case errors.Is(err, store.ErrShort), errors.Is(err, store.ErrEpoch), errors.Is(err, store.ErrUnavailable), ctx.Err() != nil:
		return err
	case seckill.CodeNotFound.In(err):
		return err // the product's: no claim is bad, and no letter can be written
	case len(items) == 0:
		return err // the letters themselves are refused: the entries must wait
	case len(items) == 1 && len(b.park) == 0:
		b.setAside(items, err.Error())
		return nil
	case len(items) == 1:
		// Is it the item or a parked letter beside it? Write the letters alone.
		if err := b.parkRest(ctx); err != nil {
			return err
		}
		return b.confirm(ctx, items)
	}
	half := len(items) / 2
	if err := b.confirm(ctx, items[:half]); err != nil {
		return err
	}
	return b.confirm(ctx, items[half:])
}

// schedule has the new orders of a transaction expire. The store has counted
// their time to pay from a moment before now.
func (b *batch) schedule(items []store.Item, outcomes []store.ConfirmOutcome) {
	expiry := b.worker.opt.Expiry
	if expiry == nil {
		return
	}
	var orders []seckill.OrderNo
	for i, outcome := range outcomes {
		if outcome == store.ConfirmNew {
			orders = append(orders, items[i].Claim.OrderNo)
		}
	}
	if len(orders) > 0 {
		expiry.Schedule(b.product, orders, time.Now().Add(b.worker.opt.ExpireAfter))
	}
}

// tellUnkept lists promises that have just failed.
func (w *Worker) tellUnkept(product uint32, failed []recovery.FailedPromise) {
	if lost := recovery.TellFailedPromises(w.opt.Logger, product, failed); lost != nil {
		w.opt.OnAlert(alert.NotKept, product, lost)
	}
}

// setAside puts items on the first rung of the ladder.
func (b *batch) setAside(items []store.Item, reason string) {
	for _, item := range items {
		b.park = append(b.park, store.Parked{Item: item, Reason: reason, Delay: b.worker.opt.Ladder[0]})
		b.worker.opt.Logger.Warn("claim parked", "product", b.product, "order_no", item.Claim.OrderNo.String(), "reason", reason)
	}
}

// parkRest writes letters that no other transaction took along.
func (b *batch) parkRest(ctx context.Context) error {
	if len(b.park) == 0 {
		return nil
	}
	if err := b.confirm(ctx, nil); err != nil {
		return err
	}
	if len(b.park) > 0 {
		return store.ErrConflict // not written: the entries must wait
	}
	return nil
}

// adopt carries claims of older epochs into the present one, or fails them.
func (w *Worker) adopt(ctx context.Context, items []store.Item) (recovery.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, storeDeadline)
	defer cancel()
	return w.adopter.Adopt(ctx, items)
}
