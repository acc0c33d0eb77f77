package sale

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/aside"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// MoveShares looks after the fallback shares of open sales: MoveShare for each
// that has something left.
func (d *Desk) MoveShares(ctx context.Context) error {
	var left []uint32
	now := d.clock.Now()
	for _, s := range d.catalog.All() {
		p := s.Terms()
		if p.ShareLeft == 0 || p.Epoch == 0 || p.Window(now) != "" {
			continue
		}
		left = append(left, p.ID)
	}
	return d.shareAside.Each(ctx, stockAtOnce, func(ctx context.Context, id uint32) error {
		err := aside.Within(ctx, stockTimeout, func(ctx context.Context) error {
			_, err := d.MoveShare(ctx, id)
			return err
		})
		if err != nil {
			return fmt.Errorf("share of product %d: %w", id, err)
		}
		return nil
	}, left)
}

// MoveShare hands what is left of a product's fallback share to its ledger, if
// that is there and has nothing left to sell (protocol 5), and reports whether
// it did.
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
	if err := d.takeShare(ctx, &p); err != nil {
		return false, err
	}
	return true, nil
}

// takeShare moves the share. The units are a stock change that is recorded
// before it is told: whatever dies in between, FinishStockChanges tells it. The
// change's id is made of the version that was read, so that two instances that
// look at once make one change.
func (d *Desk) takeShare(ctx context.Context, p *seckill.Product) error {
	actor := store.Actor{Name: "system", Reason: "the ledger is sold out"}
	change, err := d.store.TakeShare(ctx, p.ID, fmt.Sprintf("share-%d-%d", p.ID, p.Version), actor)
	if err != nil {
		return err
	}
	fault.Point("share.after_take")
	if _, err := d.finishChange(ctx, change); err != nil {
		return fmt.Errorf("taken, not told to the ledger yet: %w", err)
	}
	d.log.Info("fallback share moved to the ledger", "product", p.ID, "units", change.Delta)
	return d.refreshed(ctx, p.ID)
}

// shareChangesLooked bounds the open stock changes that are looked through for
// units on their way from a share; with more of them one cannot tell.
const shareChangesLooked = 1000

// ShareGone reports whether, at some instant of the call, no unit was free in
// the product's fallback share, nor on its way from there to the ledger. With
// that instant between two looks at the shards which show nothing returned,
// "sold out" is proven over both sellers (I7).
//
// It is asked for claims that the ledger has too few units for. To them it is
// sold out, so what is found here is handed to the ledger (protocol 5) even if
// that has some units left: with buyers who want more than those, neither they
// nor the share would ever be sold.
func (d *Desk) ShareGone(ctx context.Context, id uint32) (bool, error) {
	unlock, err := d.lock(ctx, id)
	if err != nil {
		return false, err
	}
	defer unlock()
	p, err := d.store.Product(ctx, id)
	if err != nil {
		return false, err
	}
	if p.ShareLeft > 0 {
		return false, d.takeShare(ctx, &p)
	}
	// Read after the product: what was on its way then is open still, or has
	// reached the ledger meanwhile, where the second look shows it.
	due, err := d.store.StockChangesDue(ctx, shareChangesLooked)
	if err != nil {
		return false, err
	}
	gone := len(due) < shareChangesLooked
	for _, change := range due {
		if change.ProductID != id || change.Delta < 0 {
			continue
		}
		gone = false
		if _, err := d.finishChange(ctx, change); err != nil {
			return false, err
		}
	}
	return gone, nil
}

// soldOut reports whether the product's ledger is live and has no free unit,
// on no shard and under way to none.
func (d *Desk) soldOut(ctx context.Context, p *seckill.Product) (bool, error) {
	if p.Rebuilding {
		return false, nil
	}
	var free int64
	for i := range p.Shards {
		f, err := d.ledger.Read(ctx, ledger.ShardOf(p, i))
		if err != nil {
			return false, seckill.Errorf(seckill.CodeBusy, "read ledger: %w", err)
		}
		if f.Epoch != p.Epoch || !f.Open {
			return false, nil
		}
		free += f.Unsold()
	}
	return free == 0, nil
}
