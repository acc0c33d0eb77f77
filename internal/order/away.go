package order

import (
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
func brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, readWithin)
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
// is not acknowledged, so no more than its confirmation can have happened to
// it: queued is true, or was a moment ago. (Between the instant at which a
// ledger is set back and the next call of a lane, which notices it, it is not.)
func (d *Desk) waitingOnly(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	s := d.Catalog.Find(no.ProductID())
	if s == nil {
		return seckill.Order{}, errAway
	}
	waiting, err := d.heldWaiting(ctx, s, buyer)
	if err != nil {
		return seckill.Order{}, err
	}
	i := slices.IndexFunc(waiting, func(o seckill.Order) bool { return o.OrderNo == no })
	if i < 0 {
		return seckill.Order{}, errAway
	}
	return waiting[i], nil
}

// listStored lists the buyer's orders that the store has. Where there is none,
// one may still wait in the ledger, and an empty list would be a lie.
func (d *Desk) listStored(ctx context.Context, buyer string, before seckill.OrderNo, limit int) ([]seckill.Order, error) {
	orders, err := d.Store.SearchOrders(ctx, store.OrderFilter{Buyer: buyer, Before: before, Limit: limit})
	if err == nil && len(orders) == 0 {
		return nil, errDeaf
	}
	return orders, err
}

// listWaiting lists the buyer's orders that the ledgers still have to hand on.
// Where there is none, the buyer may have orders of which only the store knows,
// and an empty list would be a lie.
func (d *Desk) listWaiting(ctx context.Context, buyer string, before seckill.OrderNo, limit int) ([]seckill.Order, error) {
	all, may := d.Catalog.All(), make(map[uint32]bool)
	if err := d.waiting(ctx, all, may); err != nil {
		return nil, err
	}
	var waiting []seckill.Order
	for _, s := range all {
		if !may[s.ID] {
			continue
		}
		held, err := d.heldWaiting(ctx, s, buyer)
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, held...)
	}
	waiting = slices.DeleteFunc(waiting, func(o seckill.Order) bool {
		return !before.IsZero() && o.OrderNo.String() >= before.String()
	})
	if len(waiting) == 0 {
		return nil, errAway
	}
	slices.SortFunc(waiting, newestFirst)
	return waiting[:min(limit, len(waiting))], nil
}
