package sale

import (
	"context"
	"time"

	"seckill"
)

const (
	// othersQuiet is how long a product has had no order written when the other
	// instances count as done with theirs: each looks for what has changed within
	// a second, also if no notice reaches it. reofferDeadline bounds this too.
	othersQuiet = 1200 * time.Millisecond
	othersPoll  = 100 * time.Millisecond
	// unreadMost is how long the store may go unread while a product counts as
	// quiet: a reading that failed makes a longer gap. While the store was away
	// nobody could write promises.
	unreadMost = 1500 * time.Millisecond
)

// calm is since when this instance has seen a product due for a rebuild and
// no order of it written.
type calm struct {
	epoch, version uint64
	since          time.Time
}

// watchRebuild notes how long a product has been calm, by the terms of two readings
// of the catalogue that ended gap apart, the second one now.
//
// Only a rebuild that this instance has seen become due within an epoch counts:
// it stays due until the next epoch. One that was due when the epoch began may
// have been done, promises made, and another become due, between the two
// readings.
func (s *Sale) watchRebuild(before, after *seckill.Product, now time.Time, gap time.Duration) {
	last := s.calm.Load()
	switch {
	case !after.Rebuilding || before == nil || before.Epoch != after.Epoch:
		s.calm.Store(nil)
	case !before.Rebuilding:
		s.calm.Store(&calm{after.Epoch, after.Version, now})
	case last != nil && (last.version != after.Version || gap > unreadMost):
		s.calm.Store(&calm{after.Epoch, after.Version, now})
	}
}

// awaitOthers gives other instances the time to write what they have promised,
// from when the rebuild became due, whoever requested it: as long as orders of it
// are written, and a while longer. What is promised and not written by the
// snapshot may find its unit sold when it is adopted.
//
// A loss of the queue's entries makes all products due in one transaction, so
// that they wait together: those whose turn comes later have waited by then. All who
// wait share the catalogue's readings.
func (d *Lifecycle) awaitOthers(ctx context.Context, p *seckill.Product, due time.Time) {
	// Before a sale nothing was promised. After it nothing is sold: whatever was
	// promised finds its unit whenever it is adopted.
	if window := p.Window(d.clock.Now()); !d.others || window == seckill.CodeNotStarted || window == seckill.CodeEnded {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reofferDeadline)
	defer cancel()
	ticker := time.NewTicker(othersPoll)
	defer ticker.Stop()
	version, moved := p.Version, due
	for {
		err := d.catalog.Refresh(ctx)
		if s := d.catalog.Find(p.ID); err == nil && s != nil {
			terms := s.Terms()
			if terms.Epoch != p.Epoch {
				return // another instance was quicker
			}
			if terms.Version != version {
				version, moved = terms.Version, time.Now()
			}
			if c := s.calm.Load(); c != nil && c.epoch == p.Epoch && c.version == version && c.since.Before(moved) {
				moved = c.since
			}
		}
		if time.Since(moved) >= othersQuiet {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// checkWitness has the queue's own loss noticed now, if it has one: noticed
// later, by a worker, it would have every product rebuilt once more. Rebuilds
// that come to this together share a look.
func (d *Lifecycle) checkWitness(ctx context.Context) {
	if d.witness == nil {
		return
	}
	err := d.looks.do(ctx, func(ctx context.Context) (time.Duration, error) { return 0, d.witness.CheckWitness(ctx) })
	if err != nil {
		d.log.Warn("witness not checked before recovery; the next acknowledgement will", "error", err)
	}
}
