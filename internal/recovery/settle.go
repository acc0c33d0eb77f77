package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"seckill"

	"seckill/internal/store"
)

const (
	// asksPerRound bounds the promises about which one round asks the store, and
	// asksAtOnce those of one statement.
	asksPerRound = 20_000
	asksAtOnce   = 500
	// confirmAtOnce bounds the claims of one transaction before a rebuild.
	confirmAtOnce = 500
)

// BookStore is where promises become orders.
type BookStore interface {
	OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error)
	Deleted(ctx context.Context, product uint32) (bool, error)
}

// BookOptions are a book's parts and bounds.
type BookOptions struct {
	Store   BookStore
	Adopter *Adopter
	// Terms are a product's present terms as this instance knows them, or nil.
	// Nothing is known of any product where it is not set.
	Terms       func(product uint32) *seckill.Product
	ExpireAfter time.Duration    // time to pay of what is confirmed here
	Most        int              // promises to remember; 0 means DefaultMost
	Now         func() time.Time // for the age of promises; time.Now when nil
	Logger      *slog.Logger
	// OnForgotten counts promises that were dropped for want of room.
	OnForgotten func(promises int)
	// OnReoffered counts promises that a lost ledger did not take along.
	OnReoffered func(result Result, promises int)
	// Journal keeps what is remembered on disk; nil for none. Ledger and OnMissing
	// are needed with it: OnMissing has a product's ledger rebuilt that no longer
	// holds promises of its own epoch.
	Journal   *Journal
	Ledger    BookLedger
	OnMissing func(ctx context.Context, product uint32, epoch uint64, promises int) error
	// OnLost is told that promises could not be kept, and that their buyers have
	// to know; they are in the log by order number.
	OnLost func(product uint32, err error)
}

// Result is what became of a promise that a lost ledger did not take along.
type Result string

// The results.
const (
	Confirmed Result = "confirmed" // it is an order
	Adopted   Result = "adopted"   // the rebuilt ledger has it
	Failed    Result = "failed"    // its units were gone
)

// Results lists all of them.
var Results = []Result{Confirmed, Adopted, Failed}

// Round drops the promises that the store has, and adopts those whose ledger
// was rebuilt without them. Call it about once a second.
//
// A worker may adopt the same promises at the same time, from entries that the
// ledger did not lose. That is harmless: an order number is reserved once per
// epoch, so whoever comes second is told "repeated" and leaves it to the entry
// of the first. If that order is confirmed, cancelled and released before the
// second comes, a claim with a key is still "repeated", for keys outlive their
// orders; one without is reserved anew, and its entry meets the dead row, which
// owes the release again (protocol 3). Neither sells a unit twice: the row
// decides, and there is one per order number.
func (b *Book) Round(ctx context.Context) error {
	return b.holding(ctx, func() error {
		now := b.opt.Now()
		due := b.take(asksPerRound, func(r *record) bool {
			return !now.Before(r.ask) || b.moved(&r.entry) || b.closing(&r.entry)
		})
		before := countClaims(due)
		carried, err := b.settle(ctx, due)
		due = append(due, carried...)
		if err == nil {
			err = b.checkLoaded(ctx, due)
		}
		for _, r := range due {
			r.ask = now.Add(min(max(now.Sub(r.since), settleAge), askAgainMost))
		}
		b.putBack(due, before)
		b.moveStale()
		return err
	})
}

// holding lets one at a time hold promises that are out of the stripes:
// another would believe that there are none.
func (b *Book) holding(ctx context.Context, do func() error) error {
	select {
	case b.hand <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.hand }()
	return do()
}

// moved reports whether the product was rebuilt since the promise was made.
func (b *Book) moved(e *seckill.Entry) bool {
	terms := b.opt.Terms(e.ProductID)
	return terms != nil && terms.Epoch > e.Epoch && !terms.Rebuilding
}

// closing reports whether the product's ledger is about to be rebuilt, here or
// by another instance.
func (b *Book) closing(e *seckill.Entry) bool {
	terms := b.opt.Terms(e.ProductID)
	return terms != nil && terms.Epoch == e.Epoch && terms.Rebuilding
}

