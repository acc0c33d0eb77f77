package sale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

const (
	// writeDeadline bounds how long a recovery writes queued entries: 60,000 and
	// more for a store that takes 1,000 a second. What is left is adopted.
	writeDeadline = time.Minute
	// writeAtOnce is how many claims are handed on together.
	writeAtOnce = 500
	// closeDeadline bounds closing the shards before it. What could not be closed
	// sells on until the new epoch, and is adopted.
	closeDeadline = 2 * time.Second
	// reofferDeadline bounds the other half of step 1: writing what this
	// instance remembers of its answers.
	reofferDeadline = 5 * time.Second
	// buildAtOnce is how many ledgers are built at a time. Waiting for others
	// does not count: after a loss of everything all products wait together.
	buildAtOnce = 16
	// openDeadline bounds opening what was installed.
	openDeadline = 10 * time.Second
)

// Preheat hands the product's stock to the ledger under a new epoch. Repeated
// while that epoch is live it changes nothing. A ledger that misses its keys
// after the first preheat is recovered, never preheated: its units may be
// promised. A direct product is only opened.
func (d *Lifecycle) Preheat(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
	unlock, err := d.lock(ctx, id)
	if err != nil {
		return seckill.Product{}, err
	}
	defer unlock()
	p, err := d.store.Product(ctx, id)
	if err != nil {
		return p, err
	}
	if p.State == seckill.SaleEnded {
		return p, seckill.Errorf(seckill.CodeWrongState, "the sale has ended")
	}
	return d.rebuildUnless(ctx, p, actor, func(now *seckill.Product) (bool, error) {
		if now.Epoch == 0 {
			return false, nil
		}
		return d.live(ctx, now)
	})
}

// Recover rebuilds the product's ledger from the store's truth under a new
// epoch. Anybody may recover; two at once are harmless.
func (d *Lifecycle) Recover(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
	unlock, err := d.lock(ctx, id)
	if err != nil {
		return seckill.Product{}, err
	}
	defer unlock()
	p, err := d.store.Product(ctx, id)
	if err != nil {
		return p, err
	}
	if p.Epoch == 0 {
		return p, seckill.Errorf(seckill.CodeWrongState, "the product was never preheated; there is nothing to recover")
	}
	if !p.HasLedger() {
		return p, seckill.Errorf(seckill.CodeWrongState, "the product is sold directly from the store; there is no ledger to recover")
	}
	return d.rebuildUnless(ctx, p, actor, func(now *seckill.Product) (bool, error) {
		// Another instance has just done what was asked for.
		if now.Epoch == p.Epoch {
			return false, nil
		}
		return d.live(ctx, now)
	})
}

// rebuild is protocol 3: close the shards, write what they have promised, bump
// the store's epoch with a snapshot of stock and marks, install it over lower
// epochs only, open.
//
// After a takeover it is the return: the store sells until the new epoch begins,
// of which the ledger is the seller again. The ledger of a limit group is opened
// only when the store sells none of its products any more (EndRebuild), and all
// that were to be rebuilt are installed: it must know every order that counts
// against a buyer's limit.
func (d *Lifecycle) rebuild(ctx context.Context, p seckill.Product, actor store.Actor) (seckill.Product, error) {
	if !p.HasLedger() {
		return d.openDirect(ctx, p, actor)
	}
	started := time.Now()
	built, err := d.build(ctx, p, actor)
	if err != nil {
		return built, err
	}
	group := []*seckill.Product{&built}
	for _, member := range d.members(&p) {
		now, err := d.store.Product(ctx, member.ID) // another may have taken it over, or returned it
		if err == nil && !now.SoldByStore() && !now.Rebuilding {
			continue
		}
		if err == nil {
			now, err = d.build(ctx, now, actor)
		}
		if err != nil {
			return built, fmt.Errorf("return product %d of the same limit group: %w", member.ID, err)
		}
		group = append(group, &now)
	}
	for _, one := range group {
		if err := d.openBuilt(ctx, one, started); err != nil {
			return built, err
		}
	}
	return built, nil
}

// openBuilt opens a ledger that was installed.
func (d *Lifecycle) openBuilt(ctx context.Context, p *seckill.Product, started time.Time) error {
	// Before anything is sold that could be lost again: a request for that must stay.
	switch err := d.store.EndRebuild(ctx, p.ID, p.Epoch); {
	case errors.Is(err, store.ErrEpoch):
		return seckill.Errorf(seckill.CodeBusy, "open product %d: %w", p.ID, err)
	case err != nil:
		return err
	}
	p.Rebuilding = false
	if err := d.open(ctx, p); err != nil {
		return err
	}
	fault.Point("rebuild.after_open")
	d.log.Info("ledger built", "product", p.ID, "epoch", p.Epoch, "stock", p.Stock, "took", time.Since(started))
	d.refreshed(ctx, p.ID)
	return nil
}

