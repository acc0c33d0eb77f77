package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"seckill"

	"seckill/internal/api"
	"seckill/internal/auth"
)

// Admin is the part of the operator API that the load test needs.
type Admin interface {
	Product(ctx context.Context, id uint32) (api.AdminProduct, error)
	CreateProduct(ctx context.Context, p api.NewProduct) (api.AdminProduct, error)
	Preheat(ctx context.Context, id uint32) (api.AdminProduct, error)
	End(ctx context.Context, id uint32) (api.AdminProduct, error)
	Delete(ctx context.Context, id uint32) (int, error)
	Stats(ctx context.Context, id uint32) (api.Stats, error)
	Orders(ctx context.Context, product uint32, before string) ([]api.AdminOrder, error)
	Payments(ctx context.Context, orderNo string) ([]api.Payment, error)
	Reconcile(ctx context.Context, id uint32, repair bool) (api.Report, error)
}

const (
	// firstID begins the range of ids for products of load tests. ids is its
	// size. An id is never used again, also after its product was deleted. With
	// the shop's own next ids, tests would leave gaps there.
	firstID = 4_000_000_000
	ids     = math.MaxUint32 - firstID + 1
	// createTries is how many ids are tried if an id is taken.
	createTries = 5
	// takeDownDeadline bounds the end of the sale, which runs also after Ctrl-C.
	takeDownDeadline = 10 * time.Second
	// deleteDeadline bounds the deletion of the product: a million orders take
	// minutes.
	deleteDeadline = 15 * time.Minute
	// seenDeadline is how long another instance's shop may take to show a new
	// product.
	seenDeadline = 15 * time.Second
	// warmBefore is how long before the start the connections open.
	warmBefore = time.Second
	// clockGrain is the precision of times in the API. The crowd comes this much
	// after the start, so that it never comes before it.
	clockGrain = time.Millisecond
)

// run is one load test in progress.
type run struct {
	opt     *Options
	admin   Admin
	shops   []*shop
	product api.AdminProduct
	report  *Report
	tokens  bool // buyers need purchase tokens
	// tokensOpen is when tokens become available; nil if they always are.
	tokensOpen *api.Time
	seen       Evidence
}

// Run runs the whole test. It returns an error if the test could not begin. After
// the rush has begun there is always a report; it is partial if ctx ends early.
func Run(ctx context.Context, admin Admin, opt Options) (*Report, error) {
	if err := opt.Check(); err != nil {
		return nil, err
	}
	at, err := parseTarget(opt.ShopURL)
	if err != nil {
		return nil, err
	}
	r := &run{opt: &opt, admin: admin, report: newReport(&opt)}
	for range opt.Connections {
		r.shops = append(r.shops, newShop(at))
	}
	defer func() {
		for _, s := range r.shops {
			s.close()
		}
	}()
	defer r.takeDown(ctx) // also if prepare fails
	c, err := r.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.rush(ctx, c); err != nil {
		return nil, err
	}
	r.aftermath(ctx, c)
	r.report.conclude(&r.seen)
	return r.report, nil
}

// prepare opens the sale and signs the crowd's tokens.
func (r *run) prepare(ctx context.Context) (*crowd, error) {
	clock, err := readClock(r.opt.Now, r.shops[0].time)
	if err != nil {
		return nil, err
	}
	if err := r.putOnSale(ctx, &clock); err != nil {
		return nil, err
	}
	if r.opt.Quantity > r.product.PerUserLimit {
		return nil, fmt.Errorf("quantity %d is above the limit of %d per buyer", r.opt.Quantity, r.product.PerUserLimit)
	}
	shown, err := r.awaitShown(ctx, &clock)
	if err != nil {
		return nil, err
	}
	r.tokens, r.tokensOpen = shown.TokenRequired, shown.TokenOpensAt
	before, err := r.admin.Stats(ctx, r.product.ID)
	if err != nil {
		return nil, fmt.Errorf("read the figures: %w", err)
	}
	r.seen = Evidence{Fresh: r.report.Fresh, Quantity: int64(r.opt.Quantity), Limit: int64(r.product.PerUserLimit), Before: &before}
	r.opt.phase("signing %d tokens", r.opt.Buyers)
	start := r.product.StartsAt.Time()
	if now := clock.server(); start.Before(now) {
		start = now
	}
	signer, err := auth.NewSigner(r.opt.JWTSecret, r.opt.Issuer, r.opt.Audience)
	if err != nil {
		return nil, err
	}
	buyers, err := signBuyers(ctx, signer, r.opt.Run, r.opt.Buyers, start.Add(r.opt.Duration+tokenSlack))
	if err != nil {
		return nil, err
	}
	r.report.begins(&r.product, &before, &clock)
	return &crowd{
		opt: r.opt, product: r.product.ID, clock: clock, buyers: buyers, tally: newTally(),
		path: fmt.Sprintf("/api/v1/products/%d/orders", r.product.ID),
		body: fmt.Appendf(nil, `{"quantity":%d}`, r.opt.Quantity),
	}, nil
}

