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
	"seckill/internal/alert"
	"seckill/internal/sale"
	"seckill/internal/store"
)

const (
	// asksPerRound bounds the promises that one round reads from the store, and
	// asksAtOnce those of one statement.
	asksPerRound = 20_000
	asksAtOnce   = 500
	// confirmAtOnce bounds the claims of one transaction before a rebuild.
	confirmAtOnce = 500
)

// BookStore is the part of the store that a book uses.
type BookStore interface {
	OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error)
	Deleted(ctx context.Context, product uint32) (bool, error)
}

// PromiseMeter counts promises.
type PromiseMeter interface {
	// Forgotten counts promises that were dropped for want of room.
	Forgotten(promises int)
	// Reoffered counts promises that a lost ledger did not take along.
	Reoffered(result Result, promises int)
}

// BookOptions are the parts and bounds of a book.
type BookOptions struct {
	Store   BookStore
	Adopter *Adopter
	// Terms returns the present terms of a product as this instance knows them,
	// or nil. If Terms is nil, no product is known.
	Terms       func(product uint32) *seckill.Product
	ExpireAfter time.Duration    // time to pay of orders that the book writes
	MaxPromises int              // promises to remember; 0: DefaultPromises
	Now         func() time.Time // for the age of promises; nil: time.Now
	Logger      *slog.Logger
	Meter       PromiseMeter
	// Alerts tells an operator of promises that could not be kept. Their buyers have
	// to know; the log has them by order number.
	Alerts sale.Alerter
	// Journal keeps the promises on disk; nil for none. It needs Ledger and
	// OnMissing. OnMissing requests a rebuild of a ledger that lacks promises
	// of its own epoch.
	Journal   *Journal
	Ledger    BookLedger
	OnMissing func(ctx context.Context, product uint32, epoch uint64, promises int) error
}

// Result is the outcome of a promise that the ledger had lost.
type Result string

// The outcomes.
const (
	Confirmed Result = "confirmed" // it is an order
	Adopted   Result = "adopted"   // the rebuilt ledger has it
	Failed    Result = "failed"    // its units were sold
)

// Results lists all of them.
var Results = []Result{Confirmed, Adopted, Failed}

// Round drops the promises that the store has, and adopts those whose ledger
// was rebuilt without them. Call it about once a second.
//
// A worker may adopt the same promises at the same time, from entries that the
// ledger still has. That is harmless, because an order number is reserved once
// per epoch: the second one gets "repeated", and the entry of the first one
// carries the order.
//
// The first order may be confirmed, cancelled and released before the second
// adoption. With a key the second is still "repeated", because keys outlive
// their orders. Without a key it is reserved again, and its entry meets the
// dead row, which owes the release again (protocol 3). Neither sells a unit
// twice: there is one row per order number.
func (b *Book) Round(ctx context.Context) error {
	return b.exclusively(ctx, func() error {
		now := b.opt.Now()
		due := b.take(asksPerRound, func(r *record) bool {
			return !now.Before(r.ask) || b.rebuilt(&r.entry) || b.rebuilding(&r.entry)
		})
		before := countClaims(due)
		carried, err := b.settle(ctx, due)
		due = append(due, carried...)
		if err == nil {
			err = b.checkLoaded(ctx, due)
		}
		for _, r := range due {
			r.ask = now.Add(min(max(now.Sub(r.since), settleAge), maxAskPause))
		}
		b.putBack(due, before)
		b.moveStale()
		return err
	})
}

// exclusively lets only one goroutine take promises out of the stripes. Another one
// would find none and conclude that there are none.
func (b *Book) exclusively(ctx context.Context, do func() error) error {
	select {
	case b.exclusive <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.exclusive }()
	return do()
}

// rebuilt reports whether the product was rebuilt since the promise was made.
func (b *Book) rebuilt(e *seckill.Entry) bool {
	terms := b.opt.Terms(e.ProductID)
	return terms != nil && terms.Epoch > e.Epoch && !terms.Rebuilding
}

// rebuilding reports whether the ledger of the product is about to be rebuilt,
// here or by another instance.
func (b *Book) rebuilding(e *seckill.Entry) bool {
	terms := b.opt.Terms(e.ProductID)
	return terms != nil && terms.Epoch == e.Epoch && terms.Rebuilding
}

