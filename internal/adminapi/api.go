// Package adminapi is the operator's HTTP API: everything under /admin/v1 behind one
// bearer token, and metrics, health, readiness and the OpenAPI document without it.
//
// It is strict. A request is read and checked completely before anything changes.
// Unknown fields and parameters are errors, so that a typing mistake during a sale
// does not become half a change.
//
// route.go lists the operations. input.go and body.go read requests, serve.go
// answers them, and stranger.go handles requests without the operator's token.
package adminapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"seckill"
	"seckill/internal/admission"
	"seckill/internal/alert"
	"seckill/internal/api"
	"seckill/internal/order"
	"seckill/internal/sink"
	"seckill/internal/store"
)

// Sales changes what is on sale.
type Sales interface {
	Create(ctx context.Context, p seckill.Product, actor store.Actor) (seckill.Product, error)
	Patch(ctx context.Context, id uint32, patch store.ProductPatch, actor store.Actor) (seckill.Product, error)
	Preheat(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error)
	SetState(ctx context.Context, id uint32, state seckill.SaleState, actor store.Actor) (seckill.Product, error)
	// ChangeStock is idempotent by change id: a repeated request returns the first
	// change. If the id belongs to a different change, or to a refused one, it returns
	// wrong_state. A recorded change that the ledger does not have yet is open, and no
	// error.
	ChangeStock(ctx context.Context, id uint32, delta int64, changeID string, actor store.Actor) (store.StockChange, error)
	Recover(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error)
	TakeOver(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error)
	// Delete deletes a test product that has ended, with its orders, and returns the
	// number of orders. It returns busy while there is more to delete. The next call
	// continues.
	Delete(ctx context.Context, id uint32, actor store.Actor) (int, error)
	Stats(ctx context.Context, id uint32) (api.Stats, error)
	// Status returns the status that shoppers see now.
	Status(p *seckill.Product) seckill.Status
	// IsTest reports whether this instance knows a product as a test.
	IsTest(product uint32) bool
}

// Orders reads and changes orders, wherever they are, the letters that hold
// them up, and refunds.
type Orders interface {
	// Look reads one order. It returns busy, never not_found, while the order may wait
	// in a queue that cannot be searched.
	Look(ctx context.Context, no seckill.OrderNo) (seckill.Order, error)
	Search(ctx context.Context, filter store.OrderFilter) (order.Listing, error)
	Cancel(ctx context.Context, no seckill.OrderNo, reason string, actor store.Actor) (seckill.Order, error)
	Refund(ctx context.Context, no seckill.OrderNo, actor store.Actor) (seckill.Order, error)
	RetryRefund(ctx context.Context, refundID string, actor store.Actor) (store.Payment, error)
	Retry(ctx context.Context, letterID int64, actor store.Actor) (store.Letter, error)
	Discard(ctx context.Context, letterID int64, actor store.Actor) (seckill.Order, error)
}

// Reconciler counts a product and, with repair, repairs rows with one safe direction.
type Reconciler interface {
	Run(ctx context.Context, product uint32, repair bool, actor string) (api.Report, error)
}

// Records are the reads of store.Store that the API uses.
type Records interface {
	Product(ctx context.Context, id uint32) (seckill.Product, error)
	Products(ctx context.Context, filter store.ProductFilter) ([]seckill.Product, error)
	CurrentProducts(ctx context.Context) ([]seckill.Product, error)
	Story(ctx context.Context, no seckill.OrderNo) ([]store.StoryLine, error)
	Letters(ctx context.Context, filter store.LetterFilter) ([]store.Letter, error)
	Payments(ctx context.Context, filter store.PaymentFilter) ([]store.Payment, error)
	Reconciliations(ctx context.Context, product uint32, before int64, limit int) ([]store.Reconciliation, error)
	Events(ctx context.Context, after int64, limit int) ([]seckill.Event, error)
	Audit(ctx context.Context, filter store.AuditFilter) ([]store.AuditLine, error)
	AppendAudit(ctx context.Context, line store.AuditLine) error
}

// Sinks are the operations on sinks of events.
type Sinks interface {
	List(ctx context.Context) ([]sink.Report, error)
	Deliveries(ctx context.Context, filter store.DeliveryFilter) ([]store.Delivery, error)
	// Event returns the number of the event with a message id.
	Event(ctx context.Context, sink, messageID string) (int64, error)
	Retry(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error)
	RetryAll(ctx context.Context, sink string, actor store.Actor) (int, error)
	Skip(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error)
	SkipAll(ctx context.Context, sink string, actor store.Actor) (int, error)
	Replay(ctx context.Context, sink string, from time.Time, actor store.Actor) (int64, error)
	Forget(ctx context.Context, sink string, actor store.Actor) (int, error)
	// Test sends an echo event. An error of the receiver is in the Echo, any other is
	// returned.
	Test(ctx context.Context, sink string, actor store.Actor) (sink.Echo, error)
}

