package carrierrocket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/client/rocketclient"
)

const (
	// maxHeld and heldBytes bound the unsettled messages. No poll starts while
	// one of them is reached.
	maxHeld   = 16_384
	heldBytes = 64 << 20
	// pollPause is the pause after a poll that failed, or that ended early
	// without a message.
	pollPause = 300 * time.Millisecond
	// maxAcks bounds the messages of one settling request, and maxSettles the
	// concurrent requests.
	maxAcks    = 32
	maxSettles = 16
	sweepEvery = time.Second
)

// A message that was given back comes again after againMin. The delay doubles
// with each delivery up to againMax. By default, brokers move a message to the
// dead-letter queue after 16 retries, which is after twelve minutes. The outbox
// then publishes the entries again.
const (
	againMin = 2 * time.Second
	againMax = 60 * time.Second
	// closedAfter is the delay of messages that a closing carrier gives back.
	closedAfter = time.Second
)

var errClosed = errors.New("rocketmq: the carrier is closed")

// delivery is the handle of a received message.
type delivery struct {
	message carrier.Message
	receipt rocketclient.Receipt
	attempt int
	until   time.Time // then it comes again
}

// receiver polls on demand: while a caller waits, each broker has one poll of
// some seconds. If the caller has left when a poll ends, its messages wait for
// the next caller.
type receiver struct {
	opt      Options
	consumer *rocketclient.Client

	ctx    context.Context // context of polls; ends with close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	polling map[string]bool // brokers
	ready   []*delivery
	held    map[*delivery]bool // ready, or with a receiver
	bytes   int                // of held
	sweepAt time.Time
	refused error         // error of the latest poll, if the broker refused it; returned once
	changed chan struct{} // closed and replaced when a poll has ended
}

