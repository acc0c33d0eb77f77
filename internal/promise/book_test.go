package promise_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/promise"
	"seckill/test/rig"
)

func TestABookIsBoundedAndForgetsTheOldest(t *testing.T) {
	const most = 160 // ten in each of its stripes
	m := newMemory(t, func(o *promise.Options) { o.Most = most })
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

// slowStore lets something happen while the book asks it.
type slowStore struct {
	promise.Store
	meanwhile func()
}

func (s *slowStore) OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error) {
	s.meanwhile()
	return s.Store.OrdersByNo(ctx, nos)
}

func TestABookIsBoundedThoughPromisesComeWhileItAsks(t *testing.T) {
	const most = 160
	slow := &slowStore{}
	m := newMemory(t, func(o *promise.Options) {
		o.Most = most
		slow.Store, o.Store = o.Store, slow
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

func TestAPromiseIsFoundByItsKeyAsLongAsItIsRemembered(t *testing.T) {
	m := newMemory(t)
	p := m.Open(t, 1, 10, rig.Share(0.5), rig.Limit(3))
	member := m.Open(t, 2, 10, rig.Limit(3), rig.Share(0.5), func(p *seckill.Product) { p.Group = 1 })
	plain := m.Open(t, 3, 10)
	keyed := func(p seckill.Product, buyer, key string) seckill.OrderNo {
		claim := m.Claim(p.ID, buyer)
		claim.Key = key
		m.promise(t, p, claim)
		return claim.OrderNo
	}
	finds := func(group uint32, buyer, key string, want seckill.OrderNo) {
		t.Helper()
		if got, found := m.Find(group, buyer, key); got != want || found != (want != seckill.OrderNo{}) {
			t.Errorf("%s under %q in group %d finds %s, want %s", buyer, key, group, got, want)
		}
	}
	first, second := keyed(p, "a", "k"), keyed(member, "a", "l")
	keyed(p, "b", "")
	keyed(plain, "a", "k") // nobody asks: it has no share
	var none seckill.OrderNo
	finds(1, "a", "k", first)
	finds(1, "a", "l", second) // keys are the group's
	for _, of := range []struct {
		group      uint32
		buyer, key string
	}{{1, "A", "k"}, {1, "a", "m"}, {1, "a", ""}, {1, "b", ""}, {2, "a", "l"}, {3, "a", "k"}} {
		finds(of.group, of.buyer, of.key, none)
	}

	m.settle(t)
	finds(1, "a", "k", first)
	m.LoseJournal(t)
	m.recover(t, 1)
	rig.Must(t, m.Round(t.Context())) // adopts it
	finds(1, "a", "k", first)
	finds(1, "a", "l", second)
	m.ConfirmAll(t)
	m.settle(t)
	finds(1, "a", "k", none)
	if got := m.Status(t, first); got != seckill.OrderPending {
		t.Errorf("it is %s", got)
	}
}

// What a full book forgets, its keys forget too: they are bounded with it.
func TestKeysAreForgottenWithTheirPromises(t *testing.T) {
	const most = 160
	m := newMemory(t, func(o *promise.Options) { o.Most = most })
	p := m.Open(t, 1, 10_000, rig.Share(0.1))
	const all = 1000
	for n := range all {
		claim := m.Claim(p.ID, fmt.Sprint("b-", n))
		claim.Key = "k"
		m.Remember(seckill.Entry{ProductID: p.ID, Group: p.Group, Epoch: p.Epoch, Claims: []seckill.Claim{claim}})
	}
	for n := range all {
		if _, found := m.Find(1, fmt.Sprint("b-", n), "k"); found != (n >= all-most) {
			t.Errorf("the promise of b-%d is found: %v", n, found)
		}
	}
}

// The keys of a product with a share are found again, those of others cost
// nothing.
func BenchmarkRemember(b *testing.B) {
	for name, share := range map[string]float64{"plain": 0, "share": 0.1} {
		b.Run(name, func(b *testing.B) {
			terms := &seckill.Product{FallbackShare: share}
			book := promise.New(promise.Options{OnForgotten: func(int) {}, Terms: func(uint32) *seckill.Product { return terms }})
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
		})
	}
}
