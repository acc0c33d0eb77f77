package order

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"seckill"
	"seckill/internal/store"
)

// askedAtOnce is how many products' ledgers one list asks at a time.
const askedAtOnce = 32

// Listing is a part of a buyer's orders.
type Listing struct {
	Orders []seckill.Order
	// Partial says that orders may be missing, between these or beyond: the store
	// or the ledger could not be asked.
	Partial bool
}

// List is a buyer's orders, newest first: confirmed ones, and those that still
// wait. It reads the ledger of every product of which something waits in the
// queue, and the buyer's letters. With the store
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
func ofProduct(id uint32, filter store.OrderFilter) bool {
	return filter.ProductID == 0 || filter.ProductID == id
}

func hasRef(o *seckill.Order, filter store.OrderFilter) bool {
	return filter.Ref == "" || filter.Ref == o.Ref
}

func olderThan(no, before seckill.OrderNo) bool {
	return before.IsZero() || no.String() < before.String()
}

func newestFirst(a, b seckill.Order) int { return seckill.NewestFirst(a.OrderNo, b.OrderNo) }

func (d *Desk) list(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
	queued, err := d.promisedTo(ctx, filter)
	if err != nil {
		return nil, err
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

// promisedTo are the buyer's orders that may have no row: those that the ledger
// holds of products of which something waits in the queue, and those on the
// ladder. What is in neither when it is asked for is in the store by now, and need
// not be asked of the ledger, which answers no sooner than its next commit.
func (d *Desk) promisedTo(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
	may := make(map[uint32]bool)
	if err := d.waiting(ctx, may); err != nil {
		return nil, err
	}
	letters, err := d.Store.Letters(ctx, store.LetterFilter{Buyer: filter.Buyer, ProductID: filter.ProductID, Limit: filter.Limit})
	if err != nil {
		return nil, err
	}
	// A letter of an older epoch may have been adopted, back into the queue.
	if err := d.waiting(ctx, may); err != nil {
		return nil, err
	}
	maps.DeleteFunc(may, func(id uint32, _ bool) bool { return !ofProduct(id, filter) })
	orders, err := d.heldOf(ctx, may, filter.Buyer)
	for i := range letters {
		if no := letters[i].Item.Claim.OrderNo; !slices.ContainsFunc(orders, func(o seckill.Order) bool { return o.OrderNo == no }) {
			orders = append(orders, letterOrder(&letters[i]))
		}
	}
	return orders, err
}

// heldOf lists what the ledger holds for a buyer of some products, which are asked
// together: each answer waits for a commit, and those of one commit wait together.
func (d *Desk) heldOf(ctx context.Context, products map[uint32]bool, buyer string) ([]seckill.Order, error) {
	var (
		mu     sync.Mutex
		orders []seckill.Order
		asking errgroup.Group
	)
	asking.SetLimit(askedAtOnce)
	for id := range products {
		asking.Go(func() error {
			s, err := d.Catalog.Look(ctx, id)
			if err != nil || s == nil {
				return err
			}
			held, err := d.held(ctx, s, buyer)
			mu.Lock()
			defer mu.Unlock()
			orders = append(orders, held...)
			return err
		})
	}
	return orders, asking.Wait()
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
