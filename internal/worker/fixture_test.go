package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/queue"
	"seckill/internal/store"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// fixture is a rig with a worker that can be started and stopped.
type fixture struct {
	*rig.Rig
	queue  *faultyQueue
	store  worker.Store // the rig's, unless a test sets its own
	worker *worker.Worker
	stop   func()
	// stopping is closed when the worker is asked to stop.
	stopping chan struct{}

	mu       sync.Mutex
	batches  []int // claims
	troubles []trouble
	alerts   []alert.Kind
	causes   []error // of the alerts
}

type trouble struct {
	product uint32
	err     error
}

// ladder is short. Tests take its steps by advancing the clock.
var ladder = []time.Duration{time.Minute, 2 * time.Minute}

func newFixture(t *testing.T, changes ...func(*worker.Options)) *fixture {
	t.Helper()
	t.Parallel() // most of them wait
	c := &fixture{Rig: rig.New(t)}
	c.queue = &faultyQueue{inner: func() queue.Queue { return c.Queue }}
	c.store = c.Store
	c.newWorker(changes...)
	return c
}

// newWorker makes the worker again, as after a restart.
func (c *fixture) newWorker(changes ...func(*worker.Options)) {
	c.worker = worker.New(c.queue, c.store, c.Lanes, c.options(changes...))
}

func (c *fixture) options(changes ...func(*worker.Options)) worker.Options {
	opt := worker.Options{
		Name: "worker", BatchSize: 100, BatchWait: time.Millisecond, Ladder: ladder, DiscardAfter: 24 * time.Hour,
		ExpireAfter: 30 * time.Minute, Logger: slog.New(slog.DiscardHandler), Now: c.Time.Now, Gatherer: c.Mover,
		OnBatch: func(claims int, _, _ time.Duration) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.batches = append(c.batches, claims)
		},
		OnTrouble: func(product uint32, err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.troubles = append(c.troubles, trouble{product, err})
		},
		OnAlert: func(kind alert.Kind, _ uint32, err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.alerts, c.causes = append(c.alerts, kind), append(c.causes, err)
		},
	}
	for _, change := range changes {
		change(&opt)
	}
	return opt
}

// start runs the worker until stop is called or the test ends.
func (c *fixture) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done, stopping := make(chan error, 1), make(chan struct{})
	go func() { done <- c.worker.Run(ctx) }()
	c.stopping = stopping
	c.stop = sync.OnceFunc(func() {
		cancel()
		close(stopping)
		select {
		case <-done:
		case <-time.After(rig.Patience):
			t.Error("the worker does not stop")
		}
	})
	t.Cleanup(c.stop)
}

func (c *fixture) settled() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.batches)
}

func (c *fixture) troubled() []trouble {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.troubles)
}

func (c *fixture) alerted() []alert.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.alerts)
}

// waitDrained waits until the queue is empty.
func (c *fixture) waitDrained(t *testing.T) {
	t.Helper()
	rig.Until(t, "the queue is empty", func() bool { return c.Depth(t, 0) == 0 })
}

// statuses checks the status of each order.
func (c *fixture) statuses(t *testing.T, want seckill.OrderStatus, nos ...seckill.OrderNo) {
	t.Helper()
	for _, no := range nos {
		if got := c.Status(t, no); got != want {
			t.Errorf("order %s is %s, want %s", no, got, want)
		}
	}
}

func (c *fixture) letters(t *testing.T) []store.Letter {
	t.Helper()
	letters, err := c.Store.Letters(t.Context(), store.LetterFilter{Limit: 1000})
	rig.Must(t, err)
	return letters
}

func buyers(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}

// faultyQueue fails on demand.
type faultyQueue struct {
	inner func() queue.Queue

	mu          sync.Mutex
	failAck     int
	failReceive int // after a receive that returned entries
	failJoin    int
}

func (q *faultyQueue) Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error {
	return q.inner().Unacknowledged(ctx, product, see)
}

func (q *faultyQueue) take(n *int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if *n > 0 {
		*n--
		return true
	}
	return false
}

func (q *faultyQueue) set(n *int, to int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	*n = to
}

func (q *faultyQueue) left(n *int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return *n
}

func (q *faultyQueue) HighestWitness(ctx context.Context) ([]queue.ID, error) {
	return q.inner().HighestWitness(ctx)
}

func (q *faultyQueue) Lost(ctx context.Context, witnesses []queue.ID) ([]queue.ID, error) {
	return q.inner().Lost(ctx, witnesses)
}

func (q *faultyQueue) Waiting(ctx context.Context) ([]uint32, error) { return q.inner().Waiting(ctx) }

func (q *faultyQueue) Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool, error) {
	return q.inner().Find(ctx, product, no, most)
}

func (q *faultyQueue) Stats(ctx context.Context, product uint32) (queue.Stats, error) {
	return q.inner().Stats(ctx, product)
}

func (q *faultyQueue) Consumer(ctx context.Context, name string) (queue.Consumer, error) {
	if q.take(&q.failJoin) {
		return nil, rig.ErrLedger
	}
	inner, err := q.inner().Consumer(ctx, name)
	return &faultyConsumer{Consumer: inner, queue: q}, err
}

func (q *faultyQueue) Relay(ctx context.Context, name string) (queue.Consumer, error) {
	return q.inner().Relay(ctx, name)
}

type faultyConsumer struct {
	queue.Consumer
	queue *faultyQueue
	got   bool
}

func (c *faultyConsumer) Receive(ctx context.Context, max int) ([]queue.Delivery, error) {
	if c.got && c.queue.take(&c.queue.failReceive) {
		c.got = false
		return nil, rig.ErrLedger
	}
	got, err := c.Consumer.Receive(ctx, max)
	c.got = len(got) > 0
	return got, err
}

func (c *faultyConsumer) Ack(ctx context.Context, done []queue.Delivery, witness queue.ID) error {
	if c.queue.take(&c.queue.failAck) {
		return rig.ErrLedger
	}
	return c.Consumer.Ack(ctx, done, witness)
}