// settle drops what is settled from the records that are due. Carried are
// records that adoptions split off.
func (b *Book) settle(ctx context.Context, due []*record) (carried []*record, err error) {
	if err := b.dropSettled(ctx, due); err != nil {
		return nil, err
	}
	homeless, closing := make(map[uint32][]*record), make(map[uint32][]*record)
	for _, r := range due {
		switch product := r.entry.ProductID; {
		case len(r.entry.Claims) == 0:
		case b.moved(&r.entry):
			homeless[product] = append(homeless[product], r)
		case b.closing(&r.entry):
			closing[product] = append(closing[product], r)
		}
	}
	var errs []error // one product's recovery must not hold up another's promises
	for product, records := range closing {
		// A store that is short is why the ledger is rebuilt, not news.
		if err := b.confirmAll(ctx, records); err != nil && !errors.Is(err, store.ErrShort) {
			errs = append(errs, fmt.Errorf("write promises of product %d: %w", product, err))
		}
	}
	for product, records := range homeless {
		some, err := b.adopt(ctx, product, records)
		if err != nil {
			errs = append(errs, fmt.Errorf("adopt promises of product %d: %w", product, err))
		}
		carried = append(carried, some...)
	}
	return carried, errors.Join(errs...)
}

// dropSettled drops promises that have rows in the store, and those of products that
// were deleted with their rows.
func (b *Book) dropSettled(ctx context.Context, records []*record) error {
	nos := make([]seckill.OrderNo, 0, countClaims(records))
	for _, r := range records {
		for _, claim := range r.entry.Claims {
			nos = append(nos, claim.OrderNo)
		}
	}
	there := make(map[seckill.OrderNo]bool, len(nos))
	for some := range slices.Chunk(nos, asksAtOnce) {
		rows, err := b.opt.Store.OrdersByNo(ctx, some)
		if err != nil {
			return fmt.Errorf("ask for promised orders: %w", err)
		}
		for i := range rows {
			there[rows[i].OrderNo] = true
		}
	}
	for _, r := range records {
		b.drop(r, func(no seckill.OrderNo) bool { return there[no] })
	}
	return b.dropDeleted(ctx, records)
}

// dropDeleted asks the store: after a restart, the catalogue has never seen a
// product that was deleted before.
func (b *Book) dropDeleted(ctx context.Context, records []*record) error {
	deleted := make(map[uint32]bool)
	for _, r := range records {
		product := r.entry.ProductID
		if len(r.entry.Claims) == 0 || b.opt.Terms(product) != nil {
			continue
		}
		gone, asked := deleted[product]
		if !asked {
			var err error
			if gone, err = b.opt.Store.Deleted(ctx, product); err != nil {
				return fmt.Errorf("ask whether a promised product was deleted: %w", err)
			}
			deleted[product] = gone
		}
		if gone {
			b.drop(r, func(seckill.OrderNo) bool { return true })
		}
	}
	return nil
}

// adopt re-offers promises of one product to its present ledger, the oldest
// first. Adopted ones stay remembered, in records of the epoch that has them
// now; those left unsettled are offered again.
func (b *Book) adopt(ctx context.Context, product uint32, records []*record) (carried []*record, err error) {
	slices.SortStableFunc(records, func(x, y *record) int { return cmp.Compare(x.since.UnixNano(), y.since.UnixNano()) })
	outcome, err := b.opt.Adopter.Adopt(ctx, items(records))
	adopted := make(map[seckill.OrderNo]bool, len(outcome.Adopted))
	for i := range outcome.Adopted {
		adopted[outcome.Adopted[i].Claim.OrderNo] = true
	}
	failed := make(map[seckill.OrderNo]bool, len(outcome.Failed))
	for i := range outcome.Failed {
		failed[outcome.Failed[i].Claim.OrderNo] = true
	}
	for _, r := range records {
		b.drop(r, func(no seckill.OrderNo) bool { return failed[no] })
		if part := r.split(func(no seckill.OrderNo) bool { return adopted[no] }); part != nil {
			part.entry.Epoch = outcome.Epoch
			carried = append(carried, part)
		}
	}
	b.tell(product, &outcome)
	return carried, err
}

// tell reports what a lost ledger did to promises. What could not be kept is
// listed by order number, whoever asks for it later.
func (b *Book) tell(product uint32, outcome *Outcome) {
	if n := len(outcome.Adopted); n > 0 {
		b.opt.OnReoffered(Adopted, n)
		b.opt.Logger.Info("promises of an older ledger were adopted", "product", product, "epoch", outcome.Epoch, "promises", n)
	}
	b.tellUnkept(product, outcome.Failed)
}

