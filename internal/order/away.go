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
	// readWithin bounds a read, whichever of store and ledger does not answer:
	// every shopper is answered within a second, and the way there and back takes
	// some of it.
	readWithin = 800 * time.Millisecond
	// firstShare is the part of it that who is asked first may use up before the
	// other one is asked alone.
	firstShare = 2
)

// brief bounds a read.
func (d *Desk) brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(d.ReadWithin, readWithin))
}

// patient leaves a part of a read's time to whom else can be asked.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/firstShare)
}

// deaf is why the ledger, or its queue, could not be asked.
type deaf struct{ error }

func (d deaf) Unwrap() error { return d.error }

// isDeaf reports whether the ledger could not be asked.
func isDeaf(err error) bool {
	_, deaf := errors.AsType[deaf](err)
	return deaf
}

// isAway reports whether the store could not be asked.
func isAway(err error) bool {
	return !isDeaf(err) && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded))
}

var (
	errAway  = seckill.Errorf(seckill.CodeBusy, "the store is away; orders that it has can be read when it is back")
	errDoubt = seckill.Errorf(seckill.CodeBusy, "the store is away, and the ledger may have forgotten something; orders can be read when the store is back")
	errDeaf  = seckill.Errorf(seckill.CodeBusy, "the ledger is away; orders that still wait there can be read when it is back")
)

// waitingOnly finds an order that the ledger still has to hand on. Its entry
// is not acknowledged, so that nothing has happened to it, or a worker has it
// in hand and the store may have it: then others may move it there while this
// process cannot see it, and it is busy if the worker is this process's.
//
// Left is what this process cannot know, and queued is then no longer true: a
// worker elsewhere, or a dual write, has committed the order, and no worker has
// acknowledged it yet; or a ledger was set back, and no call of a lane has
// noticed it yet. Both are a moment, unless the one who has to acknowledge
// cannot reach the store either. With the store away for all, nobody can have
// moved the order since it went.
func (d *Desk) waitingOnly(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	s := d.Catalog.Find(no.ProductID())
	// Asked before the ledger too: the entry may be acknowledged in between.
	if s == nil || d.mayBeStored(no) {
		return seckill.Order{}, errAway
	}
	waiting, err := d.heldWaiting(ctx, s, buyer)
	if err != nil {
		return seckill.Order{}, err
	}
	i := slices.IndexFunc(waiting, func(o seckill.Order) bool { return o.OrderNo == no })
	if i < 0 || d.mayBeStored(no) {
		return seckill.Order{}, errAway
	}
	return waiting[i], nil
}

// mayBeStored reports whether this process's worker has the order in hand and
// cannot say that the store has nothing of it.
func (d *Desk) mayBeStored(no seckill.OrderNo) bool {
	return d.MayBeStored != nil && d.MayBeStored(no)
}

// listStored lists the buyer's orders that the store has. Where there is none,
// one may still wait in the ledger, and an empty list would be a lie.
func (d *Desk) listStored(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
	orders, err := d.Store.SearchOrders(ctx, filter)
	if err == nil && len(orders) == 0 {
		return nil, errDeaf
	}
	return orders, err
}

// listWaiting lists the buyer's orders that the ledgers still have to hand on.
// Where there is none, the buyer may have orders of which only the store knows,
// and an empty list would be a lie. So would be one that leaves an order out
// because it may be stored: then the whole list is busy.
func (d *Desk) listWaiting(ctx context.Context, filter store.OrderFilter) ([]seckill.Order, error) {
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
		return nil, errAway
	}
	return waiting, nil
}
