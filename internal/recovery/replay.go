package recovery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/ledger"
)

const (
	// heldAtOnce bounds the concurrent reads of the ledger for one product.
	heldAtOnce = 16
	// heldWithin bounds the reads of one round. It is many times the need of a
	// busy ledger, and leaves a rebuild some of the 5 s in which it waits for
	// promises.
	heldWithin = 3 * time.Second
)

// BookLedger reads the claims that the ledger holds for a buyer.
type BookLedger interface {
	Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error)
}

// Load adds an entry that this instance wrote to the journal before its last
// start.
//
// If everything lost power at once, the ledger may lack its last second, and no
// process is left that remembers it: the loss is silent (protocol 1). So the
// rounds check every loaded promise: whether the store has it, and if not,
// whether the ledger has it. If the ledger lacks one, it is rebuilt, and the
// promise is written into the store before that (protocol 3, step 1).
func (b *Book) Load(entry seckill.Entry, at JournalPlace) {
	now := b.opt.Now()
	b.keep(&record{entry: entry, since: now, ask: now, at: at, loaded: true})
}

// Replay checks all loaded promises once. Call it before the sale begins,
// because the units of missing promises must not be sold to others. If a part
// of the ledger is away, later rounds check the promises of that part.
func (b *Book) Replay(ctx context.Context) error {
	for b.hasUnasked() {
		if err := b.Round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hasUnasked reports whether the check of a loaded promise is due.
func (b *Book) hasUnasked() bool {
	now := b.opt.Now()
	for i := range b.stripes {
		s := &b.stripes[i]
		s.mu.Lock()
		due := slices.ContainsFunc(s.kept, func(r *record) bool { return r.loaded && !now.Before(r.ask) })
		s.mu.Unlock()
		if due {
			return true
		}
	}
	return false
}

// checkLoaded checks whether the ledger has the loaded promises of its present
// epoch that the store lacks. A promise that the ledger has is in the outbox or
// in a letter.
func (b *Book) checkLoaded(ctx context.Context, due []*record) error {
	checks := make(map[uint32]*ledgerCheck)
	for _, r := range due {
		if r.loaded && len(r.entry.Claims) > 0 && b.present(&r.entry) {
			d := checks[r.entry.ProductID]
			if d == nil {
				d = &ledgerCheck{product: r.entry.ProductID, epoch: r.entry.Epoch, absent: make(map[seckill.OrderNo]bool)}
				checks[d.product] = d
			}
			d.records = append(d.records, r)
		}
	}
	// Check all products at once and for a short time: one ledger that is away
	// must delay neither the others nor a handover of promises.
	within, cancel := context.WithTimeout(ctx, heldWithin)
	defer cancel()
	var asked sync.WaitGroup
	for _, d := range checks {
		asked.Go(func() { d.err = b.ask(within, d) })
	}
	asked.Wait()
	var errs []error
	for _, d := range checks {
		if err := b.resolve(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("check promises of product %d in the journal: %w", d.product, err))
		}
	}
	return errors.Join(errs...)
}

// ledgerCheck is the loaded promises of one product that are checked in the ledger.
type ledgerCheck struct {
	product  uint32
	epoch    uint64
	records  []*record
	suspects []*record                // the ledger lacks claims of these
	absent   map[seckill.OrderNo]bool // the claims that the ledger lacks
	err      error
}

// resolve requests a rebuild of a ledger that lacks promises which the store
// lacks too.
func (b *Book) resolve(ctx context.Context, d *ledgerCheck) error {
	if d.err != nil || len(d.suspects) == 0 {
		return d.err
	}
	// An order that was written and released after the first read of the store
	// has a row.
	if err := b.dropSettled(ctx, d.suspects); err != nil {
		return err
	}
	missing := 0
	for _, r := range d.suspects {
		for i := range r.entry.Claims {
			if d.absent[r.entry.Claims[i].OrderNo] {
				missing++
			}
		}
	}
	if missing == 0 {
		return nil
	}
	b.opt.Logger.Warn("promises of the journal are neither in the store nor in the ledger; the ledger is rebuilt with them",
		"product", d.product, "epoch", d.epoch, "promises", missing)
	return b.opt.OnMissing(ctx, d.product, d.epoch, missing)
}

// present reports whether a promise is of the present epoch and its product is
// not being rebuilt. Promises of older epochs are adopted, and promises of a
// rebuild are written, without a check.
func (b *Book) present(e *seckill.Entry) bool {
	terms := b.opt.Terms(e.ProductID)
	return terms != nil && terms.Epoch == e.Epoch && !terms.Rebuilding
}

// ask finds the promises of one product that the ledger lacks. A record that
// the ledger has completely needs no further check.
func (b *Book) ask(ctx context.Context, d *ledgerCheck) error {
	var mu sync.Mutex
	asking, within := errgroup.WithContext(ctx) // the first error cancels the others
	asking.SetLimit(heldAtOnce)
	for _, r := range d.records {
		asking.Go(func() error {
			whole := true
			for i := range r.entry.Claims {
				claim := &r.entry.Claims[i]
				held, err := b.holds(within, &r.entry, claim)
				if err != nil {
					return err
				}
				if !held {
					whole = false
					mu.Lock()
					d.absent[claim.OrderNo] = true
					mu.Unlock()
				}
			}
			if whole {
				r.loaded = false
				return nil
			}
			mu.Lock()
			d.suspects = append(d.suspects, r)
			mu.Unlock()
			return nil
		})
	}
	return asking.Wait()
}

func (b *Book) holds(ctx context.Context, e *seckill.Entry, claim *seckill.Claim) (bool, error) {
	shard := ledger.Shard{Product: e.ProductID, Group: e.Group, Index: e.Shard, Epoch: e.Epoch}
	held, err := b.opt.Ledger.Held(ctx, shard, claim.Buyer)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(held, func(h ledger.Holding) bool { return h.OrderNo == claim.OrderNo }), nil
}

// moveStale copies the remaining entries of an old segment into the newest one,
// so that the old one can be deleted.
func (b *Book) moveStale() {
	if b.opt.Journal == nil {
		return
	}
	from, found := b.opt.Journal.Stale()
	if !found {
		return
	}
	records := b.take(math.MaxInt, func(r *record) bool { return r.at == from })
	for _, r := range records {
		r.at = b.opt.Journal.Move(&r.entry, from)
	}
	b.putBack(records, countClaims(records))
}