func (b *Book) tellUnkept(product uint32, failed []FailedPromise) {
	if len(failed) == 0 {
		return
	}
	b.opt.OnReoffered(Failed, len(failed))
	if lost := LogFailedPromises(b.opt.Logger, product, failed); lost != nil {
		b.opt.OnLost(product, lost)
	}
}

// Reoffer writes what is remembered of a product straight into the store,
// before its ledger is rebuilt. It is the worker's own transaction without an
// entry to acknowledge, so it may meet the worker's: the order number is
// unique, and the second is a replay. After the rebuild these promises are rows
// of the snapshot; later they would have to be adopted, and might find their
// units sold. It is best effort: what fails here is adopted by a Round. Other
// instances do the same with theirs when they see that the product is being
// rebuilt, if they see it in time.
func (b *Book) Reoffer(ctx context.Context, product uint32) error {
	return b.holding(ctx, func() error {
		records := b.take(b.opt.Most, func(r *record) bool { return r.entry.ProductID == product })
		before := countClaims(records)
		defer func() { b.putBack(records, before) }()
		if err := b.dropSettled(ctx, records); err != nil {
			return err
		}
		return b.confirmAll(ctx, records)
	})
}

// WriteAll writes what is remembered of every product, as Reoffer does. An
// instance that stops does so: while the ledger is away, nobody else may know of
// these promises.
func (b *Book) WriteAll(ctx context.Context) error {
	products := make(map[uint32]bool)
	for i := range b.stripes {
		s := &b.stripes[i]
		s.mu.Lock()
		for _, r := range s.kept {
			products[r.entry.ProductID] = true
		}
		s.mu.Unlock()
	}
	var errs []error
	for product := range products {
		if err := b.Reoffer(ctx, product); err != nil {
			errs = append(errs, fmt.Errorf("write promises of product %d: %w", product, err))
		}
	}
	return errors.Join(errs...)
}

// Write writes claims of one product as a worker would, without an entry to
// acknowledge. It leaves out claims that do not fit, and claims that the store
// refuses.
func (b *Book) Write(ctx context.Context, items []store.Item) error {
	settled := make(map[seckill.OrderNo]bool)
	defer func() { b.countConfirmed(settled) }()
	for some := range slices.Chunk(items, confirmAtOnce) {
		if err := b.confirm(ctx, some, settled); store.EndsAll(ctx, err) {
			return err
		}
	}
	return nil
}

// confirmAll writes promises of one product, and drops those that are written.
func (b *Book) confirmAll(ctx context.Context, records []*record) error {
	settled := make(map[seckill.OrderNo]bool)
	var failed error
	for some := range slices.Chunk(items(records), confirmAtOnce) {
		err := b.confirm(ctx, some, settled)
		failed = errors.Join(failed, err)
		if store.EndsAll(ctx, err) {
			break
		}
	}
	for _, r := range records {
		b.drop(r, func(no seckill.OrderNo) bool { _, written := settled[no]; return written })
	}
	b.countConfirmed(settled)
	return failed
}

func (b *Book) countConfirmed(settled map[seckill.OrderNo]bool) {
	confirmed := 0
	for _, kept := range settled {
		if kept {
			confirmed++
		}
	}
	if confirmed > 0 {
		b.opt.OnReoffered(Confirmed, confirmed)
	}
}

// confirm writes claims as a worker would, and says of each that is settled
// whether it was kept. If the store is short, or refuses a claim, the others are
// written without those that do not fit.
func (b *Book) confirm(ctx context.Context, items []store.Item, settled map[seckill.OrderNo]bool) error {
	endsAll := func(err error) bool { return store.EndsAll(ctx, err) }
	return store.ByHalves(items, endsAll, func(items []store.Item) error {
		outcomes, err := b.opt.Store.Confirm(ctx, store.ConfirmRequest{
			ProductID: items[0].ProductID, Items: items, ExpireAfter: b.opt.ExpireAfter,
		})
		if err != nil {
			return err
		}
		b.tellUnkept(items[0].ProductID, FailedPromises(items, outcomes))
		for i, outcome := range outcomes {
			if outcome != store.ConfirmOldEpoch {
				settled[items[i].Claim.OrderNo] = outcome.FailedFor() == ""
			}
		}
		return nil
	})
}

func items(records []*record) []store.Item {
	var all []store.Item
	for _, r := range records {
		all = append(all, store.Items(&r.entry)...)
	}
	return all
}
