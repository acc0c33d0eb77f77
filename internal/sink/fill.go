package sink

import (
	"context"
	"slices"
	"time"

	"seckill"
	"seckill/internal/store"
)

// full reports whether the sink has too much open to take more events.
func (r *round) full() bool {
	return r.state.Count[store.DeliveryRetrying]+r.opened >= maxRetrying || r.state.Open()+r.opened >= maxOpen
}

// room is how many events may be taken in hand.
func (r *round) room() int {
	if r.failures >= downAfter {
		return 1 - len(r.flying)
	}
	room := maxWindow - max(len(r.window), len(r.flying))
	if room < maxWindow/4 && len(r.ready) > r.opt.Concurrency {
		return 0
	}
	return room
}

// fill takes due deliveries in hand, and then events of the feed.
func (r *round) fill(ctx context.Context) error {
	now := time.Now()
	if r.over || r.held(now) > 0 {
		return nil
	}
	if room := r.room(); room > 0 && !now.Before(r.dueAt) {
		if err := r.fillDue(ctx, r.now(), room); err != nil {
			return err
		}
	}
	if room := r.room(); room > 0 && !now.Before(r.feedAt) && !r.full() {
		if err := r.fillFeed(ctx, room); err != nil {
			return err
		}
	}
	// A sink that is down is probed with the next retry if there is nothing else.
	if r.failures >= downAfter && len(r.flying) == 0 && (r.drained || r.full()) {
		return r.fillDue(ctx, r.now().Add(maxDelay), 1)
	}
	return nil
}

// maxDelay is later than any next try.
const maxDelay = 365 * 24 * time.Hour

func (r *round) fillDue(ctx context.Context, by time.Time, room int) error {
	limit := room + len(r.flying) // those under way are due too
	if r.failures >= downAfter {
		limit += probeChoice
	}
	due, err := r.opt.Store.DeliveriesDue(ctx, r.opt.Name, by, limit)
	if err != nil {
		return err
	}
	r.release = false
	if len(due) < limit {
		r.dueAt = time.Now().Add(dueEvery)
	}
	if r.failures >= downAfter {
		// One that was refused before says more about the receiver than a new one.
		slices.SortStableFunc(due, func(a, b store.Delivery) int { return b.Attempts - a.Attempts })
	}
	for i := range due {
		if d := &due[i]; !r.flying[d.EventID] && room > 0 {
			room--
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
		r.ready = append(r.ready, it)
	}
}

func (r *round) fillFeed(ctx context.Context, room int) error {
	events, err := r.opt.Store.Events(ctx, r.read, room)
	if err != nil {
		return err
	}
	r.drained = len(events) == 0
	if len(events) < room {
		r.feedAt = time.Now().Add(pollEvery)
	}
	items, err := r.items(ctx, events)
	if err != nil {
		return err
	}
	for _, it := range items {
		r.read = it.EventID
		r.window = append(r.window, it)
		switch {
		case it.settled: // by a sender before
		case r.blocked[it.Key]:
			r.leaveWaiting(it)
		default:
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
			settled:  r.known[e.ID],
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
