package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/background"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/internal/store"
)

const (
	releasePerPage = 500
	releaseAtOnce  = 16 // shards
	// releaseTimeout bounds one ledger step. A shard that is away must not
	// delay the units of others.
	releaseTimeout = 2 * time.Second
)

// Releaser returns the units of dead orders to the ledger, and repeats until
// the ledger has confirmed (protocol 4). The store gave the units up first, so
// a unit is never resold before that.
type Releaser struct {
	Store interface {
		ReleasesDue(ctx context.Context, limit int, except ...store.Part) ([]store.Release, error)
		SettleReleases(ctx context.Context, done []store.Release) error
	}
	Lanes ledger.Writer
	// OnReleased gets a product that has free units again. Calls may be
	// concurrent.
	OnReleased func(product uint32)
	// OnTrouble requests a check of a product whose ledger cannot take a
	// release: it is closed, lost or behind the store. It must not block.
	OnTrouble func(product uint32, err error)

	postponed background.Postponed[store.Part] // shards that did not answer
}

// Round sends all owed releases. A release that a shard cannot take stays owed,
// and the round skips that shard. From then on, a shard that did not answer
// comes after all others. Round returns the errors at its end.
func (r *Releaser) Round(ctx context.Context) error {
	return background.Work[store.Part, store.Release]{
		Postponed: &r.postponed, AtOnce: releaseAtOnce, Due: r.Store.ReleasesDue, Limit: releasePerPage, All: true, Do: r.tell,
		Key: func(d *store.Release) store.Part { return store.Part{ProductID: d.ProductID, Shard: d.Shard} },
	}.Round(ctx)
}

// tell sends the releases of one shard, epoch by epoch.
func (r *Releaser) tell(ctx context.Context, part store.Part, due []store.Release) error {
	var errs []error
	for shard, releases := range byShard(due) {
		err := r.release(ctx, shard, releases)
		if sale.LaneFinished(err) {
			r.OnTrouble(part.ProductID, err)
		}
		errs = append(errs, err)
		if errors.Is(err, background.ErrNoAnswer) {
			break
		}
	}
	return errors.Join(errs...)
}

// release sends the releases of one epoch in as many steps as needed. Undecided
// releases stay owed and are sent again.
func (r *Releaser) release(ctx context.Context, shard ledger.Shard, releases []store.Release) error {
	for len(releases) > 0 {
		undecided, err := r.step(ctx, shard, releases)
		if err != nil {
			return err
		}
		if len(undecided) == len(releases) {
			return fmt.Errorf("ledger decided nothing of %d releases", len(releases))
		}
		releases = undecided
	}
	return nil
}

// step is one ledger step. If the ledger's epoch is equal, a release frees the
// unit if the mark still holds the order, and is settled in any case. If it is
// higher, the release is settled: the snapshot counted the unit. If it is
// lower, the ledger refuses, and the release is sent again later.
func (r *Releaser) step(ctx context.Context, shard ledger.Shard, releases []store.Release) (undecided []store.Release, err error) {
	orders := make([]ledger.ReleaseOrder, len(releases))
	for i, release := range releases {
		orders[i] = ledger.ReleaseOrder{OrderNo: release.OrderNo, Buyer: release.Buyer}
	}
	var result ledger.Result
	err = background.Within(ctx, releaseTimeout, func(ctx context.Context) (err error) {
		result, err = r.Lanes.Do(ctx, shard, ledger.Release{Orders: orders})
		return err
	})
	var other *ledger.EpochError
	if err != nil && !(errors.As(err, &other) && other.Epoch > shard.Epoch) {
		return nil, err
	}
	fault.Point("release.after_ledger")
	if err != nil {
		return nil, r.Store.SettleReleases(ctx, releases)
	}
	if len(result.Verdicts) != len(releases) {
		return nil, fmt.Errorf("ledger gave %d verdicts on %d releases", len(result.Verdicts), len(releases))
	}
	var done []store.Release
	returned := false
	for i, release := range releases {
		code := result.Verdicts[i].Code
		if code == ledger.VerdictUndecided {
			undecided = append(undecided, release)
			continue
		}
		done = append(done, release)
		returned = returned || code == ledger.VerdictReleased
	}
	if returned {
		r.OnReleased(shard.Product)
	}
	return undecided, r.Store.SettleReleases(ctx, done)
}

func byShard(due []store.Release) map[ledger.Shard][]store.Release {
	groups := make(map[ledger.Shard][]store.Release)
	for _, release := range due {
		shard := ledger.Shard{Product: release.ProductID, Group: release.Group, Index: release.Shard, Epoch: release.Epoch}
		groups[shard] = append(groups[shard], release)
	}
	return groups
}
