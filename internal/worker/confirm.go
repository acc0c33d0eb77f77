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

// confirm settles the deliveries of one product: each claim is confirmed,
// failed, adopted or parked. When it returns nil, the store or the ledger has
// every claim, and the entries may be acknowledged.
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
	w.reportFailed(b.product, outcome.Failed)
	if err != nil {
		return err
	}
	w.raise(ids)
	return nil
}

// batch is the items of one product that are being written to the store.
type batch struct {
	worker  *Worker
	product uint32
	witness []queue.ID
	park    []store.Parked // claims that cannot be written; the next transaction parks them
	old     []store.Item   // items of an older epoch: to be adopted
}

// confirm writes items in one transaction. If the transaction fails because of
// its data, confirm splits the batch until the bad claim is alone. The next
// transaction of the others parks that claim, so nothing waits behind it.
func (b *batch) confirm(ctx context.Context, items []store.Item) error {
	if err := ctx.Err(); err != nil {
		return err // stopping: a transaction may take long, and the entries stay in the queue
	}
	var outcomes []store.ConfirmOutcome
	err := b.worker.untilAvailable(ctx, func(ctx context.Context) (err error) {
		outcomes, err = b.worker.store.Confirm(ctx, store.ConfirmRequest{
			ProductID: b.product, Items: items, Park: b.park, Witness: b.witness, ExpireAfter: b.worker.opt.ExpireAfter,
			Committing: func() { b.worker.maybeStored.begin(items, b.park) },
		})
		return err
	})
	switch {
	case err == nil:
		b.park = nil
		b.schedule(items, outcomes)
		b.worker.reportFailed(b.product, recovery.FailedPromises(items, outcomes))
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
		return err // the product is missing: no claim is bad, and no letter can be written
	case len(items) == 0:
		return err // the letters themselves fail: the entries must wait
	case len(items) == 1 && len(b.park) == 0:
		b.setAside(items, err.Error())
		return nil
	case len(items) == 1:
		// Find out whether the item or a parked letter beside it is bad: write
		// the letters alone.
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

// schedule registers new orders for expiry. The store counted their time to pay
// from an earlier moment, so none expires early.
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

// reportFailed logs promises that have just failed, and alerts.
func (w *Worker) reportFailed(product uint32, failed []recovery.FailedPromise) {
	if lost := recovery.LogFailedPromises(w.opt.Logger, product, failed); lost != nil {
		w.opt.OnAlert(alert.NotKept, product, lost)
	}
}

// setAside parks items at the first step of the retry ladder.
func (b *batch) setAside(items []store.Item, reason string) {
	for _, item := range items {
		b.park = append(b.park, store.Parked{Item: item, Reason: reason, Delay: b.worker.opt.Ladder[0]})
		b.worker.opt.Logger.Warn("claim parked", "product", b.product, "order_no", item.Claim.OrderNo.String(), "reason", reason)
	}
}

// parkRest writes the letters that no other transaction has written.
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

// adopt reserves claims of older epochs again in the present epoch, or fails
// them.
func (w *Worker) adopt(ctx context.Context, items []store.Item) (recovery.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, storeDeadline)
	defer cancel()
	return w.adopter.Adopt(ctx, items)
}
