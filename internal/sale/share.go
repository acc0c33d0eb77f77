package sale

import (
	"context"
	"errors"
	"fmt"

	"seckill"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// MoveShares looks after the fallback shares of open sales: MoveShare for each
// that has something left.
func (d *Desk) MoveShares(ctx context.Context) error {
	var errs []error // one product's trouble must not hold up another's share
	now := d.clock.Now()
	for _, s := range d.catalog.All() {
		p := s.Terms()
		if p.ShareLeft == 0 || p.Epoch == 0 || p.Window(now) != "" {
			continue
		}
		if _, err := d.MoveShare(ctx, p.ID); err != nil {
			errs = append(errs, fmt.Errorf("share of product %d: %w", p.ID, err))
		}
	}
	return errors.Join(errs...)
}

// MoveShare hands what is left of a product's fallback share to its ledger, if
// that is there and has nothing left to sell (protocol 5), and reports whether
// it did. The units are a stock change that is recorded before it is told:
// whatever dies in between, FinishStockChanges tells it. The change's id is made
// of the version that was read, so that two instances that look at once make
// one change.
func (d *Desk) MoveShare(ctx context.Context, id uint32) (bool, error) {
	unlock, err := d.lock(ctx, id)
	if err != nil {
		return false, err
	}
	defer unlock()
	p, err := d.store.Product(ctx, id)
	if err != nil || p.ShareLeft == 0 || p.Epoch == 0 {
		return false, err
	}
	empty, err := d.soldOut(ctx, &p)
	if err != nil || !empty {
		return false, err
	}
	actor := store.Actor{Name: "system", Reason: "the ledger is sold out"}
	change, err := d.store.TakeShare(ctx, id, fmt.Sprintf("share-%d-%d", id, p.Version), actor)
	if err != nil {
		return false, err
	}
	fault.Point("share.after_take")
	if _, err := d.finishChange(ctx, change); err != nil {
		return false, fmt.Errorf("taken, not told to the ledger yet: %w", err)
	}
	return true, d.refreshed(ctx, id)
}

// soldOut reports whether the product's ledger is live and has no free unit,
// on no shard and under way to none.
func (d *Desk) soldOut(ctx context.Context, p *seckill.Product) (bool, error) {
	if p.Rebuilding {
		return false, nil
	}
	var free int64
	for i := range p.Shards {
		f, err := d.ledger.Read(ctx, ShardOf(p, i))
		if err != nil {
			return false, seckill.Errorf(seckill.CodeBusy, "read ledger: %w", err)
		}
		if f.Epoch != p.Epoch || !f.Open {
			return false, nil
		}
		free += freeUnits(&f)
	}
	return free == 0, nil
}

// freeUnits are a shard's part of the units that nobody has: those in transit
// count where they were sent.
func freeUnits(f *ledger.Figures) int64 { return f.Available + f.Sent - f.Received }
