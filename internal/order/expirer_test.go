package order_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/order"
)

// pages returns pages of these sizes, and then small ones for ever.
type pages struct{ left []int }

func (p *pages) next(limit int) int {
	if len(p.left) == 0 {
		return 3
	}
	n := min(p.left[0], limit)
	p.left = p.left[1:]
	return n
}

// dueStore expires and warns in pages.
type dueStore struct{ expired, warned pages }

func (s *dueStore) Expire(_ context.Context, limit int) ([]seckill.Order, error) {
	return make([]seckill.Order, s.expired.next(limit)), nil
}

func (s *dueStore) WarnExpiring(_ context.Context, _ time.Duration, limit int) (int, error) {
	return s.warned.next(limit), nil
}

// A full page may be shorter because others cancelled some of its orders.
// Orders that become due during a round make small pages, and must not keep it
// running.
func TestExpirer_EndsAtASmallPage(t *testing.T) {
	store := &dueStore{expired: pages{[]int{499, 500, 498, 7, 499}}, warned: pages{[]int{499, 2, 499}}}
	var batches []int
	e := order.Expirer{Store: store, OnExpired: func(orders []seckill.Order) { batches = append(batches, len(orders)) }}
	if err := e.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []int{499, 500, 498, 7}; !slices.Equal(batches, want) {
		t.Errorf("expired %v, want %v", batches, want)
	}
	if want := []int{499}; !slices.Equal(store.warned.left, want) {
		t.Errorf("warnings that are left: %v, want %v", store.warned.left, want)
	}
}
