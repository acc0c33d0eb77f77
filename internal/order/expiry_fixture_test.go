package order_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carriertest"
	"seckill/internal/order"
	"seckill/internal/store"
	"seckill/test/rig"
)

// shop is a rig whose orders expire by messages.
type shop struct {
	*rig.Rig
	broker    *carriertest.MemoryDelayer
	codec     *carrier.Codec
	scheduler *order.ExpiryScheduler
	product   seckill.Product

	log rig.Log

	mu       sync.Mutex
	messages map[order.ExpiryResult]int
	expired  []seckill.Order
}

func newShop(t *testing.T) *shop {
	t.Helper()
	t.Parallel() // most of them wait
	s := &shop{Rig: rig.New(t), broker: carriertest.NewMemoryDelayer(), codec: newCodec(t, "store-1"), messages: make(map[order.ExpiryResult]int)}
	s.product = s.Open(t, 1, 10_000)
	s.scheduler = order.NewExpiryScheduler(order.ExpiryOptions{
		Open: s.open, Codec: s.codec, Store: s.Store, Meter: s, OnExpired: s.sawExpired, Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(&s.log, t.Output()), nil)),
	})
	return s
}

func newCodec(t *testing.T, store string) *carrier.Codec {
	t.Helper()
	ring, err := auth.NewRing([]byte("0123456789abcdef"))
	rig.Must(t, err)
	return &carrier.Codec{Store: store, Ring: ring}
}

func (s *shop) open(context.Context) (carrier.Delayer, error) { return s.broker, s.broker.Ping() }

func (s *shop) Message(result order.ExpiryResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages[result]++
}

func (s *shop) sawExpired(orders []seckill.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = append(s.expired, orders...)
}

func (s *shop) count(result order.ExpiryResult) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[result]
}

func (s *shop) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.expired)
}

// run runs the scheduler until the returned function is called or the test
// ends.
func (s *shop) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.scheduler.Run(ctx)
		if err := s.scheduler.Close(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(rig.Patience):
			t.Error("the scheduler does not stop")
		}
	})
	t.Cleanup(stop)
	return stop
}

// confirm makes n orders with this time to pay, and returns when it ends by the
// clock of the machine.
func (s *shop) confirm(t *testing.T, n int, within time.Duration) ([]seckill.OrderNo, time.Time) {
	t.Helper()
	nos := confirm(t, s.Store, s.product, n, within)
	return nos, time.Now().Add(within)
}

func confirm(t *testing.T, in store.Store, p seckill.Product, n int, within time.Duration) []seckill.OrderNo {
	t.Helper()
	req := store.ConfirmRequest{ProductID: p.ID, ExpireAfter: within}
	nos := make([]seckill.OrderNo, n)
	at := time.Now()
	for i := range nos {
		id := orderCount()
		nos[i] = seckill.NewOrderNo(at, p.ID, id)
		req.Items = append(req.Items, store.Item{
			// Buyers of a real sale come in random order.
			Claim:     seckill.Claim{OrderNo: nos[i], Buyer: fmt.Sprintf("buyer-%016x", id*0x9E3779B97F4A7C15), Quantity: 1},
			ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, At: at, PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: p.PerUserLimit,
		})
	}
	_, err := in.Confirm(t.Context(), req)
	rig.Must(t, err)
	return nos
}

var (
	orderMu   sync.Mutex
	lastOrder uint64
)

func orderCount() uint64 {
	orderMu.Lock()
	defer orderMu.Unlock()
	lastOrder++
	return lastOrder
}

// cancelled counts the expired orders.
func (s *shop) cancelled(t *testing.T, nos []seckill.OrderNo) (n int) {
	t.Helper()
	orders, err := s.Store.OrdersByNo(t.Context(), nos)
	rig.Must(t, err)
	for i := range orders {
		if orders[i].Status == seckill.OrderCancelled && orders[i].Reason == seckill.ReasonExpired {
			n++
		}
	}
	return n
}
