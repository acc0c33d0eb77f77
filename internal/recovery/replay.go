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
	// heldAtOnce is how many buyers of a product the ledger is asked about at a time.
	heldAtOnce = 16
	// heldWithin bounds the questions of one round. It is many times what a busy
	// ledger needs, and leaves a rebuild some of the 5 s that it waits for promises.
	heldWithin = 3 * time.Second
)

// BookLedger tells what it holds of a buyer.
type BookLedger interface {
	Held(ctx context.Context, shard ledger.Shard, buyer string) ([]ledger.Holding, error)
}

// Load takes over an entry that a former life of this instance has left in the
// journal.
//
// If everything lost power at once, the ledger may have come back without its
// last second, and nobody is left who heard anything of that stretch: the loss
// is silent (protocol 1). So the rounds ask for every loaded promise whether the
// store has it, and if not, whether the ledger still does. A ledger that lacks
// one is rebuilt: the promise is written into the store before that, as any
// other that an instance remembers (protocol 3, step 1).
func (b *Book) Load(entry seckill.Entry, at JournalPlace) {
	now := b.opt.Now()
	b.keep(&record{entry: entry, since: now, ask: now, at: at, loaded: true})
}

// Replay asks for all loaded promises once. Call it before the sale begins: what
// it finds missing must not be sold to others. If a part of the ledger is away,
// the rounds ask again for the promises of that part.
func (b *Book) Replay(ctx context.Context) error {
	for b.hasUnasked() {
		if err := b.Round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hasUnasked reports whether a loaded promise is due.
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

// checkLoaded asks the ledger for loaded promises of its present epoch that the
// store does not have. What the ledger holds, its outbox or a letter carries.
func (b *Book) checkLoaded(ctx context.Context, due []*record) error {
	doubts := make(map[uint32]*doubt)
	for _, r := range due {
		if r.loaded && len(r.entry.Claims) > 0 && b.present(&r.entry) {
			d := doubts[r.entry.ProductID]
			if d == nil {
				d = &doubt{product: r.entry.ProductID, epoch: r.entry.Epoch, absent: make(map[seckill.OrderNo]bool)}
				doubts[d.product] = d
			}
			d.records = append(d.records, r)
		}
	}
	// All are asked at once, and not for long: one whose ledger is away must not
	// hold up the others, nor whoever waits to hand over promises.
	within, cancel := context.WithTimeout(ctx, heldWithin)
	defer cancel()
	var asked sync.WaitGroup
	for _, d := range doubts {
		asked.Go(func() { d.err = b.ask(within, d) })
	}
	asked.Wait()
	var errs []error
	for _, d := range doubts {
		if err := b.resolve(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("check promises of product %d in the journal: %w", d.product, err))
		}
	}
	return errors.Join(errs...)
}

// doubt is the loaded promises of one product that the ledger is asked for.
type doubt struct {
	product  uint32
	epoch    uint64
	records  []*record
	suspects []*record                // of which the ledger lacks promises
	absent   map[seckill.OrderNo]bool // those promises
	err      error
}

// resolve has a ledger rebuilt that lacks promises which the store lacks too.
func (b *Book) resolve(ctx context.Context, d *doubt) error {
	if d.err != nil || len(d.suspects) == 0 {
		return d.err
	}
	// An order that was written and released since the store was asked has its row.
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

// present reports whether a promise is of the epoch that the product is sold in.
// One of an older epoch is adopted, and one whose product is being rebuilt is
// written, without a question.
func (b *Book) present(e *seckill.Entry) bool {
	terms := b.opt.Terms(e.ProductID)
	return terms != nil && terms.Epoch == e.Epoch && !terms.Rebuilding
}

// ask finds the promises of one product that the ledger lacks. A record that the
// ledger holds whole is like any other from now on.
func (b *Book) ask(ctx context.Context, d *doubt) error {
	var mu sync.Mutex
	asking, within := errgroup.WithContext(ctx) // the first error ends it
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

// moveStale writes what is left of an old segment of the journal into the
// newest, so that the old one can be deleted.
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