// putOnSale reads or makes the product, and preheats it.
func (r *run) putOnSale(ctx context.Context, clock *clock) (err error) {
	if r.opt.Product != 0 {
		r.product, err = r.admin.Product(ctx, r.opt.Product)
	}
	switch {
	case r.opt.Product == 0:
		if r.product, err = r.create(ctx, clock); err != nil {
			return fmt.Errorf("create a product: %w", err)
		}
		r.report.Fresh = true
	case err != nil:
		return fmt.Errorf("read product %d: %w", r.opt.Product, err)
	}
	preheated, err := r.admin.Preheat(ctx, r.product.ID)
	if err != nil {
		return fmt.Errorf("preheat product %d: %w", r.product.ID, err)
	}
	r.product = preheated
	return nil
}

// takeDown ends the sale of a fresh product and deletes it with its orders. It keeps
// the product if asked to, after a broken promise, and after an interrupt, so that
// it can be examined.
func (r *run) takeDown(ctx context.Context) {
	if !r.report.Fresh {
		return
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeDownDeadline)
	defer cancel()
	_, err := r.admin.End(ending, r.product.ID)
	switch {
	case err != nil:
		r.report.Kept = fmt.Sprintf("its sale was not ended: %v", err)
	case r.opt.Keep:
		r.report.Kept = "as asked"
	case r.report.Verdict == Broken:
		r.report.Kept = "a promise does not hold"
	case ctx.Err() != nil:
		r.report.Kept = "interrupted"
	default:
		if err := r.delete(ctx); err != nil {
			r.report.Kept = fmt.Sprintf("it was not deleted: %v", err)
		}
	}
	r.report.Deleted = r.report.Kept == ""
	if !r.report.Deleted {
		r.opt.phase("product %d is kept (%s): seckill delete %d", r.product.ID, r.report.Kept, r.product.ID)
	}
}

// delete deletes the product. It repeats the call while the engine has more to
// delete or to wait for.
func (r *run) delete(ctx context.Context) error {
	r.opt.phase("deleting product %d with its orders", r.product.ID)
	ctx, cancel := context.WithTimeout(ctx, deleteDeadline)
	defer cancel()
	for asked := false; ; asked = true {
		_, err := r.admin.Delete(ctx, r.product.ID)
		var no *api.Refusal
		refused := errors.As(err, &no)
		switch {
		case err == nil, refused && asked && no.Document.Code == seckill.CodeNotFound: // an earlier answer was lost
			return nil
		case refused && no.Document.Code != seckill.CodeBusy && no.Status < http.StatusInternalServerError:
			return err
		case (&clock{now: r.opt.Now}).wait(ctx, r.opt.Now().Add(figuresEvery)) != nil:
			return err
		}
	}
}

func (r *run) create(ctx context.Context, clock *clock) (created api.AdminProduct, err error) {
	starts := r.opt.StartsAt
	if starts.IsZero() {
		// Times in the API have milliseconds.
		starts = clock.server().Add(r.opt.StartsIn).Truncate(time.Millisecond)
	}
	if ahead := starts.Sub(clock.server()); ahead > MaxWait {
		return created, fmt.Errorf("the start is %s ahead: at most %s", ahead.Round(time.Second), MaxWait)
	}
	for range createTries {
		created, err = r.admin.CreateProduct(ctx, api.NewProduct{
			ID: uint32(firstID + int64(r.opt.Random()*ids)), Name: fmt.Sprintf("Load test %s", r.opt.Run), PriceCents: priceCents, Stock: r.opt.Units, PerUserLimit: r.opt.PerUserLimit,
			StartsAt: starts, EndsAt: starts.Add(r.opt.Duration + saleLasts),
			Test: true, // not for shoppers, and not part of any statistics
		})
		var taken *api.Refusal
		if !errors.As(err, &taken) || taken.Document.Code != seckill.CodeWrongState {
			return created, err
		}
	}
	return created, err
}