// build is a rebuild up to the opening.
func (d *Lifecycle) build(ctx context.Context, p seckill.Product, actor store.Actor) (seckill.Product, error) {
	seller := p.Seller
	p.Seller = seckill.SellerLedger // its shards are used again
	if p.Epoch > 0 {
		if err := d.prepare(ctx, &p, seller); err != nil {
			return p, err
		}
	}
	select {
	case d.building <- struct{}{}:
		defer func() { <-d.building }()
	case <-ctx.Done():
		return p, seckill.Errorf(seckill.CodeBusy, "rebuild: wait for others to be built: %w", ctx.Err())
	}
	// A store that was set back is behind its ledger. Over the same or a higher
	// epoch nothing is installed, and what is there is not this store's.
	above, err := d.highestEpoch(ctx, &p)
	if err != nil {
		return p, err
	}
	if above > p.Epoch {
		d.tellBehind(ctx, p.ID, above)
	}
	snap, err := d.snapshot(ctx, &p, above, actor)
	if err != nil {
		return p, err
	}
	fault.Point("rebuild.after_epoch")
	return snap.product, d.install(ctx, &snap)
}

// prepare is step 1: whatever the ledger has promised is written, if it can be in
// a while.
func (d *Lifecycle) prepare(ctx context.Context, p *seckill.Product, seller seckill.Seller) error {
	// What cannot be read cannot be installed either. Others wait for a place to
	// be recovered: seconds are not spent on what is away.
	if _, err := d.highestEpoch(ctx, p); err != nil {
		return err
	}
	if err := d.store.BeginRebuild(ctx, p.ID, p.Epoch); err != nil {
		return err
	}
	due := time.Now()
	d.peers.ProductChanged(p.ID) // the others answer busy meanwhile
	d.closeShards(ctx, p)
	if written, err := d.writeQueued(ctx, p, seller); err != nil {
		d.log.Warn("queued entries not written before recovery; they will be adopted after", "product", p.ID, "written", written, "error", err)
	}
	d.reofferAll(ctx, p.ID)
	if !p.StoreOpen { // else all instances have written their promises
		d.awaitOthers(ctx, p, due)
	}
	d.checkWitness(ctx)
	return nil
}

// openDirect opens a direct sale: its epoch says that it was preheated, and
// nothing else. There is no second one: nothing could be lost but with the
// store.
func (d *Lifecycle) openDirect(ctx context.Context, p seckill.Product, actor store.Actor) (seckill.Product, error) {
	if p.Epoch == 0 {
		snap, err := d.snapshot(ctx, &p, 0, actor)
		if err != nil {
			return p, err
		}
		p = snap.product
	}
	if err := d.store.EndRebuild(ctx, p.ID, p.Epoch); err != nil {
		return p, err
	}
	p.Rebuilding = false
	d.refreshed(ctx, p.ID)
	return p, nil
}

// snapshot is what the store knows at the beginning of an epoch.
type snapshot struct {
	product seckill.Product
	marks   []shardMarks // by shard
	parked  int64        // units of claims that have a letter and no order yet
}

// free is the units that the ledger may sell.
func (s *snapshot) free() int64 { return s.product.Stock - s.parked }

// snapshot opens the store's next epoch, above the ledger's.
func (d *Lifecycle) snapshot(ctx context.Context, p *seckill.Product, above uint64, actor store.Actor) (snapshot, error) {
	snap := snapshot{marks: make([]shardMarks, p.Shards)}
	var err error
	snap.product, err = d.store.OpenEpoch(ctx, p.ID, p.Epoch, above, actor, func(o seckill.Order) error {
		d.memory.Learn(o.Group, o.Buyer)
		snap.marks[seckill.HomeShard(p, o.Buyer)].add(&o)
		if o.Status == seckill.OrderQueued {
			snap.parked += int64(o.Quantity)
		}
		return nil
	})
	if errors.Is(err, store.ErrEpoch) {
		return snap, seckill.Errorf(seckill.CodeWrongState, "another instance is rebuilding this product")
	}
	if err != nil {
		return snap, fmt.Errorf("open epoch: %w", err)
	}
	return snap, nil
}

// tellBehind tells an operator that the store was set back. Epochs begin in the
// store, so that a ledger above it had its own from a newer one. The store is asked
// again: another instance may have opened that epoch since. A worker compares what
// was acknowledged, and learns nothing when the queue began anew after the store's
// copy was made; epochs go on.
func (d *Lifecycle) tellBehind(ctx context.Context, id uint32, above uint64) {
	if now, err := d.store.Product(ctx, id); err == nil && now.Epoch < above {
		d.alerts.Raise(alert.StoreOlder, id, fmt.Errorf("%s: the ledger is of epoch %d, the store has opened %d; "+
			"stop and restore a newer store, or accept that the orders in between are lost", alert.StoreOlder.Text, above, now.Epoch))
	}
}

