package order

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/carrier"
)

// Unpaid orders expire by delayed messages of a broker, if there is one. After a
// confirm, the worker schedules one message for the new orders of the batch. The
// message comes back when their time to pay has passed. The receiver has the store
// cancel the orders that are still unpaid, so their units are for sale again at once.
//
// The scan of the store (Expirer) stays the safety net. It expires orders that were
// not scheduled, and those whose message is lost or late. So no worker waits here:
// a message that cannot be published is dropped.

const (
	// ExpiryGrace is the delay of a message after the end of the time to pay.
	// The clock of the store decides, and may be a little behind the clock of
	// the worker. A longer delay would leave the orders to the scan, which runs
	// every second.
	ExpiryGrace = 250 * time.Millisecond
	// maxMessageOrders bounds the orders of one message: one transaction of the store.
	maxMessageOrders = 500
	// maxQueued bounds the messages that wait to be published: 8 MB of order
	// numbers.
	maxQueued = 1024
	// publishers is how many messages are published at the same time.
	publishers = 4
	// publishWithin bounds a publish. After it the message is dropped.
	publishWithin = 3 * time.Second
	// stopWithin is how long calls to the broker may continue after a stop:
	// waiting messages are published, others are settled or given back.
	stopWithin = 2 * time.Second
)

// ExpiryResult is the outcome of a message.
type ExpiryResult string

// The outcomes.
const (
	Published ExpiryResult = "published" // the broker has stored it
	TooLong   ExpiryResult = "too_long"  // due later than the broker can delay; the scan expires the orders
	Dropped   ExpiryResult = "dropped"   // not published in time; the scan expires the orders
	Settled   ExpiryResult = "settled"   // all its orders are expired or need not expire
	Again     ExpiryResult = "again"     // given back: too early, or the store was away
	Forged    ExpiryResult = "forged"    // settled unread: wrong signature
	Foreign   ExpiryResult = "foreign"   // settled unread: from another store
	Poison    ExpiryResult = "poison"    // settled unread: not an expiry message
)

// ExpiryResults lists all of them.
var ExpiryResults = []ExpiryResult{Published, TooLong, Dropped, Settled, Again, Forged, Foreign, Poison}

// ExpiryStore is the part of the store that expires orders.
type ExpiryStore interface {
	ExpireOrders(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	Now(ctx context.Context) (time.Time, error)
}

// ExpiryMeter counts messages by outcome.
type ExpiryMeter interface {
	Message(result ExpiryResult)
}

// ExpiryOptions are a scheduler's parts.
type ExpiryOptions struct {
	// Open connects to the broker. It is called until it succeeds. Until then a
	// bounded number of messages wait.
	Open  func(ctx context.Context) (carrier.Delayer, error)
	Codec *carrier.Codec
	Store ExpiryStore
	Meter ExpiryMeter
	// OnExpired gets each batch, so that the units return at once.
	OnExpired func(orders []seckill.Order)
	Now       func() time.Time
	Logger    *slog.Logger
}

// ExpiryScheduler publishes and receives expiry messages of one process.
type ExpiryScheduler struct {
	opt        ExpiryOptions
	complaints *alert.ThrottledLog // for messages that the broker delivers
	queue      chan carrier.Expiry
	failing    atomic.Bool // the last publish failed

	mu      sync.Mutex
	delayer carrier.Delayer // nil before it is open
}

// NewExpiryScheduler makes a scheduler. Run it once.
func NewExpiryScheduler(opt ExpiryOptions) *ExpiryScheduler {
	return &ExpiryScheduler{opt: opt, complaints: alert.NewThrottledLog(opt.Logger, opt.Now), queue: make(chan carrier.Expiry, maxQueued)}
}

// Schedule expires orders of a product when their time to pay has passed. It
// never blocks: if the queue is full, the message is dropped.
func (s *ExpiryScheduler) Schedule(product uint32, orders []seckill.OrderNo, payBefore time.Time) {
	for some := range slices.Chunk(orders, maxMessageOrders) {
		select {
		case s.queue <- carrier.Expiry{ProductID: product, Due: payBefore.Add(ExpiryGrace), Orders: some}:
		default:
			s.opt.Meter.Message(Dropped)
		}
	}
}

// Run publishes and receives until ctx ends. Call Close afterwards.
func (s *ExpiryScheduler) Run(ctx context.Context) {
	opened, ok := background.Reach(ctx, s.opt.Open, func(err error) {
		s.opt.Logger.Warn("broker of delayed messages not reached; the scan of the store expires orders", "error", err)
	})
	if !ok {
		return
	}
	s.mu.Lock()
	s.delayer = opened
	s.mu.Unlock()
	var running sync.WaitGroup
	for range publishers {
		running.Go(func() { s.publish(ctx) })
	}
	for range receivers {
		running.Go(func() { newReceiver(s).run(ctx) })
	}
	running.Wait()
}

func (s *ExpiryScheduler) broker() carrier.Delayer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delayer
}

// Close drops messages that were not published, and disconnects from the
// broker.
func (s *ExpiryScheduler) Close(ctx context.Context) error {
	for {
		select {
		case <-s.queue:
			s.opt.Meter.Message(Dropped)
			continue
		default:
		}
		break
	}
	if d := s.broker(); d != nil {
		return d.Close(ctx)
	}
	return nil
}

// publish publishes messages until ctx ends, and then the ones that wait.
func (s *ExpiryScheduler) publish(ctx context.Context) {
	longer, cancel := background.GraceContext(ctx, stopWithin)
	defer cancel()
	for ctx.Err() == nil {
		select {
		case e := <-s.queue:
			s.publishOne(longer, &e)
		case <-ctx.Done():
		}
	}
	for {
		select {
		case e := <-s.queue:
			s.publishOne(longer, &e)
		default:
			return
		}
	}
}

// publishOne publishes a message. If it cannot, the scan expires the orders.
func (s *ExpiryScheduler) publishOne(ctx context.Context, e *carrier.Expiry) {
	delay := e.Due.Sub(s.opt.Now())
	switch {
	case delay > carrier.MaxDelay:
		s.opt.Meter.Message(TooLong)
		return
	case delay <= 0: // the broker was away until the scan was due
		s.opt.Meter.Message(Dropped)
		return
	}
	message, err := s.opt.Codec.EncodeExpiry(e)
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, publishWithin)
		err = s.broker().PublishAt(bounded, message, e.Due)
		cancel()
	}
	if err == nil {
		s.failing.Store(false)
		s.opt.Meter.Message(Published)
		return
	}
	s.opt.Meter.Message(Dropped)
	if !s.failing.Swap(true) {
		s.opt.Logger.Warn("expiry message not published; the scan of the store expires its orders", "product", e.ProductID, "orders", len(e.Orders), "error", err)
	}
}
