package order

import (
	"context"
	"slices"

	"seckill"
	"seckill/internal/sale"
	"seckill/internal/store"
)

// lettersLooked is how many letters are looked through for their products.
// With more of them every ledger is asked.
const lettersLooked = 100

// Listing is a part of a buyer's orders.
type Listing struct {
	Orders []seckill.Order
	// Partial says that orders may be missing, between these or beyond: the store
	// or the ledger could not be asked.
	Partial bool
}

// List is a buyer's orders, newest first: confirmed ones, and those that still
// wait. It reads the ledger of every sale that could hold one. With the store
// away it lists those that still wait, with the ledger away those that the
// store has, as a partial listing, and it is busy if there are none.
func (d *Desk) List(ctx context.Context, buyer string, before seckill.OrderNo, limit int) (Listing, error) {
	ctx, cancel := d.brief(ctx)
	defer cancel()
	return d.listOf(ctx, store.OrderFilter{Buyer: buyer, Before: before, Limit: limit})
}

// Search is for the operator: the store's orders, and of one buyer, whatever
// their status, also those that still wait, as List has them.
func (d *Desk) Search(ctx context.Context, filter store.OrderFilter) (Listing, error) {
	if filter.Buyer != "" && filter.Status == nil {
		return d.listOf(ctx, filter)
	}
	orders, err := d.Store.SearchOrders(ctx, filter)
	return Listing{Orders: orders}, err
}

func (d *Desk) listOf(ctx context.Context, filter store.OrderFilter) (Listing, error) {
	bounded, cancelFirst := patient(ctx)
	defer cancelFirst()
	orders, err := d.list(bounded, filter)
	switch {
	case isDeaf(err):
		orders, err = d.listStored(ctx, filter)
		return Listing{orders, true}, err
	case isAway(err):
		orders, err = d.listWaiting(ctx, filter)
		return Listing{orders, true}, err
	}
	return Listing{Orders: orders}, err
}

// What a filter says of orders that are not in the store; their buyer is the
// one whose marks are read.
func ofProduct(s *sale.Sale, filter store.OrderFilter) bool {
	return filter.ProductID == 0 || filter.ProductID == s.ID
}

func hasRef(o *seckill.Order, filter store.OrderFilter) bool {
	return filter.Ref == "" || filter.Ref == o.Ref
}

func olderThan(no, before seckill.OrderNo) bool {
	return before.IsZero() || no.String() < before.String()
}

func newestFirst(a, b seckill.Order) int { return seckill.NewestFirst(a.OrderNo, b.OrderNo) }

func (d *Desk) list(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
	sales, err := d.promising(ctx)
	if err != nil {
		return nil, err
	}
	var queued []seckill.Order
	for _, s := range sales {
		if !ofProduct(s, filter) {
			continue
		}
		held, err := d.held(ctx, s, filter.Buyer)
		if err != nil {
			return nil, err
		}
		queued = append(queued, held...)
	}
	orders, err := d.Store.SearchOrders(ctx, filter)
	if err != nil {
		return nil, err
	}
	listed := make(map[seckill.OrderNo]bool, len(orders))
	for i := range orders {
		listed[orders[i].OrderNo] = true
	}
	queued = slices.DeleteFunc(queued, func(o seckill.Order) bool {
		return listed[o.OrderNo] || !olderThan(o.OrderNo, filter.Before)
	})
	queued, err = d.asStored(ctx, queued)
	if err != nil {
		return nil, err
	}
	// Only now: an order that is in the store has its reference there alone.
	queued = slices.DeleteFunc(queued, func(o seckill.Order) bool { return !hasRef(&o, filter) })
	orders = append(orders, queued...)
	slices.SortFunc(orders, newestFirst)
	return orders[:min(filter.Limit, len(orders))], nil
}

// promising are the sales that may have promised an order that has no row: a
// claim of theirs waits in the queue or on the ladder. What is in neither when
// it is asked for is in the store by now, and need not be asked of the ledger,
// which answers no sooner than its next commit.
func (d *Desk) promising(ctx context.Context) ([]*sale.Sale, error) {
	all := d.Catalog.All()
	may := make(map[uint32]bool)
	if err := d.waiting(ctx, may); err != nil {
		return nil, err
	}
	letters, err := d.Store.Letters(ctx, store.LetterFilter{Limit: lettersLooked})
	if err != nil {
		return nil, err
	}
	if len(letters) == lettersLooked {
		return all, nil
	}
	for i := range letters {
		may[letters[i].Item.ProductID] = true
	}
	// A letter of an older epoch may have been adopted, back into the queue.
	if err := d.waiting(ctx, may); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(s *sale.Sale) bool { return !may[s.ID] }), nil
}

// waiting notes the products of which something waits in the queue.
func (d *Desk) waiting(ctx context.Context, may map[uint32]bool) error {
	products, err := d.Queue.Waiting(ctx)
	if err != nil {
		return seckill.Errorf(seckill.CodeBusy, "read queue: %w", deaf{err})
	}
	for _, id := range products {
		may[id] = true
	}
	return nil
}

// asStored replaces promises by their rows where they have one, be it on
// another page or only now, and else by what the ladder says of them.
func (d *Desk) asStored(ctx context.Context, queued []seckill.Order) ([]seckill.Order, error) {
	if len(queued) == 0 {
		return nil, nil
	}
	nos := make([]seckill.OrderNo, len(queued))
	for i := range queued {
		nos[i] = queued[i].OrderNo
	}
	stored, err := d.Store.OrdersByNo(ctx, nos)
	if err != nil {
		return nil, err
	}
	known := make(map[seckill.OrderNo]bool, len(stored))
	for i := range stored {
		known[stored[i].OrderNo] = true
	}
	for _, o := range queued {
		if known[o.OrderNo] {
			continue
		}
		letter, err := d.Store.LetterByOrder(ctx, o.OrderNo)
		if err == nil {
			o = letterOrder(&letter)
		} else if !seckill.CodeNotFound.In(err) {
			return nil, err
		}
		stored = append(stored, o)
	}
	return stored, nil
}