func newReceiver(opt Options, consumer *rocketclient.Client) *receiver {
	r := &receiver{opt: opt, consumer: consumer, polling: make(map[string]bool), held: make(map[*delivery]bool), changed: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Receive waits for messages until its context ends, also while the broker is
// away. If the broker refuses, it returns an error: carrier.ErrSetup if the
// group or the topic does not exist.
func (r *receiver) Receive(ctx context.Context, most int) ([]carrier.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		got, changed, err := r.take(most)
		if err != nil || len(got) > 0 {
			return got, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// take returns ready messages. If there are none, it polls, and the channel
// closes when that may have changed.
func (r *receiver) take(most int) ([]carrier.Delivery, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, errClosed
	}
	now := time.Now()
	var got []carrier.Delivery
	for len(r.ready) > 0 && len(got) < most {
		d := r.ready[0]
		r.ready = r.ready[1:]
		if d.until.Sub(now) < r.opt.Invisible/2 { // too little time is left to handle it: it comes again
			r.drop(d)
			continue
		}
		got = append(got, carrier.Delivery{Message: d.message, Handle: d})
	}
	if len(got) > 0 {
		return got, nil, nil
	}
	if err := r.refused; err != nil {
		r.refused = nil
		return nil, nil, err
	}
	r.startPolls(min(most, rocketclient.MaxPoll))
	return nil, r.changed, nil
}

// startPolls polls the brokers without a running poll. The caller holds mu.
func (r *receiver) startPolls(most int) {
	r.sweep(time.Now())
	if len(r.held) >= maxHeld || r.bytes >= heldBytes {
		time.AfterFunc(sweepEvery, r.wake)
		return
	}
	brokers := r.consumer.Brokers()
	if len(brokers) == 0 {
		brokers = []string{""} // the poll finds one
	}
	for _, name := range brokers {
		if !r.polling[name] {
			r.polling[name] = true
			r.tasks.Go(func() { r.poll(name, most) })
		}
	}
}

// poll polls one broker once.
func (r *receiver) poll(broker string, most int) {
	began := time.Now()
	got, err := r.consumer.Poll(r.ctx, broker, most, r.opt.Invisible)
	if err != nil && r.ctx.Err() == nil {
		r.opt.Logger.Debug("rocketmq: poll", "topic", r.opt.Topic, "error", err)
	}
	r.add(got, portError(err))
	if err != nil || len(got) == 0 && time.Since(began) < pollPause {
		_ = background.Pause(r.ctx, pollPause) // a stop ends it early
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.polling, broker)
	r.signal()
}

// add makes messages ready.
func (r *receiver) add(got []rocketclient.Received, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := time.Now().Add(r.opt.Invisible)
	for i := range got {
		m := &got[i]
		d := &delivery{
			message: carrier.Message{Key: m.Key, Body: m.Body, Signature: m.Properties[carrier.SignatureHeader]},
			receipt: m.Receipt, attempt: m.Attempt, until: until,
		}
		r.held[d] = true
		r.bytes += len(m.Body)
		r.ready = append(r.ready, d)
	}
	r.refused = nil
	if rocketclient.Refused(err) || errors.Is(err, carrier.ErrSetup) {
		r.refused = err
	}
	r.signal()
}

// wake makes callers check again.
func (r *receiver) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signal()
}

// signal wakes callers. The caller holds mu.
func (r *receiver) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// drop forgets a message. The caller holds mu.
func (r *receiver) drop(d *delivery) {
	if r.held[d] {
		delete(r.held, d)
		r.bytes -= len(d.message.Body)
	}
}

// sweep forgets messages that the broker delivers again. The caller holds mu.
func (r *receiver) sweep(now time.Time) {
	if now.Before(r.sweepAt) {
		return
	}
	r.sweepAt = now.Add(sweepEvery)
	for d := range r.held {
		if now.After(d.until) {
			r.drop(d)
		}
	}
}

// Done settles deliveries. Each request settles several messages of one broker.
func (r *receiver) Done(ctx context.Context, deliveries []carrier.Delivery) error {
	byBroker := make(map[string][]*delivery)
	for _, d := range handlesOf(deliveries) {
		byBroker[d.receipt.Broker()] = append(byBroker[d.receipt.Broker()], d)
	}
	var group errgroup.Group
	group.SetLimit(maxSettles)
	for _, all := range byBroker {
		for some := range slices.Chunk(all, maxAcks) {
			group.Go(func() error {
				receipts := make([]rocketclient.Receipt, len(some))
				for i, d := range some {
					receipts[i] = d.receipt
				}
				return r.settled(r.consumer.Ack(ctx, receipts), some...)
			})
		}
	}
	return group.Wait()
}

// Again gives deliveries back.
func (r *receiver) Again(ctx context.Context, deliveries []carrier.Delivery) error {
	return r.hide(ctx, handlesOf(deliveries), func(d *delivery) time.Duration { return againAfter(d.attempt) })
}

func (r *receiver) hide(ctx context.Context, all []*delivery, after func(*delivery) time.Duration) error {
	var group errgroup.Group
	group.SetLimit(maxSettles)
	for _, d := range all {
		group.Go(func() error { return r.settled(r.consumer.Hide(ctx, d.receipt, after(d)), d) })
	}
	return group.Wait()
}

// againAfter returns the delay of a message after this many deliveries.
func againAfter(attempt int) time.Duration {
	const doublings = 5 // 2 s to more than 60 s
	return min(againMin<<max(0, min(attempt-1, doublings)), againMax)
}

// settled forgets deliveries if err is nil, and returns err.
func (r *receiver) settled(err error, deliveries ...*delivery) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		for _, d := range deliveries {
			r.drop(d)
		}
	}
	return portError(err)
}

// handlesOf returns the handles, without deliveries of other brokers.
func handlesOf(deliveries []carrier.Delivery) []*delivery {
	all := make([]*delivery, 0, len(deliveries))
	for i := range deliveries {
		if d, ok := deliveries[i].Handle.(*delivery); ok {
			all = append(all, d)
		}
	}
	return all
}

// close ends the polls, gives unsettled messages back, and leaves the group.
func (r *receiver) close(ctx context.Context) error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.signal()
	r.mu.Unlock()
	r.cancel()
	if !first {
		return nil
	}
	_ = background.WaitWithin(ctx, r.tasks.Wait) // polls end with their own context
	r.mu.Lock()
	r.sweepAt = time.Time{}
	r.sweep(time.Now())
	left := make([]*delivery, 0, len(r.held))
	for d := range r.held {
		left = append(left, d)
	}
	r.mu.Unlock()
	err := r.hide(ctx, left, func(*delivery) time.Duration { return closedAfter })
	if err != nil {
		err = fmt.Errorf("rocketmq: %d messages were not given back and come again within %s: %w", len(left), r.opt.Invisible, err)
	}
	return errors.Join(err, r.consumer.Close(ctx))
}
