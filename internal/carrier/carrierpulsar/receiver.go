package carrierpulsar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"seckill/internal/carrier"
	"seckill/internal/pulsarlink"
)

const (
	// keepEvery is how often the receiver looks whether its consumer is of use.
	keepEvery = time.Second
	// idleAfter is when a process in which nobody receives closes its consumer, so
	// that others get its messages. The next Receive subscribes again.
	idleAfter = 60 * time.Second
	// joinTimeout bounds a subscription, joinPause is the wait after one that
	// failed.
	joinTimeout = 15 * time.Second
	joinPause   = 500 * time.Millisecond
)

// Bounds of memory. Reading from the client stops while one of them is reached:
// maxReady messages that nobody has taken, maxHeld messages or heldBytes that
// are not settled. The client's own queue holds queueMost messages over all
// partitions, and no less than queueLeast of each.
const (
	maxReady   = 256
	maxHeld    = 16_384
	heldBytes  = 64 << 20
	queueMost  = 64
	queueLeast = 4
)

var errClosed = errors.New("pulsar: the carrier is closed")

// receiver feeds all callers of Receive from one consumer, which it replaces
// when it is of no use any more.
type receiver struct {
	opt   Options
	kind  pulsar.SubscriptionType
	topic *pulsarlink.Topic
	log   *slog.Logger

	receiving    atomic.Int64 // callers of Receive
	lastReceived atomic.Int64 // when the last one left, in Unix nanoseconds
	wanted       chan struct{}

	mu      sync.Mutex
	now     *consumer // nil until somebody receives
	ready   []*delivery
	held    map[place]*delivery // ready or in hand
	bytes   int                 // of them
	changed chan struct{}       // closed and replaced when ready grows
	room    chan struct{}       // wakes the reading

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// place is where a message stands. A broker that lost its data may have another
// message there later.
type place struct {
	partition, batch int32
	ledger, entry    int64
}

func placeOf(id pulsar.MessageID) place {
	return place{partition: id.PartitionIdx(), batch: id.BatchIdx(), ledger: id.LedgerID(), entry: id.EntryID()}
}

// delivery is the handle of a message. The receiver's mutex guards it.
type delivery struct {
	message carrier.Message
	from    *consumer
	at      place
	// id is that of the last time that the message came.
	id      pulsar.MessageID
	settled bool // or given back, or of no use any more
}

func newReceiver(opt Options, topic *pulsarlink.Topic, kind pulsar.SubscriptionType) *receiver {
	r := &receiver{
		opt: opt, kind: kind, topic: topic, log: opt.Logger, wanted: make(chan struct{}, 1),
		held: make(map[place]*delivery), changed: make(chan struct{}), room: make(chan struct{}, 1),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// check subscribes for a moment. The broker keeps messages for a subscription
// from then on, and refuses it now if it ever does.
func (r *receiver) check(ctx context.Context) error {
	for {
		c, err := subscribe(ctx, r)
		if err == nil {
			return c.leave(ctx)
		}
		if pulsarlink.IsSetup(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(joinPause):
		case <-ctx.Done():
		}
	}
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
		got, changed := r.take(most)
		if len(got) > 0 {
			return got, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-r.ctx.Done():
		}
	}
}

// take returns messages that are ready. If there are none, the channel is closed
// when that may have changed.
func (r *receiver) take(most int) ([]carrier.Delivery, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		nudge(r.wanted)
	}
	n := min(most, len(r.ready))
	if n == 0 {
		return nil, r.changed
	}
	got := make([]carrier.Delivery, n)
	for i, d := range r.ready[:n] {
		got[i] = carrier.Delivery{Message: d.message, Handle: d}
	}
	clear(r.ready[:n])
	r.ready = r.ready[n:]
	nudge(r.room)
	return got, nil
}

// nudge wakes who waits for a channel of one place.
func nudge(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// keep subscribes when somebody receives, and replaces a consumer of no use.
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
		case now != nil && (idle || now.layout != r.topic.Layout() || now.isDead()):
			r.retire(now)
		}
	}
}

func (r *receiver) present() *consumer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// join makes the consumer.
func (r *receiver) join() {
	ctx, cancel := context.WithTimeout(r.ctx, joinTimeout)
	defer cancel()
	c, err := subscribe(ctx, r)
	if err != nil {
		r.log.Debug("pulsar: subscribe", "topic", r.topic.Name(), "error", err)
		select {
		case <-time.After(joinPause):
		case <-r.ctx.Done():
		}
		return
	}
	r.mu.Lock()
	r.now = c
	r.mu.Unlock()
	c.start()
}

