package recovery_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/recovery"
)

func TestRemember_FullBookForgetsTheOldest(t *testing.T) {
	const most = 160 // ten in each of its stripes
	m := newBookRig(t, func(o *recovery.BookOptions) { o.MaxPromises = most })
	p := m.Open(t, 1, 10_000)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 100 {
				claim := m.Claim(p.ID, fmt.Sprintf("b-%d-%d", i, n))
				m.Remember(seckill.Entry{ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, Claims: []seckill.Claim{claim}})
			}
		})
	}
	all.Wait()
	if m.Len() != most || m.forgotten.Load() != 400-most {
		t.Errorf("%d remembered, %d forgotten", m.Len(), m.forgotten.Load())
	}
}

// slowStore runs a function during each read.
type slowStore struct {
	recovery.BookStore
	meanwhile func()
}

func (s *slowStore) OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error) {
	s.meanwhile()
	return s.BookStore.OrdersByNo(ctx, nos)
}

func TestRemember_BookIsBoundedDuringARound(t *testing.T) {
	const most = 160
	slow := &slowStore{}
	m := newBookRig(t, func(o *recovery.BookOptions) {
		o.MaxPromises = most
		slow.BookStore, o.Store = o.Store, slow
	})
	p := m.Open(t, 1, 10_000)
	fill := func() {
		for n := range most {
			claim := m.Claim(p.ID, fmt.Sprint("b-", n))
			m.Remember(seckill.Entry{ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, Claims: []seckill.Claim{claim}})
		}
	}
	asked := 0
	slow.meanwhile = func() {
		asked++
		fill()
	}
	fill()
	m.settle(t)
	if asked != 1 || m.Len() != most || m.forgotten.Load() != most {
		t.Errorf("asked %d times: %d remembered, %d forgotten", asked, m.Len(), m.forgotten.Load())
	}
}

func BenchmarkRemember(b *testing.B) {
	book := recovery.NewBook(recovery.BookOptions{Meter: noMeter{}})
	const batches, batch = 1 << 14, 20 // more than a book holds
	entries := make([]seckill.Entry, batches)
	for i := range entries {
		entries[i].Claims = make([]seckill.Claim, batch)
		for k := range entries[i].Claims {
			entries[i].Claims[k] = seckill.Claim{Buyer: fmt.Sprint("buyer-", i*batch+k), Key: "01JD6Y2V3W4X5Y6Z7A8B9C0D1E"}
		}
	}
	for i := range entries {
		book.Remember(entries[i])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		book.Remember(entries[i%batches])
	}
}

// noMeter counts nothing.
type noMeter struct{}

func (noMeter) Forgotten(int)                  {}
func (noMeter) Reoffered(recovery.Result, int) {}
