package relay_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carriertest"
	"seckill/internal/carrier/relay"
	"seckill/internal/queue"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// brisk is a timing with short waits for tests.
var brisk = relay.Timing{
	PublishWithin: 300 * time.Millisecond, RepublishAfter: 200 * time.Millisecond, UnwellAfter: 3 * time.Second,
	CheckEvery: 20 * time.Millisecond, MinBypass: 100 * time.Millisecond,
}

// shop is a rig whose worker gets its entries over a broker.
type shop struct {
	*rig.Rig
	broker *carriertest.Memory
	codec  *carrier.Codec
	timing relay.Timing
	store  *pinged
	line   *relay.Line

	log rig.Log

	mu       sync.Mutex
	again    int // messages that were published again
	rejected map[string]int
	strays   int
	bypasses int
}

// pinged is a store whose health the test sets.
type pinged struct {
	mu  sync.Mutex
	err error
}

func (p *pinged) Ping(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pinged) set(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func newShop(t *testing.T) *shop {
	t.Helper()
	t.Parallel() // most of them wait
	ring, err := auth.NewRing([]byte("0123456789abcdef"))
	rig.Must(t, err)
	return &shop{
		Rig: rig.New(t), broker: carriertest.NewMemory(), codec: &carrier.Codec{Store: "store-1", Ring: ring},
		timing: brisk, store: &pinged{}, rejected: make(map[string]int),
	}
}

// relay starts a line and returns a function that stops it.
func (s *shop) relay(t *testing.T) (stop func()) {
	t.Helper()
	s.line = relay.New(relay.Options{
		Name: "relay", Outbox: s.Queue, Open: s.open, Codec: s.codec, Store: s.store, Meter: s,
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(&s.log, t.Output()), nil)), Timing: s.timing,
	})
	stop = s.goUntil(t, "relay", func(ctx context.Context) {
		s.line.Run(ctx)
		rig.Must(t, s.line.Close(context.WithoutCancel(ctx)))
	})
	if s.broker.Ping(t.Context()) == nil {
		rig.Until(t, "the broker is open", func() bool { return !s.line.Bypassed() })
	}
	return stop
}

func (s *shop) open(context.Context) (carrier.Carrier, error) {
	return s.broker, s.broker.Ping(context.Background())
}

// work starts a worker on the line, or on the outbox if there is no line.
func (s *shop) work(t *testing.T) (stop func()) {
	t.Helper()
	opt := worker.Options{
		Name: "worker", BatchSize: 100, BatchWait: time.Millisecond, Ladder: []time.Duration{time.Minute}, DiscardAfter: time.Hour,
		ExpireAfter: time.Hour, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: s.Time.Now, Gatherer: s.Mover,
		OnBatch:   func(int, time.Duration, time.Duration) {},
		OnTrouble: func(uint32, error) {}, OnAlert: func(alert.Kind, uint32, error) {},
	}
	if s.line != nil {
		opt.Source = s.line
	}
	w := worker.New(s.Queue, s.Store, s.Lanes, opt)
	return s.goUntil(t, "worker", func(ctx context.Context) {
		if err := w.Run(ctx); err != nil {
			t.Errorf("worker: %v", err)
		}
	})
}

// consumer joins the line without a worker.
func (s *shop) consumer(t *testing.T, name string) queue.Consumer {
	t.Helper()
	c, err := s.line.Consumer(t.Context(), name)
	rig.Must(t, err)
	return c
}

// goUntil runs in the background until the returned function is called or the
// test ends.
func (s *shop) goUntil(t *testing.T, what string, run func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(rig.Patience):
			t.Errorf("the %s does not stop", what)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (s *shop) Published(messages, _ int, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again {
		s.again += messages
	}
}

func (s *shop) Rejected(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected[why]++
}

func (s *shop) Stray(entries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strays += entries
}

func (s *shop) Holds(int) {}

func (s *shop) Bypassed(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cause != nil {
		s.bypasses++
	}
}

// count reads a counter of the meter.
func (s *shop) count(which *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *which
}

// drained waits until the outbox and the broker are empty.
func (s *shop) drained(t *testing.T) {
	t.Helper()
	rig.Until(t, "the outbox is empty", func() bool { return s.Depth(t, 0) == 0 })
	rig.Until(t, "the broker is empty", func() bool { return s.broker.Unsettled() == 0 })
}

// all checks the status of every order.
func (s *shop) all(t *testing.T, want seckill.OrderStatus, nos []seckill.OrderNo) {
	t.Helper()
	for _, no := range nos {
		if got := s.Status(t, no); got != want {
			t.Errorf("order %s is %s, want %s", no, got, want)
		}
	}
}

func buyers(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}
