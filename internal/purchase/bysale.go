package purchase

import (
	"maps"
	"sync/atomic"

	"seckill/internal/sale"
)

// bySale maps each sale to its seller: the batchers of the ledger, or the till of the
// store. Purchases read it without a lock. It is replaced as a whole, under the
// stage's lock, when a sale begins or ends.
type bySale[T any] struct {
	sales atomic.Pointer[map[*sale.Sale]*T]
}

// of returns the seller of a sale, or nil.
func (b *bySale[T]) of(on *sale.Sale) *T { return b.all()[on] }

func (b *bySale[T]) all() map[*sale.Sale]*T {
	if all := b.sales.Load(); all != nil {
		return *all
	}
	return nil
}

// set sets the seller of a sale; nil removes it.
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