// writeQueued writes every entry of the ledger's epoch that is not acknowledged
// into the store, whoever has received it: in the new epoch it would have to be
// adopted, and might find its unit sold. The shards are closed by now, so no
// entry comes after those that are read. Entries of older epochs have no unit in
// this one, and are adopted; while the store is the seller, it decides on all of
// them. Nothing is acknowledged: workers find the rows.
func (d *Lifecycle) writeQueued(ctx context.Context, p *seckill.Product, seller seckill.Seller) (written int, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeDeadline)
	defer cancel()
	var items []store.Item
	write := func() error {
		err := d.promises.Write(ctx, items)
		if err == nil {
			written += len(items)
		}
		items = items[:0]
		return err
	}
	err = d.queue.Unacknowledged(ctx, p.ID, func(e seckill.Entry) error {
		if e.Epoch == p.Epoch || seller == seckill.SellerStore {
			items = append(items, store.Items(&e)...)
		}
		if len(items) < writeAtOnce {
			return nil
		}
		return write()
	})
	if len(items) > 0 { // also if some of the outbox could not be read
		err = errors.Join(err, write())
	}
	return written, err
}

func (d *Lifecycle) closeShards(ctx context.Context, p *seckill.Product) {
	ctx, cancel := context.WithTimeout(ctx, closeDeadline)
	defer cancel()
	_ = eachShard(p, func(shard ledger.Shard) error {
		if err := d.ledger.Close(ctx, shard); err != nil {
			d.log.Warn("shard not closed before recovery", "product", p.ID, "shard", shard.Index, "error", err)
		}
		return nil
	})
}

// reofferAll writes what this instance remembers of the product's unconfirmed
// answers into the store, before its snapshot: in the new epoch they would have
// to be adopted. Other instances do that with theirs.
func (d *Lifecycle) reofferAll(ctx context.Context, id uint32) {
	ctx, cancel := context.WithTimeout(ctx, reofferDeadline)
	defer cancel()
	if err := d.promises.Reoffer(ctx, id); err != nil {
		d.log.Warn("promises not written before recovery; they will be adopted after", "product", id, "error", err)
	}
}

// install hands each shard its part of the free stock and its marks. The shards
// are built side by side: with millions of orders each takes a while.
func (d *Lifecycle) install(ctx context.Context, snap *snapshot) error {
	p := &snap.product
	err := eachShard(p, func(shard ledger.Shard) error {
		allotment := ledger.Allotment{
			Shard: shard, Available: Part(snap.free(), shard.Index, p.Shards), Limit: p.PerUserLimit, State: p.State,
		}
		epoch, err := d.ledger.Install(ctx, allotment, snap.marks[shard.Index].all())
		if err != nil {
			return seckill.Errorf(seckill.CodeBusy, "install shard %d: %w", shard.Index, err)
		}
		if epoch != p.Epoch { // since it was read, somebody went above
			return seckill.Errorf(seckill.CodeBusy, "install shard %d: it has epoch %d, above %d", shard.Index, epoch, p.Epoch)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fault.Point("rebuild.after_install")
	return nil
}

// open opens what was installed. The sale may have been paused or ended since
// the snapshot, by an instance that found no shard of this epoch to tell: its
// word is in the store by now, and must be in the ledger before anyone buys. The
// state is set also if it is the snapshot's: the version keeps off older news.
//
// An instruction that this instance remembers is written before: the ledger that
// kept it may be lost.
func (d *Lifecycle) open(ctx context.Context, p *seckill.Product) error {
	ctx, cancel := context.WithTimeout(ctx, openDeadline)
	defer cancel()
	if err := d.carry(ctx, p.ID); err != nil {
		return err
	}
	now, err := d.store.Product(ctx, p.ID)
	if err != nil {
		return err
	}
	err = eachShard(p, func(shard ledger.Shard) error {
		if _, err := d.ledger.SetState(ctx, shard, now.State, now.Version); err != nil {
			return seckill.Errorf(seckill.CodeBusy, "set the state of shard %d: %w", shard.Index, err)
		}
		opened, err := d.ledger.Open(ctx, shard)
		if err != nil {
			return seckill.Errorf(seckill.CodeBusy, "open shard %d: %w", shard.Index, err)
		}
		if !opened {
			return seckill.Errorf(seckill.CodeBusy, "shard %d has moved on beyond epoch %d", shard.Index, p.Epoch)
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.State = now.State
	return nil
}

// Part is shard i's part of units spread evenly over n shards.
func Part(units int64, i, n int) int64 {
	part := units / int64(n)
	if int64(i) < units%int64(n) {
		part++
	}
	return part
}
