package sale

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/store"
)

// keepAfterEnd is how long after a sale's end its ledger is still looked
// after: orders are paid, expired and refunded for a while.
const keepAfterEnd = 24 * time.Hour

// keepAtOnce is how many sales a round looks after at a time. Each read of a
// ledger waits for a commit, and those of one commit wait together.
const keepAtOnce = 16

// keepTimeout bounds what a round does with one sale's ledger: reading its
// shards, or handing it stock before the start, when there are no orders yet. A
// ledger that is away must not hold up other sales. Rebuilds are not made here.
const keepTimeout = 5 * time.Second

// Keeper sees to it that each sale is in the state that it should be in:
// preheated before its start, announced, recovered when its ledger is lost.
type Keeper struct {
	lifecycle *Lifecycle
	lead      time.Duration
	// onEnded is called once per keeper and sale that is over, whoever announced
	// its end, and before which crash.
	onEnded func(product uint32)
	// onLost is asked to have a sale's ledger recovered, aside from the rounds:
	// that may take minutes. It is asked again with every round until it is done.
	onLost func(product uint32)

	aside background.Postponed[uint32] // sales whose ledger did not answer

	mu sync.Mutex // of announced and onEnded
	// announced spares the store a transaction a second for what it was told.
	announced map[announcement]bool
}

type announcement struct {
	product uint32
	kind    seckill.EventKind
}

// NewKeeper makes a keeper; lead is how long before the start it preheats.
func NewKeeper(d *Lifecycle, lead time.Duration, onEnded, onLost func(product uint32)) *Keeper {
	return &Keeper{lifecycle: d, lead: lead, onEnded: onEnded, onLost: onLost, announced: make(map[announcement]bool)}
}

// Round looks after every sale once: first after those that have no ledger, then
// after those that are due to be preheated, whose start does not wait. Sales whose ledger did not answer the
// last time come after all others. It goes on past a sale in trouble and returns
// all errors.
func (k *Keeper) Round(ctx context.Context) error {
	k.forget()
	sales := make(map[uint32]*Sale)
	var direct, due, others []uint32
	now := k.lifecycle.clock.Now()
	for _, s := range k.lifecycle.catalog.All() {
		sales[s.ID] = s
		switch {
		case !s.Terms().HasLedger():
			direct = append(direct, s.ID) // wait for no ledger
		case k.due(s.Terms(), now):
			due = append(due, s.ID)
		default:
			others = append(others, s.ID)
		}
	}
	keep := func(ctx context.Context, id uint32) error { return k.keep(ctx, sales[id]) }
	err := k.aside.Each(ctx, keepAtOnce, keep, direct, due, others)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil // cut short by a stop
	}
	return err
}

// forget drops what is kept of products that nobody looks after any more.
func (k *Keeper) forget() {
	k.mu.Lock()
	maps.DeleteFunc(k.announced, func(a announcement, _ bool) bool { return k.lifecycle.catalog.Find(a.product) == nil })
	k.mu.Unlock()
	k.lifecycle.failures.keep(func(product uint32) bool {
		s := k.lifecycle.catalog.Find(product)
		return s != nil && k.Keeps(s.Terms())
	})
}

// due reports whether a sale is to be preheated now.
func (k *Keeper) due(p *seckill.Product, now time.Time) bool {
	return p.Epoch == 0 && !over(p, now) && !now.Before(p.StartsAt.Add(-k.lead))
}

// over reports whether a sale has ended, by its clock or by an operator.
func over(p *seckill.Product, now time.Time) bool {
	return p.State == seckill.SaleEnded || !now.Before(p.EndsAt)
}

// Keeps reports whether a product's ledger is looked after: until a while after
// its sale.
func (k *Keeper) Keeps(p *seckill.Product) bool {
	return k.lifecycle.clock.Now().Before(p.EndsAt.Add(keepAfterEnd))
}

