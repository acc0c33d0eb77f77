package shopapi

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"seckill"
)

func watchOf(t *testing.T) *Watch {
	t.Helper()
	w := NewWatch(func(context.Context, []seckill.OrderNo) ([]seckill.Order, error) { return nil, nil }, slog.New(slog.DiscardHandler))
	t.Cleanup(w.Close)
	return w
}

func orderOf(buyer string, n uint64) *seen {
	return &seen{order: seckill.Order{OrderNo: seckill.NewOrderNo(time.Now(), 1, n), Buyer: buyer}, watcher: buyer}
}

func TestOneBuyerCannotTakeEveryStream(t *testing.T) {
	w := watchOf(t)
	var taken []*stream
	o := orderOf("greedy", 1)
	for range streamsPerWatcher {
		taken = append(taken, w.follow(o))
	}
	if w.follow(o) != nil || w.follow(orderOf("greedy", 2)) != nil {
		t.Error("a buyer has more streams than the bound")
	}
	if w.follow(orderOf("other", 3)) == nil {
		t.Error("another buyer was refused")
	}
	w.leave(o.order.OrderNo, taken[0])
	w.leave(o.order.OrderNo, taken[0]) // twice counts once
	if w.follow(o) == nil || w.follow(o) != nil {
		t.Error("one stream that left makes room for one")
	}
}

func TestAStreamIsToldTheNewestStateOnly(t *testing.T) {
	w := watchOf(t)
	o := orderOf("ann", 1)
	o.order.Status = seckill.OrderQueued
	s := w.follow(o)
	for _, status := range []seckill.OrderStatus{seckill.OrderPending, seckill.OrderPending, seckill.OrderPaid} {
		next := o.order
		next.Status = status
		w.tell([]seckill.Order{next})
	}
	if got := <-s.news; got.Status != seckill.OrderPaid {
		t.Errorf("told %s", got.Status)
	}
	select {
	case got := <-s.news:
		t.Errorf("told again: %s", got.Status)
	default:
	}
}
