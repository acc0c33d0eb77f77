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

// askedAtOnce is how many ledgers one list reads at the same time.
const askedAtOnce = 32

// Listing is a part of a buyer's orders.
type Listing struct {
	Orders []seckill.Order
	// Partial means that orders may be missing anywhere in the list, because
	// the store or the ledger did not answer.
	Partial bool
}

// List returns a buyer's orders, newest first: those in the store and those
// that still wait. It reads the ledger of every product that has entries in the
// queue, and the buyer's letters. If the store is away, it lists the waiting
// orders. If the ledger is away, it lists the stored ones. Both lists are
// partial, and if one is empty, the answer is busy.
func (d *Orders) List(ctx context.Context, buyer string, before seckill.OrderNo, limit int) (Listing, error) {
	ctx, cancel := d.withReadDeadline(ctx)
	defer cancel()
	return d.listOf(ctx, store.OrderFilter{Buyer: buyer, Before: before, Limit: limit})
}

// Search lists orders for the operator. For one buyer and any status it also
// lists orders that still wait, like List.
func (d *Orders) Search(ctx context.Context, filter store.OrderFilter) (Listing, error) {
	if filter.Buyer != "" && filter.Status == nil {
		return d.listOf(ctx, filter)
	}
	orders, err := d.Store.SearchOrders(ctx, filter)
	return Listing{Orders: orders}, err
}

func (d *Orders) listOf(ctx context.Context, filter store.OrderFilter) (Listing, error) {
	bounded, cancelFirst := withFirstShare(ctx)
	defer cancelFirst()
	orders, err := d.list(bounded, filter)
	switch {
	case isLedgerAway(err):
		orders, err = d.listStored(ctx, filter)
		return Listing{orders, true}, err
	case isStoreAway(err):
		orders, err = d.listWaiting(ctx, filter)
		return Listing{orders, true}, err
	}
	return Listing{Orders: orders}, err
}

// These apply a filter to orders that are not in the store. The filter's buyer
// is already applied.
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

func (d *Orders) list(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
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
	// Filter by reference last: only the store has the reference of a stored
	// order.
	queued = slices.DeleteFunc(queued, func(o seckill.Order) bool { return !hasRef(&o, filter) })
	orders = append(orders, queued...)
	slices.SortFunc(orders, newestFirst)
	return orders[:min(filter.Limit, len(orders))], nil
}

// promisedTo returns the buyer's orders that may have no row: those on the
// retry ladder, and those in the ledgers of products with entries in the queue.
// Other orders are in the store by now. Reading a ledger waits for its next
// commit, so fewer reads are faster.
func (d *Orders) promisedTo(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
	may := make(map[uint32]bool)
	if err := d.waiting(ctx, may); err != nil {
		return nil, err
	}
	letters, err := d.Store.Letters(ctx, store.LetterFilter{Buyer: filter.Buyer, ProductID: filter.ProductID, Limit: filter.Limit})
	if err != nil {
		return nil, err
	}
	// A letter of an older epoch may have been adopted meanwhile, and is in the
	// queue again.
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

// heldOf lists the orders that the ledgers of several products hold for a
// buyer. It reads them together, because reads of one commit wait together.
func (d *Orders) heldOf(ctx context.Context, products map[uint32]bool, buyer string) ([]seckill.Order, error) {
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

// waiting adds the products that have entries in the queue.
func (d *Orders) waiting(ctx context.Context, may map[uint32]bool) error {
	products, err := d.Queue.Waiting(ctx)
	if err != nil {
		return seckill.Errorf(seckill.CodeBusy, "read queue: %w", ledgerAway{err})
	}
	for _, id := range products {
		may[id] = true
	}
	return nil
}

// asStored replaces waiting orders by their rows, if the store has them. For
// the others it adds the state of their letter, if they have one.
func (d *Orders) asStored(ctx context.Context, queued []seckill.Order) ([]seckill.Order, error) {
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
