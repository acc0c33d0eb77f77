package worker_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// scheduled collects the orders that a worker has scheduled.
type scheduled struct {
	mu        sync.Mutex
	calls     int
	orders    []seckill.OrderNo
	payBefore time.Time
}

func (s *scheduled) Schedule(_ uint32, orders []seckill.OrderNo, payBefore time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.orders = append(s.orders, orders...)
	s.payBefore = payBefore
}

func TestConfirm_SchedulesNewOrdersOncePerBatch(t *testing.T) {
	var expiry scheduled
	c := newFixture(t, func(opt *worker.Options) { opt.Expiry = &expiry })
	p := c.Open(t, 1, 100)
	nos := c.Buy(t, p, buyers("b", 20)...)
	began := time.Now()
	c.start(t)
	c.waitDrained(t)
	c.stop()
	order, err := c.Store.Order(t.Context(), nos[0])
	rig.Must(t, err)
	slices.SortFunc(nos, seckill.NewestFirst)
	slices.SortFunc(expiry.orders, seckill.NewestFirst)
	if !slices.Equal(expiry.orders, nos) || expiry.calls != len(c.settled()) {
		t.Errorf("%d orders in %d calls, want %d in %d", len(expiry.orders), expiry.calls, len(nos), len(c.settled()))
	}
	if expiry.payBefore.Before(order.PayBefore) || expiry.payBefore.Before(began.Add(30*time.Minute)) {
		t.Errorf("scheduled for %s, before %s", expiry.payBefore, order.PayBefore)
	}
}

func TestConfirm_SchedulesNoReplay(t *testing.T) {
	var expiry scheduled
	c := newFixture(t, func(opt *worker.Options) { opt.Expiry = &expiry })
	p := c.Open(t, 1, 100)
	c.Store.FailAfter("Confirm", 1) // the orders are written, and the worker does not know
	c.Buy(t, p, "a", "b")
	c.start(t)
	c.waitDrained(t)
	c.stop()
	if len(expiry.orders) != 0 {
		t.Errorf("%d replays were scheduled", len(expiry.orders))
	}
}