// Meter counts requests.
type Meter interface {
	// Request counts an answer, by route pattern.
	Request(route string, status int, took time.Duration)
	// Panic counts a request that ended in a panic.
	Panic()
	// Suspect counts a suspect request, by one of Suspicions.
	Suspect(why string)
}

// Options is what an API is made of.
type Options struct {
	Token      string // the operator's bearer token; must not be empty
	Sales      Sales
	Orders     Orders
	Reconciler Reconciler
	Records    Records
	Sinks      Sinks

	// Hosts are the allowed host names, in addition to localhost and IP addresses.
	Hosts []string
	// GuessWait is how long a token waits for its comparison after many wrong ones; 0
	// for a second.
	GuessWait time.Duration
	// AnswerTimeout bounds the time in which a client reads an answer; 0 for the
	// constant AnswerTimeout.
	AnswerTimeout time.Duration

	// Roles are the roles of this instance, for /readyz and for errors of operations
	// that need another role.
	Roles []string
	// HealthOnly omits everything under /admin/v1. An instance without the admin role
	// then still serves health and metrics.
	HealthOnly bool
	// Checks decide /readyz.
	Checks []Check
	// Metrics serves /metrics; nil for none.
	Metrics http.Handler
	// Pprof serves /debug/pprof/, behind the token.
	Pprof bool
	// ShowsPicture reports whether the shop's page may load a product's picture;
	// nil for any.
	ShowsPicture func(address string) bool

	Log *slog.Logger
	// Now is the clock; nil for the system's.
	Now func() time.Time
	// NewChangeID makes the id of a stock change that has none; nil for random ids.
	NewChangeID func() string
	// StreamEvery is the interval of the stats stream; 0 for a second.
	StreamEvery time.Duration
	// Stop ends the streams when it closes, so that the server can stop.
	Stop <-chan struct{}
	// Meter counts what the API does; nil for none.
	Meter Meter
}

// Deadlines of a request. They are short, so that an operator soon knows that a
// server is away. Preheat, recover and reconcile read every order of a product.
const (
	requestTimeout = 4 * time.Second
	// echoTimeout is the timeout of a delivery, and a little more for the answer.
	echoTimeout = 12 * time.Second
	longTimeout = 2 * time.Minute
)

// Deadlines for a client to read an answer. They begin with its first byte, so an
// operation may take longer than AnswerTimeout. Each event of the stats stream has
// its own deadline.
const (
	AnswerTimeout = 30 * time.Second
	// pprofTimeout is longer, because a trace is written while it is recorded.
	pprofTimeout = 5 * time.Minute
)

// handler has the options and the state that is made from them once.
type handler struct {
	Options
	tokenHash [sha256.Size]byte
	board     board
	testBoard board         // with test products
	streams   chan struct{} // one slot for each open stream
	guesses   *admission.Limiter
	late      chan struct{} // one slot for each token that waits for its comparison
	seen      operators
	strangers *alert.ThrottledLog
}

// New makes the handler. The server should have a ReadTimeout, and AnswerTimeout as
// its WriteTimeout: it bounds the answers of net/http itself. The handler sets a new
// deadline for each of its own answers.
func New(o Options) (http.Handler, error) {
	if o.Token == "" {
		return nil, errors.New("operator API: a token must be set")
	}
	if o.Sales == nil || o.Orders == nil || o.Reconciler == nil || o.Records == nil || o.Sinks == nil || o.Log == nil {
		return nil, errors.New("operator API: sales, orders, reconciler, records, sinks and log must be set")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewChangeID == nil {
		o.NewChangeID = rand.Text
	}
	if o.StreamEvery == 0 {
		o.StreamEvery = time.Second
	}
	if o.GuessWait == 0 {
		o.GuessWait = guessWait
	}
	if o.AnswerTimeout == 0 {
		o.AnswerTimeout = AnswerTimeout
	}
	guesses, err := admission.New(admission.Options{PerSecond: guessesPerSecond, Burst: guessBurst, Capacity: guessAddresses})
	if err != nil {
		return nil, fmt.Errorf("operator API: %w", err)
	}
	a := &handler{
		Options: o, tokenHash: sha256.Sum256([]byte(o.Token)), streams: make(chan struct{}, maxStreams),
		guesses: guesses, late: make(chan struct{}, maxLate), strangers: alert.NewThrottledLog(o.Log, o.Now),
	}
	return a.observed(a.routed()), nil
}
