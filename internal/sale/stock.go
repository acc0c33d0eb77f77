package sale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// ChangeStock adds delta units to what is offered, or takes free ones away.
// Up, the store comes first; down, the ledger: a unit is never sold that the
// store does not have. The change is recorded under its id before anything
// moves, so that a crash at any step is finished by FinishStockChanges. Once it
// is recorded, it is returned without an error: an open one will be finished,
// and to make it again under another id would count it twice.
func (d *Lifecycle) ChangeStock(ctx context.Context, id uint32, delta int64, changeID string, actor store.Actor) (store.StockChange, error) {
	if delta == 0 || delta > seckill.MaxStock || delta < -seckill.MaxStock {
		return store.StockChange{}, seckill.Errorf(seckill.CodeBadRequest, "delta must be 1 to %d, up or down", seckill.MaxStock)
	}
	unlock, err := d.lock(ctx, id)
	if err != nil {
		return store.StockChange{}, err
	}
	defer unlock()
	change, err := d.store.BeginStockChange(ctx, store.StockChange{ID: changeID, ProductID: id, Delta: delta, Actor: actor})
	if err != nil {
		return change, err
	}
	if change.ProductID != id || change.Delta != delta {
		return change, seckill.Errorf(seckill.CodeWrongState, "change id %q belongs to another change", changeID)
	}
	fault.Point("stock.after_begin")
	finished, err := d.finishChange(ctx, change)
	if err != nil {
		d.log.Warn("stock change recorded, not finished yet", "product", id, "change", changeID, "error", err)
		return change, nil
	}
	if change = finished; change.Status == store.ChangeRefused {
		return change, seckill.Errorf(seckill.CodeWrongState, "fewer than %d units are free", -delta)
	}
	if s := d.catalog.Find(id); s != nil && delta > 0 {
		s.ClearSoldOut() // also where the store alone had to know
	}
	d.refreshed(ctx, id)
	return change, nil
}

const (
	stockAtOnce = 8 // products
	// stockTimeout bounds one change of a round. Units
	// that were gathered by then need not be again.
	stockTimeout = 3 * time.Second
)

// FinishStockChanges finishes what a crash or an outage left open. One product's
// trouble holds up no other's change.
func (d *Lifecycle) FinishStockChanges(ctx context.Context, limit int) error {
	return background.Work[uint32, store.StockChange]{
		Postponed: &d.stockAside, AtOnce: stockAtOnce, Due: d.store.StockChangesDue, Limit: limit, Do: d.finishChanges,
		Key: func(c *store.StockChange) uint32 { return c.ProductID },
	}.Round(ctx)
}

// finishChanges finishes changes of one product.
func (d *Lifecycle) finishChanges(ctx context.Context, _ uint32, changes []store.StockChange) error {
	var errs []error
	for _, change := range changes {
		err := background.Within(ctx, stockTimeout, func(ctx context.Context) error { return d.finishLocked(ctx, change) })
		if err != nil {
			errs = append(errs, fmt.Errorf("stock change %s: %w", change.ID, err))
		}
		if errors.Is(err, background.ErrNoAnswer) {
			break
		}
	}
	return errors.Join(errs...)
}

func (d *Lifecycle) finishLocked(ctx context.Context, change store.StockChange) error {
	unlock, err := d.lock(ctx, change.ProductID)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = d.finishChange(ctx, change)
	return err
}

// finishChange tells the ledger until heard, then settles the store.
func (d *Lifecycle) finishChange(ctx context.Context, change store.StockChange) (store.StockChange, error) {
	if change.Status != store.ChangeOpen {
		return change, nil
	}
	p, err := d.store.Product(ctx, change.ProductID)
	if err != nil {
		return change, err
	}
	if change.Delta < 0 && change.Epoch != p.Epoch {
		// The epoch that the intention was meant for is gone, and with it
		// whatever the ledger took: begin again under the present one.
		if change, err = d.store.RestampStockChange(ctx, change.ID); err != nil {
			return change, err
		}
		if change.Status != store.ChangeOpen {
			return change, nil // another has finished it
		}
	}
	// While the store is the seller no ledger has the units: the store decides. The
	// next ledger is built from it.
	refused := false
	if !p.SoldByStore() {
		if refused, err = d.tellLedger(ctx, &p, change); err != nil {
			return change, err
		}
	}
	fault.Point("stock.after_ledger")
	done, err := d.store.FinishStockChange(ctx, change.ID, change.Epoch, refused)
	if errors.Is(err, store.ErrEpoch) {
		return change, fmt.Errorf("the ledger was rebuilt meanwhile: %w", err)
	}
	if s := d.catalog.Find(p.ID); s != nil && done.Delta > 0 {
		s.ClearSoldOut()
	}
	return done, err
}

// tellLedger changes shard 0 by the change's id. Units that are added there are
// pulled by the other shards as they need them; those to take away are gathered
// there first, and whether they were enough the shard alone decides. A shard of
// a higher epoch has counted an upward change in its snapshot already.
func (d *Lifecycle) tellLedger(ctx context.Context, p *seckill.Product, change store.StockChange) (refused bool, err error) {
	ctx, cancel := d.brief(ctx)
	defer cancel()
	if change.Delta < 0 && p.Shards > 1 {
		if _, _, err := d.mover.Gather(ctx, p, 0, -change.Delta); err != nil {
			return false, fmt.Errorf("gather units to take away: %w", err)
		}
	}
	shard := ledger.ShardOf(p, 0)
	shard.Epoch = change.Epoch
	result, err := d.lanes.Do(ctx, shard, ledger.StockChange{ID: change.ID, Delta: change.Delta})
	var other *ledger.EpochError
	if errors.As(err, &other) && change.Delta > 0 && other.Epoch > change.Epoch {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("tell the ledger: %w", err)
	}
	return result.Verdicts[0].Code == ledger.VerdictRefused, nil
}
