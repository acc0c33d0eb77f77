// Package adminapi is the operator's HTTP API: everything under /admin/v1
// behind one bearer token, and beside it what machines read: metrics, health,
// readiness and the description of both APIs.
//
// It is strict. A request is read whole and checked whole before anything is
// done; a field, parameter or byte that has no meaning is an error, because a
// typing mistake of an operator in mid-sale must not become half a change.
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
	// ChangeStock is idempotent by change id: repeated, it returns the first
	// change; the id of another change is wrong_state, and so is a change that
	// was refused. One that is recorded and still owed to the ledger is open, and
	// no error.
	ChangeStock(ctx context.Context, id uint32, delta int64, changeID string, actor store.Actor) (store.StockChange, error)
	Recover(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error)
	TakeOver(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error)
	// Delete deletes a test product that has ended, with its orders, and returns
	// how many. It is busy while it has more to delete: repeated, it goes on.
	Delete(ctx context.Context, id uint32, actor store.Actor) (int, error)
	Stats(ctx context.Context, id uint32) (api.Stats, error)
	// Status is what shoppers see of a product now.
	Status(p *seckill.Product) seckill.Status
	// IsTest reports whether a product is a test, as far as this instance knows.
	IsTest(product uint32) bool
}

// Orders reads and changes orders, wherever they are, the letters that hold
// them up, and refunds.
type Orders interface {
	// Look reads one order. It is busy, never not_found, while the order may be
	// queued where nobody can say which orders wait.
	Look(ctx context.Context, no seckill.OrderNo) (seckill.Order, error)
	Search(ctx context.Context, filter store.OrderFilter) (order.Listing, error)
	Cancel(ctx context.Context, no seckill.OrderNo, reason string, actor store.Actor) (seckill.Order, error)
	Refund(ctx context.Context, no seckill.OrderNo, actor store.Actor) (seckill.Order, error)
	RetryRefund(ctx context.Context, refundID string, actor store.Actor) (store.Payment, error)
	Retry(ctx context.Context, letterID int64, actor store.Actor) (store.Letter, error)
	Discard(ctx context.Context, letterID int64, actor store.Actor) (seckill.Order, error)
}

// Reconciler counts a product and, if asked, mends what has one safe
// direction.
type Reconciler interface {
	Run(ctx context.Context, product uint32, repair bool, actor string) (api.Report, error)
}

// Records is what the API reads from the store itself, as store.Store has it.
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

// Sinks is what operators ask of the sinks of events.
type Sinks interface {
	List(ctx context.Context) ([]sink.Report, error)
	Deliveries(ctx context.Context, filter store.DeliveryFilter) ([]store.Delivery, error)
	// Event is the number of the event with a message id.
	Event(ctx context.Context, sink, messageID string) (int64, error)
	Retry(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error)
	RetryAll(ctx context.Context, sink string, actor store.Actor) (int, error)
	Skip(ctx context.Context, sink string, event int64, actor store.Actor) (store.Delivery, error)
	SkipAll(ctx context.Context, sink string, actor store.Actor) (int, error)
	Replay(ctx context.Context, sink string, from time.Time, actor store.Actor) (int64, error)
	Forget(ctx context.Context, sink string, actor store.Actor) (int, error)
	// Test sends an echo event. The error is ours, the receiver's is in the Echo.
	Test(ctx context.Context, sink string, actor store.Actor) (sink.Echo, error)
}

// Options is what an API is made of.
type Options struct {
	Token      string // the operator's bearer token; must not be empty
	Sales      Sales
	Orders     Orders
	Reconciler Reconciler
	Records    Records
	Sinks      Sinks

	// Hosts are the names by which this address may be called, beside localhost.
	// IP addresses always may.
	Hosts []string
	// GuessWait is how long a token waits to be compared after many wrong ones; 0
	// for a second.
	GuessWait time.Duration
	// AnswerTimeout is how long a client may take to read an answer; 0 for the
	// constant AnswerTimeout.
	AnswerTimeout time.Duration

	// Roles are those of this instance. They stand in /readyz, and where an
	// operator asks for something that runs elsewhere.
	Roles []string
	// HealthOnly leaves out everything under /admin/v1: an instance without the
	// operator's role can still be watched.
	HealthOnly bool
	// Checks decide /readyz.
	Checks []Check
	// Metrics answers /metrics; nil for none.
	Metrics http.Handler
	// Pprof opens /debug/pprof/, behind the token.
	Pprof bool
	// ShowsPicture reports whether the shop's page may load a product's picture;
	// nil for any.
	ShowsPicture func(address string) bool

	Log *slog.Logger
	// Now is the clock; nil for the system's.
	Now func() time.Time
	// NewChangeID names a stock change that its sender did not name; nil for a
	// random one.
	NewChangeID func() string
	// StreamEvery is the beat of the stats stream; 0 for a second.
	StreamEvery time.Duration
	// Stop ends the streams when it closes, so that the server can stop.
	Stop <-chan struct{}
	// OnRequest hears of every answer, by route pattern; OnPanic of every panic;
	// OnSuspect of every suspect request, by one of Suspicions. Each may be nil.
	OnRequest func(route string, status int, took time.Duration)
	OnPanic   func()
	OnSuspect func(why string)
}

// Deadlines of a request: an operator in mid-sale must not wait long to hear
// that a part is away. Preheat, recover and reconcile walk over every order of a
// product.
const (
	requestTimeout = 4 * time.Second
	// echoTimeout is that of a delivery, and a little more to answer.
	echoTimeout = 12 * time.Second
	longTimeout = 2 * time.Minute
)

// Deadlines for clients to read an answer. They begin with its first byte, so
// that an operation may take longer than AnswerTimeout before it answers. Each
// event of the stats stream has a deadline of its own.
const (
	AnswerTimeout = 30 * time.Second
	// pprofTimeout is longer, because a trace is written while it is recorded.
	pprofTimeout = 5 * time.Minute
)

// handler is the handler's state: its options, and what is made of them once.
type handler struct {
	Options
	tokenHash [sha256.Size]byte
	board     board
	testBoard board         // with test products
	streams   chan struct{} // one slot per open stream
	guesses   *admission.Limiter
	late      chan struct{} // one slot per token that waits to be compared
	seen      operators
	strangers *alert.ThrottledLog
}

// New makes the handler. Its server should bound the time to read a request
// (ReadTimeout). Its WriteTimeout should be AnswerTimeout: net/http then bounds
// its own answers, and the handler sets the deadline anew for each of its own.
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