// Next is how long until the next sale begins, is to be preheated or ends; 0
// for none. Events then stand in the feed in the order of what happened.
func (k *Keeper) Next() time.Duration {
	var next time.Duration
	now := k.lifecycle.clock.Now()
	for _, s := range k.lifecycle.catalog.All() {
		p := s.Terms()
		for _, at := range [...]time.Time{p.StartsAt.Add(-k.lead), p.StartsAt, p.EndsAt} {
			if d := at.Sub(now); d > 0 && (next == 0 || d < next) {
				next = d
			}
		}
	}
	return next
}

// keep looks after one sale. Its start and end are announced by the clock,
// whatever its ledger says.
func (k *Keeper) keep(ctx context.Context, s *Sale) error {
	p := s.Terms()
	now := k.lifecycle.clock.Now()
	if k.due(p, now) {
		return background.Within(ctx, keepTimeout, func(ctx context.Context) error {
			_, err := k.lifecycle.Preheat(ctx, p.ID, store.Actor{Name: "system", Reason: "preheat before the start"})
			return err
		})
	}
	var trouble error
	if p.Epoch > 0 && k.Keeps(p) {
		trouble = background.Within(ctx, keepTimeout, func(ctx context.Context) error { return k.mend(ctx, p) })
	}
	return errors.Join(trouble, k.tell(ctx, p, now))
}

// tell announces a start and an end that have come.
func (k *Keeper) tell(ctx context.Context, p *seckill.Product, now time.Time) error {
	if !now.Before(p.StartsAt) && p.Epoch > 0 {
		if _, err := k.announce(ctx, p.ID, seckill.EventSaleStarted); err != nil {
			return err
		}
	}
	if !over(p, now) {
		return nil
	}
	news, err := k.announce(ctx, p.ID, seckill.EventSaleEnded)
	if err != nil || !news {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.onEnded(p.ID)
	return nil
}

// announce writes the event unless it was, and reports whether that is news to
// this keeper.
func (k *Keeper) announce(ctx context.Context, product uint32, kind seckill.EventKind) (bool, error) {
	what := announcement{product, kind}
	k.mu.Lock()
	told := k.announced[what]
	k.mu.Unlock()
	if told {
		return false, nil
	}
	if _, err := k.lifecycle.store.Announce(ctx, product, kind); err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.announced[what] = true
	return true, nil
}

// mend asks for the recovery of a ledger that is lost, closed, behind the store
// or under another limit than the product's, and tells it the sale's state again
// if it missed it. While the last try at a recovery failed, so does this.
func (k *Keeper) mend(ctx context.Context, p *seckill.Product) error {
	seen, err := k.lifecycle.look(ctx, p)
	switch {
	case err != nil:
		return err
	case !seen.live:
		// Our terms may be older than a rebuild that is going on or just done: it
		// is asked again under the product's lock before a new epoch is spent.
		k.onLost(p.ID)
		return k.lifecycle.failure(p.ID)
	case !seen.told:
		return k.lifecycle.syncState(ctx, p.ID)
	}
	return nil
}

// RecoverIfLost recovers unless the ledger turns out to be live, and reports
// whether the product has a new epoch. One that was never preheated has nothing
// to lose.
func (d *Lifecycle) RecoverIfLost(ctx context.Context, id uint32) (bool, error) {
	unlock, err := d.lock(ctx, id)
	if err != nil {
		return false, err
	}
	defer unlock()
	p, err := d.store.Product(ctx, id)
	if err != nil {
		return false, err
	}
	if p.Epoch == 0 {
		return false, nil
	}
	before := p.Epoch
	after, err := d.rebuildUnless(ctx, p, store.Actor{Name: "system", Reason: "ledger lost, closed, behind the store or under another limit"},
		func(now *seckill.Product) (bool, error) { return d.live(ctx, now) })
	return err == nil && after.Epoch > before, err
}

// syncState tells the ledger the store's state of the sale.
func (d *Lifecycle) syncState(ctx context.Context, id uint32) error {
	unlock, err := d.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := d.store.Product(ctx, id)
	if err != nil {
		return err
	}
	return d.applyState(ctx, &p)
}