// awaitShown waits until the shop lists the product.
func (r *run) awaitShown(ctx context.Context, clock *clock) (api.Product, error) {
	deadline := clock.now().Add(seenDeadline)
	for {
		shown, err := r.shops[0].product(r.product.ID)
		if err == nil && shown.Status == seckill.StatusEnded {
			return shown, fmt.Errorf("the sale of product %d has ended", r.product.ID)
		}
		if err == nil || clock.now().After(deadline) {
			return shown, err
		}
		if err := clock.wait(ctx, clock.now().Add(figuresEvery)); err != nil {
			return shown, err
		}
	}
}

// rush waits for the start and runs the crowd.
func (r *run) rush(ctx context.Context, c *crowd) error {
	start := c.clock.local(r.product.StartsAt.Time()).Add(clockGrain)
	if now := c.clock.now(); start.Before(now) {
		start = now
	}
	comes := "product %d: %d buyers for %d units, in %s"
	if r.tokens {
		comes = "product %d: %d buyers for %d units; the sale opens in %s, and they need purchase tokens first"
	}
	r.opt.phase(comes, r.product.ID, len(c.buyers), r.report.Units, start.Sub(c.clock.now()).Round(100*time.Millisecond))
	if r.tokens {
		var err error
		if start, err = r.equip(ctx, c, start); err != nil {
			return err
		}
	}
	if err := c.clock.wait(ctx, start.Add(-warmBefore)); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	if err := c.warm(ctx, r.shops); err != nil {
		return fmt.Errorf("open the connections: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, start.Add(r.opt.Duration).Sub(c.clock.now()))
	defer cancel()
	c.line = newLine(start, len(c.buyers), r.opt.Rate)
	c.rush(bounded, r.shops)
	r.report.rushed(c, c.clock.now().Sub(start))
	switch {
	case ctx.Err() != nil:
		r.seen.Partial = "interrupted"
	case bounded.Err() != nil:
		r.report.OutOfTime = true
	}
	return nil
}

// aftermath pays and cancels orders and collects the evidence.
func (r *run) aftermath(ctx context.Context, c *crowd) {
	e := &r.seen
	c.fates(e)
	r.opt.phase("waiting for the queue")
	e.Drained, e.Drains = r.await(ctx, &c.clock, drainDeadline, func(s *api.Stats) bool { return s.Queue.Depth == 0 })
	in := &inspector{crowd: c, limit: e.Limit, admin: r.admin, shops: r.shops}
	winners := evenly(c.byFate(fateWon), MaxOrderReads)
	r.opt.phase("%d winners pay, cancel or wait", len(winners))
	done := c.settle(ctx, r.shops, winners, payment{AmountCents: r.product.PriceCents * int64(r.opt.Quantity), Currency: r.product.Currency})
	final, _ := r.await(ctx, &c.clock, restDeadline, func(s *api.Stats) bool {
		return s.Queue.Depth == 0 && s.Reserved() == s.Store.Pending+s.Store.Paid
	})
	e.Final = final
	r.opt.phase("reading %d orders", len(winners))
	in.readOrders(ctx, e, winners, done)
	in.readHoldings(ctx, e, append(evenly(c.byFate(fateUnknown), MaxOrderReads), winners...))
	in.readMoney(ctx, e, done)
	in.readForeign(ctx, e)
	r.report.settled(e, done)
	r.opt.phase("reconciling")
	report, err := r.admin.Reconcile(ctx, r.product.ID, false)
	if err != nil {
		e.ReconcileFailed = err.Error()
	} else {
		e.Reconciled = &report
	}
	if ctx.Err() != nil {
		e.Partial = "interrupted"
	}
}

// await reads the stats until they are as wanted, the deadline has passed or ctx
// ends. It returns the last stats that it read, or nil.
func (r *run) await(ctx context.Context, clock *clock, most time.Duration, want func(*api.Stats) bool) (last *api.Stats, reached bool) {
	deadline := clock.now().Add(most)
	for ctx.Err() == nil {
		if figures, err := r.admin.Stats(ctx, r.product.ID); err == nil {
			last = &figures
			if want(last) {
				return last, true
			}
		}
		if clock.now().After(deadline) || clock.wait(ctx, clock.now().Add(figuresEvery)) != nil {
			break
		}
	}
	return last, false
}
