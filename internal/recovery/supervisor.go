package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/sale"
)

const (
	// looksAtOnce is how many products are looked at together: one whose recovery
	// waits for a slow shard, or for what other instances have promised, must not
	// hold up the others. Most of the time of a recovery is such waiting, which costs
	// nothing; sale.Lifecycle bounds how many ledgers are built at a time.
	looksAtOnce = 64
	// lookPause is the least time between two looks at one product. A crowd in front
	// of a lost shard must not make this a busy loop.
	lookPause = 100 * time.Millisecond
	// RecoverTimeout bounds one recovery, which reads every order of the product
	// and writes a mark for each live one: about a minute for ten million of them
	// on one shard, and several times that on slow servers or with replicas to
	// wait for. A ledger that does not answer ends it much sooner.
	RecoverTimeout = 15 * time.Minute
	refreshTimeout = 5 * time.Second
)

// Rebuilder rebuilds ledgers.
type Rebuilder interface {
	// RecoverIfLost rebuilds a product's ledger unless it is in order.
	RecoverIfLost(ctx context.Context, product uint32) (bool, error)
}

// Supervisor has every product recovered that a part asks for.
type Supervisor struct {
	Requests  *Requests
	Rebuilder Rebuilder
	Catalog   *sale.Catalog
	Duties    sale.Waker
	Alerts    sale.Alerter
	Logger    *slog.Logger
	// Repeated logs what comes ten times a second while a takeover goes on.
	Repeated *alert.ThrottledLog
}

// Run looks at the products of requests, several at once, until ctx ends.
func (s *Supervisor) Run(ctx context.Context) { s.Requests.watch(ctx, s.handle) }

// watch calls look for each request, several at once, until ctx ends.
func (r *Requests) watch(ctx context.Context, look func(context.Context, request)) {
	var watchers sync.WaitGroup
	defer watchers.Wait()
	places := make(chan struct{}, looksAtOnce)
	for {
		select {
		case <-ctx.Done():
			return
		case places <- struct{}{}:
		}
		one, ok := r.take()
		for !ok {
			select {
			case <-ctx.Done():
				return
			case <-r.news:
			}
			one, ok = r.take()
		}
		if ctx.Err() != nil {
			return // a pause that is cut short must not make room for another look
		}
		watchers.Go(func() {
			look(ctx, one)
			<-places // others need not wait for the pause of this one
			_ = background.Pause(ctx, lookPause)
			r.done(one.product)
		})
	}
}

// handle has the product of a request recovered. What only the worker can see (a
// store that is short, a queue that lost entries) the worker has written into the
// store, for the epoch that it saw: a request that is older than the recovery finds
// a live ledger here, and costs nothing.
func (s *Supervisor) handle(ctx context.Context, r request) {
	message, args := "trouble with the ledger of all products", []any{"error", r.cause}
	if r.product != 0 {
		message, args = "trouble with a product's ledger", append(args, "product", r.product)
	}
	s.Repeated.Say(slog.LevelWarn, fmt.Sprint("trouble ", r.product), message, args...)
	if r.grave() {
		s.Alerts.Raise(alert.MustRecover, r.product, fmt.Errorf("%w; %s recovered by itself", r.cause, s.concerned(r.product)))
	}
	s.Look(ctx, r.product)
}

// concerned names the products of a request, for people. What the queue lost is
// known by the stream, which many products share.
func (s *Supervisor) concerned(product uint32) string {
	if product != 0 {
		return "the product is being"
	}
	var ids []uint32
	for _, on := range s.Catalog.All() {
		if terms := on.Terms(); terms.HasLedger() && terms.Epoch > 0 {
			ids = append(ids, on.ID)
		}
	}
	return "every product with a ledger (" + sale.Listed(ids) + ") is being"
}

// Look has a product recovered if it needs to be, however long its sale is over.
// For product 0 it wakes the keeper, which looks at all products that it keeps.
func (s *Supervisor) Look(ctx context.Context, product uint32) {
	if product == 0 {
		if err := s.Catalog.Refresh(ctx); err == nil {
			s.Duties.Wake(background.DutyKeep)
		}
		return
	}
	recovering, cancel := context.WithTimeout(ctx, RecoverTimeout)
	defer cancel()
	if _, err := s.Rebuilder.RecoverIfLost(recovering, product); err != nil {
		s.Logger.Warn("product not recovered; it will be tried again", "product", product, "error", err)
	}
	refreshing, end := context.WithTimeout(ctx, refreshTimeout)
	defer end()
	if err := s.Catalog.Refresh(refreshing); err != nil {
		s.Logger.Warn("catalogue not refreshed", "error", err)
	}
}
