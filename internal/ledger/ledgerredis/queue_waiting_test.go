package ledgerredis

import (
	"slices"
	"testing"

	"seckill/internal/queue"
)

func TestWaiting_ListsProductsUntilAcknowledged(t *testing.T) {
	t.Parallel()
	r := newQueueRig(t)
	waiting := func() []uint32 {
		t.Helper()
		products, err := r.queue.Waiting(r.ctx())
		r.check(err, "list")
		return products
	}
	if got := waiting(); len(got) != 0 {
		t.Errorf("an empty queue lists %v", got)
	}
	first := r.fill(7, 2)
	r.fill(1, 1)
	if got := waiting(); !slices.Equal(got, []uint32{1, 7}) {
		t.Errorf("listed %v", got)
	}
	c := r.join()
	r.receive(c, 3)
	r.check(c.Ack(r.ctx(), r.deliveries(first[0]), queue.ID{}), "ack")
	if got := waiting(); !slices.Equal(got, []uint32{1, 7}) {
		t.Errorf("with one of two acknowledged, listed %v", got)
	}
	r.check(c.Ack(r.ctx(), r.deliveries(first[1:]...), queue.ID{}), "ack")
	if got := waiting(); !slices.Equal(got, []uint32{1}) {
		t.Errorf("listed %v", got)
	}
}
