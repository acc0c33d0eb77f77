package order

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"seckill"
	"seckill/internal/store"
)

const (
	// readWithin bounds a read, even if the store or the ledger does not
	// answer. A shopper gets an answer within a second, and the network takes
	// some of it.
	readWithin = 800 * time.Millisecond
	// firstShare is the divisor for the part that is asked first: it may use
	// half of the time, before the other part is asked alone.
	firstShare = 2
)

// withReadDeadline bounds a read.
func (d *Orders) withReadDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(d.ReadWithin, readWithin))
}

// withFirstShare leaves a part of the read's time for the other part.
func withFirstShare(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/firstShare)
}

// ledgerAway is the error of a ledger, or its queue, that does not answer.
type ledgerAway struct{ error }

func (d ledgerAway) Unwrap() error { return d.error }

// isLedgerAway reports whether the ledger did not answer.
func isLedgerAway(err error) bool {
	_, away := errors.AsType[ledgerAway](err)
	return away
}

// isStoreAway reports whether the store did not answer.
func isStoreAway(err error) bool {
	return !isLedgerAway(err) && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded))
}

var (
	errStoreAway  = seckill.Errorf(seckill.CodeBusy, "the store is away; orders that it has can be read when it is back")
	errDoubt      = seckill.Errorf(seckill.CodeBusy, "the store is away, and the ledger may have forgotten something; orders can be read when the store is back")
	errLedgerAway = seckill.Errorf(seckill.CodeBusy, "the ledger is away; orders that still wait there can be read when it is back")
)

// waitingOnly finds an order whose entry still waits in the ledger, while the
// store is away. Either nothing has happened to the order, or a worker has the
// entry in hand and the store may have the order. In the second case others may
// change it in the store, out of sight of this process. If the worker is of
// this process, the answer is busy.
//
// In two cases the answer "queued" is out of date:
//
//   - A worker elsewhere, or a dual write, has committed the order, and no worker
//     has acknowledged the entry yet.
//   - The ledger was set back, and no call of a lane has noticed it yet.
//
// Both last a moment, unless the worker that has to acknowledge cannot reach
// the store either. If the store is away from all processes, no process can have
// changed the order since then.
func (d *Orders) waitingOnly(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	s := d.Catalog.Find(no.ProductID())
	// Check before the ledger read too: the entry may be acknowledged in
	// between.
	if s == nil || d.mayBeStored(no) {
		return seckill.Order{}, errStoreAway
	}
	waiting, err := d.heldWaiting(ctx, s, buyer)
	if err != nil {
		return seckill.Order{}, err
	}
	i := slices.IndexFunc(waiting, func(o seckill.Order) bool { return o.OrderNo == no })
	if i < 0 || d.mayBeStored(no) {
		return seckill.Order{}, errStoreAway
	}
	return waiting[i], nil
}

// mayBeStored reports whether a worker of this process has the order in hand,
// and the store may have it.
func (d *Orders) mayBeStored(no seckill.OrderNo) bool {
	return d.MayBeStored != nil && d.MayBeStored(no)
}

// listStored lists the buyer's orders in the store. If it has none, an order
// may still wait in the ledger. An empty list would be wrong, so the answer is
// busy.
func (d *Orders) listStored(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
	orders, err := d.Store.SearchOrders(ctx, filter)
	if err == nil && len(orders) == 0 {
		return nil, errLedgerAway
	}
	return orders, err
}

// listWaiting lists the buyer's orders that still wait in the ledgers. If there
// are none, the store may have orders of the buyer. An empty list would be
// wrong, so the answer is busy. It is also busy if one of the orders may be
// stored.
func (d *Orders) listWaiting(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
	may := make(map[uint32]bool)
	if err := d.waiting(ctx, may); err != nil {
		return nil, err
	}
	var waiting []seckill.Order
	for _, s := range d.Catalog.All() {
		if !may[s.ID] || !ofProduct(s.ID, filter) {
			continue
		}
		held, err := d.heldWaiting(ctx, s, filter.Buyer)
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, held...)
	}
	waiting = slices.DeleteFunc(waiting, func(o seckill.Order) bool {
		return !olderThan(o.OrderNo, filter.Before) || !hasRef(&o, filter)
	})
	slices.SortFunc(waiting, newestFirst)
	waiting = waiting[:min(filter.Limit, len(waiting))]
	undecided := func(o seckill.Order) bool { return d.mayBeStored(o.OrderNo) }
	if len(waiting) == 0 || slices.ContainsFunc(waiting, undecided) {
		return nil, errStoreAway
	}
	return waiting, nil
}