// settle drops the settled claims of due records. carried are records of
// adopted claims that were split off.
func (b *Book) settle(ctx context.Context, due []*record) (carried []*record, err error) {
	if err := b.dropSettled(ctx, due); err != nil {
		return nil, err
	}
	outdated, closing := make(map[uint32][]*record), make(map[uint32][]*record)
	for _, r := range due {
		switch product := r.entry.ProductID; {
		case len(r.entry.Claims) == 0:
		case b.rebuilt(&r.entry):
			outdated[product] = append(outdated[product], r)
		case b.rebuilding(&r.entry):
			closing[product] = append(closing[product], r)
		}
	}
	var errs []error // the recovery of one product must not delay the promises of others
	for product, records := range closing {
		// A store that is short is why the ledger is being rebuilt, so it is
		// not an error here.
		if err := b.confirmAll(ctx, records); err != nil && !errors.Is(err, store.ErrShort) {
			errs = append(errs, fmt.Errorf("write promises of product %d: %w", product, err))
		}
	}
	for product, records := range outdated {
		some, err := b.adopt(ctx, product, records)
		if err != nil {
			errs = append(errs, fmt.Errorf("adopt promises of product %d: %w", product, err))
		}
		carried = append(carried, some...)
	}
	return carried, errors.Join(errs...)
}

// dropSettled drops promises that have rows in the store, and promises of
// deleted products.
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
		b.dropClaims(r, func(no seckill.OrderNo) bool { return there[no] })
	}
	return b.dropDeleted(ctx, records)
}

// dropDeleted asks the store, because after a restart the catalogue does not
// know products that were deleted before.
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
			b.dropClaims(r, func(seckill.OrderNo) bool { return true })
		}
	}
	return nil
}

// adopt adopts promises of one product, the oldest first. Adopted promises stay
// in the book, in new records of the present epoch. Unsettled ones are tried
// again.
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
		b.dropClaims(r, func(no seckill.OrderNo) bool { return failed[no] })
		if part := r.split(func(no seckill.OrderNo) bool { return adopted[no] }); part != nil {
			part.entry.Epoch = outcome.Epoch
			carried = append(carried, part)
		}
	}
	b.report(product, &outcome)
	return carried, err
}

// report counts and logs the outcome of an adoption. Failed promises are logged
// by order number.
func (b *Book) report(product uint32, outcome *Outcome) {
	if n := len(outcome.Adopted); n > 0 {
		b.opt.Meter.Reoffered(Adopted, n)
		b.opt.Logger.Info("promises of an older ledger were adopted", "product", product, "epoch", outcome.Epoch, "promises", n)
	}
	b.reportFailed(product, outcome.Failed)
}

func (b *Book) reportFailed(product uint32, failed []FailedPromise) {
	if len(failed) == 0 {
		return
	}
	b.opt.Meter.Reoffered(Failed, len(failed))
	if lost := LogFailedPromises(b.opt.Logger, product, failed); lost != nil {
		b.opt.Alerts.Raise(alert.NotKept, product, lost)
	}
}

// Reoffer writes the promises of a product into the store before its ledger is
// rebuilt, so they are rows of the snapshot. After the rebuild they would have
// to be adopted, and might find their units sold.
//
// It uses the same transaction as the worker and may meet it: the order number
// is unique, and the second write is a replay. It is best effort: a Round
// adopts the promises that fail here. Other instances write their own when they
// see that the product is being rebuilt.
func (b *Book) Reoffer(ctx context.Context, product uint32) error {
	return b.exclusively(ctx, func() error {
		records := b.take(b.opt.MaxPromises, func(r *record) bool { return r.entry.ProductID == product })
		before := countClaims(records)
		defer func() { b.putBack(records, before) }()
		if err := b.dropSettled(ctx, records); err != nil {
			return err
		}
		return b.confirmAll(ctx, records)
	})
}

// WriteAll calls Reoffer for every product. An instance that stops does so:
// while the ledger is away, no other process may know these promises.
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

// Write writes claims of one product like a worker, without an entry to
// acknowledge. It leaves out claims that do not fit and claims that the store
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

// confirmAll writes promises of one product, and drops the written ones.
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
		b.dropClaims(r, func(no seckill.OrderNo) bool { _, written := settled[no]; return written })
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
		b.opt.Meter.Reoffered(Confirmed, confirmed)
	}
}

// confirm writes claims like a worker. settled gets each settled claim and
// whether it became an order. If the store is short or refuses a claim, the
// others are still written.
func (b *Book) confirm(ctx context.Context, items []store.Item, settled map[seckill.OrderNo]bool) error {
	endsAll := func(err error) bool { return store.EndsAll(ctx, err) }
	return store.ByHalves(items, endsAll, func(items []store.Item) error {
		outcomes, err := b.opt.Store.Confirm(ctx, store.ConfirmRequest{
			ProductID: items[0].ProductID, Items: items, ExpireAfter: b.opt.ExpireAfter,
		})
		if err != nil {
			return err
		}
		b.reportFailed(items[0].ProductID, FailedPromises(items, outcomes))
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
