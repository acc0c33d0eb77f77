package order

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/carrier"
)

const (
	// receivers is how many goroutines expire orders. The store locks one
	// product at a time, so more would only wait.
	receivers = 2
	// maxReceive and receiveFor bound one receive: its messages and its time.
	maxReceive = 32
	receiveFor = 20 * time.Second
	// maxExpire bounds the orders of one call to the store, unless one message
	// alone has more.
	maxExpire = 500
	// maxEarly bounds the messages that wait here until they are due, and
	// earlyBy their time. Others go back to the broker.
	maxEarly = 256
	earlyBy  = 10 * time.Second
	// storeWithin bounds the calls to the store for one batch. settleWithin
	// bounds one call that settles messages.
	storeWithin  = 10 * time.Second
	settleWithin = 5 * time.Second
	// The wait after a failure of the store or the broker. It doubles with each
	// failure.
	minRetry = 250 * time.Millisecond
	maxRetry = 5 * time.Second
)

// parcel is a message and its decoded content.
type parcel struct {
	message carrier.Delivery
	expiry  carrier.Expiry
}

// receiver receives messages from the broker and expires their orders. One
// goroutine uses it.
type receiver struct {
	*ExpiryScheduler
	calls   context.Context // for calls that settle messages; ends stopWithin after a stop
	waiting []parcel        // not due yet
	// The last waits after failures of the broker and the store; 0 while they
	// work.
	brokerRetry, storeRetry time.Duration
}

func newReceiver(s *ExpiryScheduler) *receiver { return &receiver{ExpiryScheduler: s} }

// run receives until ctx ends, and then gives the waiting messages back.
func (r *receiver) run(ctx context.Context) {
	calls, cancel := background.GraceContext(ctx, stopWithin)
	defer cancel()
	r.calls = calls
	for ctx.Err() == nil {
		r.receive(ctx)
		for ctx.Err() == nil {
			batch := r.ripe(r.opt.Now())
			if len(batch) == 0 {
				break
			}
			r.expire(ctx, batch)
		}
	}
	r.again(r.waiting)
}

// receive receives messages until one that waits is due.
func (r *receiver) receive(ctx context.Context) {
	wait := receiveFor
	for i := range r.waiting {
		wait = min(wait, r.waiting[i].expiry.Due.Sub(r.opt.Now()))
	}
	bounded, cancel := context.WithTimeout(ctx, max(wait, 0))
	defer cancel()
	messages, err := r.broker().Receive(bounded, maxReceive)
	if err != nil && bounded.Err() == nil {
		r.failed(ctx, &r.brokerRetry, "receive of expiry messages failed; it is tried again", err)
		return
	}
	r.brokerRetry = 0
	for i := range messages {
		r.accept(messages[i])
	}
}

// failed waits after a failure, longer each time until a call succeeds.
func (r *receiver) failed(ctx context.Context, retry *time.Duration, what string, err error) {
	if *retry == 0 {
		r.opt.Logger.Warn(what, "error", err)
	}
	*retry = min(max(2**retry, minRetry), maxRetry)
	_ = background.Pause(ctx, *retry)
}

// accept takes a message. It settles a message that no receiver can accept:
// otherwise the broker would deliver it again for ever.
func (r *receiver) accept(message carrier.Delivery) {
	expiry, err := r.opt.Codec.DecodeExpiry(&message.Message)
	if err != nil {
		why := ExpiryResult(carrier.Rejection(err))
		// Log at a bounded rate: anyone who may write the topic decides how
		// many there are.
		r.complaints.Say(slog.LevelWarn, "rejected "+string(why), "expiry message rejected and settled", "why", string(why), "bytes", len(message.Body))
		r.done([]parcel{{message: message}}, why)
		return
	}
	p := parcel{message, expiry}
	if len(r.waiting) >= maxEarly || expiry.Due.Sub(r.opt.Now()) > earlyBy {
		r.again([]parcel{p})
		return
	}
	r.waiting = append(r.waiting, p)
}

// ripe removes and returns due messages, for one call to the store.
func (r *receiver) ripe(now time.Time) (batch []parcel) {
	orders := 0
	r.waiting = slices.DeleteFunc(r.waiting, func(p parcel) bool {
		n := len(p.expiry.Orders)
		if p.expiry.Due.After(now) || orders > 0 && orders+n > maxExpire {
			return false
		}
		orders += n
		batch = append(batch, p)
		return true
	})
	return batch
}

// expire expires the orders of messages in the store, and settles the messages
// that need nothing more.
func (r *receiver) expire(ctx context.Context, batch []parcel) {
	var nos []seckill.OrderNo
	for i := range batch {
		nos = append(nos, batch[i].expiry.Orders...)
	}
	early, err := r.expireOrders(ctx, nos)
	if err != nil {
		r.again(batch)
		r.failed(ctx, &r.storeRetry, "store has not expired orders; their messages come again", err)
		return
	}
	r.storeRetry = 0
	var settled, again []parcel
	for _, p := range batch {
		if slices.ContainsFunc(p.expiry.Orders, func(no seckill.OrderNo) bool { return early[no] }) {
			again = append(again, p)
		} else {
			settled = append(settled, p)
		}
	}
	r.done(settled, Settled)
	r.again(again)
}

// expireOrders expires the due orders, and returns those that are pending and
// not due yet by the clock of the store. An order that is due and cannot be
// cancelled is left to the scan, for example because its row is locked.
func (r *receiver) expireOrders(ctx context.Context, nos []seckill.OrderNo) (early map[seckill.OrderNo]bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWithin)
	defer cancel()
	// Read the clock first, so that an order that becomes due meanwhile is not
	// missed.
	now, err := r.opt.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	expired, err := r.opt.Store.ExpireOrders(ctx, nos)
	if len(expired) > 0 {
		r.opt.OnExpired(expired)
	}
	if err != nil || len(expired) == len(nos) {
		return nil, err
	}
	gone := make(map[seckill.OrderNo]bool, len(expired))
	for i := range expired {
		gone[expired[i].OrderNo] = true
	}
	left, err := r.opt.Store.OrdersByNo(ctx, slices.DeleteFunc(nos, func(no seckill.OrderNo) bool { return gone[no] }))
	if err != nil {
		return nil, err
	}
	early = make(map[seckill.OrderNo]bool)
	for i := range left {
		if left[i].Status == seckill.OrderPending && left[i].PayBefore.After(now) {
			early[left[i].OrderNo] = true
		}
	}
	return early, nil
}

// done settles messages. If that fails, a message comes again and its orders
// are already expired.
func (r *receiver) done(parcels []parcel, result ExpiryResult) {
	r.settle(parcels, result, r.broker().Done)
}

// again gives messages back. If that fails, the broker delivers them again when
// it misses the receiver.
func (r *receiver) again(parcels []parcel) {
	r.settle(parcels, Again, r.broker().Again)
}

func (r *receiver) settle(parcels []parcel, result ExpiryResult, settle func(context.Context, []carrier.Delivery) error) {
	if len(parcels) == 0 {
		return
	}
	messages := make([]carrier.Delivery, len(parcels))
	for i := range parcels {
		messages[i] = parcels[i].message
		r.opt.Meter.Message(result)
	}
	ctx, cancel := context.WithTimeout(r.calls, settleWithin)
	defer cancel()
	if err := settle(ctx, messages); err != nil {
		r.complaints.Say(slog.LevelWarn, "settle", "expiry messages not settled at the broker; they come again", "messages", len(messages), "error", err)
	}
}
