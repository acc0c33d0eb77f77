package carrierpulsar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/grace"
	"seckill/internal/pulsarlink"
)

const (
	// keepEvery is how often the receiver looks whether its subscription is of use.
	keepEvery = time.Second
	// idleAfter is when a process in which nobody receives leaves the subscription,
	// so that others get its messages. The next Receive joins again.
	idleAfter = 60 * time.Second
	// joinTimeout bounds joining the subscription, joinPause is the wait after it
	// failed.
	joinTimeout = 15 * time.Second
	joinPause   = 200 * time.Millisecond
)

var errClosed = errors.New("pulsar: the carrier is closed")

// receiver feeds all callers of Receive from one subscription, which it replaces
// when the topic has other partitions.
type receiver struct {
	opt   Options
	topic *pulsarlink.Topic
	log   *slog.Logger

	receiving    atomic.Int64 // callers of Receive
	lastReceived atomic.Int64 // when the last one left, in Unix nanoseconds
	wanted       chan struct{}

	mu  sync.Mutex
	now *membership // nil until somebody receives

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	changed chan struct{} // closed and replaced when there is another membership
}

// membership is the time between joining the subscription and leaving it.
type membership struct {
	inbox        *inbox
	subscription *pulsarlink.Subscription
}

func newReceiver(opt Options, topic *pulsarlink.Topic) *receiver {
	r := &receiver{opt: opt, topic: topic, log: opt.Logger, wanted: make(chan struct{}, 1), changed: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// subscribe joins. No message comes before the subscription is started.
func (r *receiver) subscribe(ctx context.Context) (*membership, error) {
	m := &membership{inbox: newInbox()}
	var err error
	m.subscription, err = r.topic.Subscribe(ctx, pulsarlink.SubscriptionOptions{Name: r.opt.Group, Inbox: m.inbox})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// check subscribes for a moment. The broker keeps messages for a subscription
// from then on, and refuses it now if it ever does.
func (r *receiver) check(ctx context.Context) error {
	return grace.Retry(ctx, joinPause, pulsarlink.IsSetup, func() error {
		m, err := r.subscribe(ctx)
		if err != nil {
			return err
		}
		return m.subscription.Leave(ctx)
	})
}

func (r *receiver) start() { r.tasks.Go(r.keep) }

// receive returns at most max messages.
func (r *receiver) receive(ctx context.Context, most int) ([]carrier.Delivery, error) {
	r.receiving.Add(1)
	defer func() {
		r.lastReceived.Store(time.Now().UnixNano())
		r.receiving.Add(-1)
	}()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.ctx.Err() != nil {
			return nil, errClosed
		}
		got, arrived, changed := r.take(most)
		if len(got) > 0 {
			return got, nil
		}
		select {
		case <-arrived:
		case <-changed:
		case <-ctx.Done():
		case <-r.ctx.Done():
		}
	}
}

// take returns messages that are ready. If there are none, one of the channels
// is closed when that may have changed.
func (r *receiver) take(most int) (got []carrier.Delivery, arrived, changed <-chan struct{}) {
	r.mu.Lock()
	now, changed := r.now, r.changed
	r.mu.Unlock()
	if now == nil {
		select {
		case r.wanted <- struct{}{}:
		default:
		}
		return nil, nil, changed
	}
	got, arrived = now.inbox.take(most)
	if len(got) > 0 {
		now.refill()
	}
	return got, arrived, changed
}

// refill lets more messages come if there is room.
func (m *membership) refill() {
	if m.inbox.HasRoom() {
		m.subscription.Refill()
	}
}

// keep joins when somebody receives, and leaves a subscription of no use.
func (r *receiver) keep() {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wanted:
		case <-tick.C:
		}
		now := r.present()
		idle := r.receiving.Load() == 0 && time.Since(time.Unix(0, r.lastReceived.Load())) > idleAfter
		switch {
		case now == nil && !idle:
			r.join()
		case now != nil && (idle || now.subscription.IsOutdated()):
			r.retire(now)
		}
	}
}

func (r *receiver) present() *membership {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *receiver) set(m *membership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = m
	close(r.changed)
	r.changed = make(chan struct{})
}

// join makes the subscription.
func (r *receiver) join() {
	ctx, cancel := context.WithTimeout(r.ctx, joinTimeout)
	defer cancel()
	m, err := r.subscribe(ctx)
	if err != nil {
		r.log.Debug("pulsar: subscribe", "topic", r.topic.Name(), "error", err)
		r.topic.Check()                   // it may have other partitions
		_ = grace.Pause(r.ctx, joinPause) // the caller looks at the context
		return
	}
	r.set(m)
	m.subscription.Start()
}

// retire leaves a subscription. Its messages come again, to its successor or to
// another process.
func (r *receiver) retire(m *membership) {
	r.log.Debug("pulsar: leave a subscription", "topic", r.topic.Name())
	r.set(nil)
	m.inbox.end()
	if err := m.subscription.Leave(r.ctx); err != nil {
		r.log.Debug("pulsar: leave a subscription", "topic", r.topic.Name(), "error", err)
	}
}

// held are the deliveries that the present membership holds.
func (r *receiver) held(deliveries []carrier.Delivery) (*membership, []*delivery) {
	now := r.present()
	if now == nil {
		return nil, nil
	}
	return now, now.inbox.open(deliveries)
}

// settle acknowledges deliveries at the broker. They stay held until it has
// taken the acknowledgement, so that they do not come twice.
func (r *receiver) settle(ctx context.Context, deliveries []carrier.Delivery) error {
	now, open := r.held(deliveries)
	if len(open) == 0 {
		return nil
	}
	err := now.subscription.Acknowledge(ctx, idsOf(open))
	open = now.inbox.forget(open)
	if err != nil {
		if r.present() != now { // the deliveries are another subscription's now
			return nil
		}
		now.subscription.GiveBack(idsOf(open))
		err = fmt.Errorf("pulsar: settle: %w", err)
	}
	now.refill()
	return err
}

// again gives deliveries back to the broker.
func (r *receiver) again(deliveries []carrier.Delivery) {
	if now, open := r.held(deliveries); now != nil {
		now.subscription.GiveBack(idsOf(now.inbox.forget(open)))
		now.refill()
	}
}

// close leaves the subscription, which gives back all that is not settled.
func (r *receiver) close(ctx context.Context) error {
	r.cancel()
	if err := grace.Wait(ctx, r.tasks.Wait); err != nil {
		return fmt.Errorf("pulsar: close the subscription: %w", err)
	}
	if last := r.present(); last != nil {
		r.set(nil)
		last.inbox.end()
		return last.subscription.Leave(ctx)
	}
	return nil
}