// retire gives up a consumer. Its messages come again, to its successor or to
// another process.
func (r *receiver) retire(c *consumer) {
	r.log.Debug("pulsar: give up a consumer", "topic", r.topic.Name())
	r.drop()
	r.tasks.Go(func() {
		if err := c.leave(r.ctx); err != nil {
			r.log.Debug("pulsar: close a consumer", "topic", r.topic.Name(), "error", err)
		}
	})
}

// drop forgets the consumer and its messages.
func (r *receiver) drop() *consumer {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.now
	r.now = nil
	for _, d := range r.held {
		d.settled = true
	}
	clear(r.held)
	r.ready, r.bytes = nil, 0
	nudge(r.room)
	return last
}

// waitForRoom is false when the context has ended.
func (r *receiver) waitForRoom(ctx context.Context) bool {
	for ctx.Err() == nil {
		r.mu.Lock()
		room := len(r.ready) < maxReady && len(r.held) < maxHeld && r.bytes < heldBytes
		r.mu.Unlock()
		if room {
			return true
		}
		select {
		case <-r.room:
		case <-ctx.Done():
		}
	}
	return false
}

// add makes a message ready. One that is held already comes again when the
// connection was lost. Receivers do not get it twice.
func (r *receiver) add(c *consumer, m pulsar.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != c {
		return
	}
	at := placeOf(m.ID())
	if d := r.held[at]; d != nil {
		if d.message.Key == m.Key() && bytes.Equal(d.message.Body, m.Payload()) {
			d.id = m.ID()
			return
		}
		// The broker has lost its data: the earlier message is gone.
		r.forget(d)
		if i := slices.Index(r.ready, d); i >= 0 {
			r.ready = slices.Delete(r.ready, i, i+1)
		}
	}
	d := &delivery{
		message: carrier.Message{Key: m.Key(), Body: m.Payload(), Signature: m.Properties()[carrier.SignatureHeader]},
		from:    c, at: at, id: m.ID(),
	}
	r.held[at] = d
	r.bytes += len(d.message.Body)
	r.ready = append(r.ready, d)
	close(r.changed)
	r.changed = make(chan struct{})
}

// forget ends a delivery. The caller holds mu.
func (r *receiver) forget(d *delivery) {
	if d.settled {
		return
	}
	d.settled = true
	delete(r.held, d.at)
	r.bytes -= len(d.message.Body)
	nudge(r.room)
}

// open are the deliveries that the present consumer holds.
func (r *receiver) open(deliveries []carrier.Delivery) []*delivery {
	var open []*delivery
	for i := range deliveries {
		if d, ok := deliveries[i].Handle.(*delivery); ok && !d.settled && d.from == r.now {
			open = append(open, d)
		}
	}
	return open
}

// settle acknowledges deliveries at the broker.
func (r *receiver) settle(ctx context.Context, deliveries []carrier.Delivery) error {
	r.mu.Lock()
	c, open := r.now, r.open(deliveries)
	r.mu.Unlock()
	if len(open) == 0 {
		return nil
	}
	return c.acknowledge(ctx, open)
}

// idsOf are the ids by which deliveries are acknowledged.
func (r *receiver) idsOf(deliveries []*delivery) []pulsar.MessageID {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]pulsar.MessageID, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.id
	}
	return ids
}

// acknowledged ends deliveries that the broker counts as done.
func (r *receiver) acknowledged(deliveries []*delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range deliveries {
		r.forget(d)
	}
}

// returned gives back deliveries whose acknowledgement failed: they come again.
func (r *receiver) returned(c *consumer, deliveries []*delivery) {
	r.mu.Lock()
	open := slices.DeleteFunc(slices.Clone(deliveries), func(d *delivery) bool { return d.settled })
	for _, d := range open {
		r.forget(d)
	}
	r.mu.Unlock()
	c.giveBack(open)
}

// again gives deliveries back to the broker.
func (r *receiver) again(deliveries []carrier.Delivery) {
	r.mu.Lock()
	c, open := r.now, r.open(deliveries)
	for _, d := range open {
		r.forget(d)
	}
	r.mu.Unlock()
	c.giveBack(open)
}

// close ends the consumer, which gives back all that is not settled.
func (r *receiver) close(ctx context.Context) error {
	if r.ctx.Err() != nil {
		return nil
	}
	r.cancel()
	err := pulsarlink.Do(ctx, r.tasks.Wait)
	if last := r.drop(); last != nil {
		err = errors.Join(err, last.leave(ctx))
	}
	if err != nil {
		return fmt.Errorf("pulsar: close the consumer: %w", err)
	}
	return nil
}
