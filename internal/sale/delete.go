package sale

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

const (
	// deleteMargin is what is left of a deadline when a deletion answers that there
	// is more to delete.
	deleteMargin = 5 * time.Second
	writtenPoll  = 50 * time.Millisecond
)

// Delete deletes a test product that has ended, with its orders and all that
// store and ledger have of it, and returns how many orders this call has deleted.
//
// It first makes sure that nothing of the product is on its way any more: the
// ledger refuses every claim, and no entry waits for a worker. Then the product is
// gone for everybody in one transaction of the store (BeginDelete), and the rest is
// deleted in parts. A call that is cut short is busy: repeated, it goes on.
func (d *Lifecycle) Delete(ctx context.Context, id uint32, actor store.Actor) (orders int, err error) {
	if err := d.endIfOver(ctx, id, actor); err != nil {
		return 0, err
	}
	unlock, err := d.lock(ctx, id)
	if err != nil {
		return 0, err
	}
	defer unlock()
	p, err := d.store.Product(ctx, id)
	if err == nil {
		err = d.checkDelete(ctx, &p)
	}
	// Not found may be one whose deletion has begun: the store tells.
	if err != nil && !seckill.CodeNotFound.In(err) {
		return 0, err
	}
	if p, err = d.store.BeginDelete(ctx, id, actor); err != nil {
		return 0, err
	}
	fault.Point("delete.after_begin")
	d.refreshed(ctx, id)
	if err := d.endOthers(ctx, &p); err != nil {
		return 0, err
	}
	if err := d.empty(ctx, &p); err != nil {
		return 0, err
	}
	fault.Point("delete.after_ledger")
	for {
		began := time.Now()
		some, done, err := d.store.DeleteSome(ctx, id)
		orders += some
		if err != nil {
			return orders, err
		}
		if done {
			d.log.Info("test product deleted", "product", id, "orders", orders)
			return orders, nil
		}
		fault.Point("delete.between_parts")
		if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) < deleteMargin {
			return orders, seckill.Errorf(seckill.CodeBusy, "%d orders of product %d were deleted, there are more: ask again", orders, id)
		}
		// The store's writers wait for each part: they have as much time between two.
		if err := background.Pause(ctx, time.Since(began)); err != nil {
			return orders, seckill.Errorf(seckill.CodeBusy, "the deletion was cut short: %w", err)
		}
	}
}

// endIfOver ends the sale of a test product that is over by the clock: the ledger
// does not know the time.
func (d *Lifecycle) endIfOver(ctx context.Context, id uint32, actor store.Actor) error {
	p, err := d.store.Product(ctx, id)
	if seckill.CodeNotFound.In(err) {
		return nil
	}
	if err == nil && p.Test && p.State != seckill.SaleEnded && over(&p, d.clock.Now()) {
		_, err = d.SetState(ctx, id, seckill.SaleEnded, actor)
	}
	return err
}

// checkDelete makes the ledger obey the end of the sale, and says whether
// anything of it waits to be written.
func (d *Lifecycle) checkDelete(ctx context.Context, p *seckill.Product) error {
	if err := p.CheckDelete(); err != nil {
		return err
	}
	if err := d.applyState(ctx, p); err != nil {
		return err
	}
	return d.awaitWritten(ctx, p.ID)
}

// awaitWritten waits for a moment until no entry of a product waits for a worker.
func (d *Lifecycle) awaitWritten(ctx context.Context, id uint32) error {
	asking, cancel := d.brief(ctx)
	defer cancel()
	for {
		waiting, err := d.queue.Stats(asking, id)
		switch {
		case err != nil:
			return seckill.Errorf(seckill.CodeBusy, "read queue: %w", err)
		case waiting.Entries == 0:
			return nil
		case background.Pause(asking, writtenPoll) != nil:
			return seckill.Errorf(seckill.CodeBusy, "%d reservations of product %d are still queued; ask again when they are written", waiting.Reservations, id)
		}
	}
}

// endOthers makes the ledger obey the end of the other products of the limit group.
// The store has ended them all (BeginDelete). Until the deletion is done, a purchase
// of one would meet units that the ledger has let go of, and the store has not.
func (d *Lifecycle) endOthers(ctx context.Context, p *seckill.Product) error {
	products, err := d.store.CurrentProducts(ctx) // every test product is one
	if err != nil {
		return err
	}
	for i := range products {
		if other := &products[i]; other.Group == p.Group {
			if err := d.applyState(ctx, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// empty takes stock and marks out of the product's shards: they get a new epoch
// without any, which is never opened. That leaves what tells a late call that its
// epoch is over, and touches no mark of another product of the limit group.
func (d *Lifecycle) empty(ctx context.Context, p *seckill.Product) error {
	if !p.HasLedger() || p.Epoch == 0 {
		return nil
	}
	emptied := *p
	emptied.Seller = seckill.SellerLedger // whoever sold last: its shards may be there
	above, err := d.highestEpoch(ctx, &emptied)
	if err != nil {
		return err
	}
	emptied.Epoch = max(above, p.Epoch) + 1
	return eachShard(&emptied, func(shard ledger.Shard) error {
		_, err := d.ledger.Install(ctx, ledger.Allotment{Shard: shard, Limit: p.PerUserLimit, State: seckill.SaleEnded}, nil)
		if err != nil {
			return seckill.Errorf(seckill.CodeBusy, "empty shard %d: %w", shard.Index, err)
		}
		return nil
	})
}
