package sink

import (
	"cmp"
	"context"
	"slices"
	"time"

	"seckill"
	"seckill/internal/store"
)

// feedRoom is how many events may be taken in hand.
func (r *round) feedRoom() int {
	room := maxUnsettled - len(r.unsettled)
	if room < maxUnsettled/4 && len(r.ready) > r.opt.Concurrency {
		return 0
	}
	return room
}

// dueRoom is how many deliveries of the store may be taken in hand.
func (r *round) dueRoom() int {
	room := maxRepeats - r.due
	if room < maxRepeats/4 && len(r.again) > r.opt.Concurrency {
		return 0
	}
	return room
}

// fill takes due deliveries and events of the feed in hand.
func (r *round) fill(ctx context.Context) error {
	now := time.Now()
	if r.over || r.held(now) > 0 {
		return nil
	}
	if r.health.down() {
		return r.fillProbe(ctx)
	}
	if room := r.dueRoom(); room > 0 && !now.Before(r.dueAt) {
		if err := r.fillDue(ctx, r.now(), room); err != nil {
			return err
		}
	}
	if room := r.feedRoom(); room > 0 && !now.Before(r.feedAt) {
		return r.fillFeed(ctx, room, room)
	}
	return nil
}

// fillProbe takes one delivery in hand: the next event of the feed, or a delivery
// that waits for a retry, in turns. The event has not failed yet, so it finds a
// receiver that refuses some orders only. The retry finds one that refuses
// events at first.
func (r *round) fillProbe(ctx context.Context) error {
	if len(r.flying) > 0 {
		return nil
	}
	by := r.now().Add(maxDelay)
	if r.health.retryNext {
		if err := r.fillDue(ctx, by, 1); err != nil || len(r.flying) > 0 {
			return err
		}
	}
	for len(r.flying) == 0 && len(r.unsettled) < maxUnsettled {
		if err := r.fillFeed(ctx, probeChoice, 1); err != nil {
			return err
		}
		if r.drained {
			break
		}
	}
	if len(r.flying) > 0 || !r.drained {
		return nil
	}
	return r.fillDue(ctx, by, 1)
}

// maxDelay is later than any next try.
const maxDelay = 365 * 24 * time.Hour

func (r *round) fillDue(ctx context.Context, by time.Time, room int) error {
	limit := room + r.due // those in hand are due too
	if r.health.down() {
		limit += maxRepeats // to find one that was tried
	}
	due, err := r.opt.Store.DeliveriesDue(ctx, r.opt.Name, by, limit)
	if err != nil {
		return err
	}
	r.release = false
	if len(due) < limit {
		r.dueAt = time.Now().Add(dueEvery)
	}
	if r.health.down() {
		// One that was refused often says little about the receiver. One that was
		// never tried is no retry.
		slices.SortStableFunc(due, func(a, b store.Delivery) int {
			return cmp.Or(cmp.Compare(min(b.Attempts, 1), min(a.Attempts, 1)), cmp.Compare(a.Attempts, b.Attempts))
		})
	}
	for i := range due {
		if d := &due[i]; !r.flying[d.EventID] && room > 0 {
			room--
			r.due++
			r.enlist(&item{Delivery: *d, message: kept(d)})
		}
	}
	return nil
}

// enlist makes an item ready, behind those of its key.
func (r *round) enlist(it *item) {
	line := append(r.lanes[it.Key], it)
	r.lanes[it.Key], r.flying[it.EventID] = line, true
	if len(line) == 1 {
		r.makeReady(it)
	}
}

func (r *round) makeReady(it *item) {
	if it.Kept {
		r.again = append(r.again, it)
	} else {
		r.ready = append(r.ready, it)
	}
}

// fillFeed reads so many events of the feed, and takes them in hand up to the
// last one that may be tried.
func (r *round) fillFeed(ctx context.Context, read, tried int) error {
	events, err := r.opt.Store.Events(ctx, r.read, read)
	if err != nil {
		return err
	}
	r.drained = len(events) == 0
	if len(events) < read {
		r.feedAt = time.Now().Add(pollEvery)
	}
	items, err := r.items(ctx, events)
	if err != nil {
		return err
	}
	for _, it := range items {
		if tried == 0 {
			break
		}
		r.read = it.EventID
		r.unsettled = append(r.unsettled, it)
		switch {
		case it.settled: // by a sender before
		case r.blocked[it.Key]:
			r.leaveWaiting(it)
		default:
			tried--
			r.enlist(it)
		}
	}
	return nil
}

// items makes items of events, and finds out which keys have to wait.
func (r *round) items(ctx context.Context, events []seckill.Event) ([]*item, error) {
	var nos []seckill.OrderNo
	var keys []string
	for i := range events {
		keys = append(keys, keyOf(&events[i]))
		if no := events[i].OrderNo; !no.IsZero() {
			nos = append(nos, no)
		}
	}
	open, err := r.opt.Store.OpenKeys(ctx, r.opt.Name, keys)
	if err != nil {
		return nil, err
	}
	for _, key := range open {
		r.blocked[key] = true
	}
	orders, err := r.orders(ctx, nos)
	if err != nil {
		return nil, err
	}
	items := make([]*item, len(events))
	for i := range events {
		e := &events[i]
		items[i] = &item{
			Delivery: store.Delivery{EventID: e.ID, Key: keys[i], Kind: e.Kind, MessageID: messageID(e), EventAt: e.At},
			// Events of test products are not sent. They are settled, so that the cursor
			// moves past them.
			settled: r.known[e.ID] || e.Test,
		}
		items[i].message, err = newMessage(r.opt.Source, items[i].MessageID, keys[i], typePrefix+string(e.Kind), e.At, r.opt.Data(e, orders[e.OrderNo]))
		if err != nil {
			return nil, err
		}
		items[i].Body = items[i].message.Body
	}
	return items, nil
}

func (r *round) orders(ctx context.Context, nos []seckill.OrderNo) (map[seckill.OrderNo]*seckill.Order, error) {
	orders := make(map[seckill.OrderNo]*seckill.Order, len(nos))
	if len(nos) == 0 {
		return orders, nil
	}
	found, err := r.opt.Store.OrdersByNo(ctx, nos)
	for i := range found {
		orders[found[i].OrderNo] = &found[i]
	}
	return orders, err
}
