package purchase

import (
	"maps"
	"sync/atomic"

	"seckill/internal/sale"
)

// bySale keeps what sells each sale: the batchers of its ledger, or the till of
// its store. A purchase reads it without a lock. It is replaced whole, under the
// stage's lock, when a sale begins or ends.
type bySale[T any] struct {
	sales atomic.Pointer[map[*sale.Sale]*T]
}

// of is what sells a sale, or nil.
func (b *bySale[T]) of(on *sale.Sale) *T { return b.all()[on] }

func (b *bySale[T]) all() map[*sale.Sale]*T {
	if all := b.sales.Load(); all != nil {
		return *all
	}
	return nil
}

// set keeps what sells a sale; nil drops it.
func (b *bySale[T]) set(on *sale.Sale, seller *T) {
	next := maps.Clone(b.all())
	if next == nil {
		next = make(map[*sale.Sale]*T)
	}
	if next[on] = seller; seller == nil {
		delete(next, on)
	}
	b.sales.Store(&next)
}
