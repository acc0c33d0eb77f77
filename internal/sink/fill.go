package sink

import (
	"cmp"
	"context"
	"slices"
	"time"

	"seckill"
	"seckill/internal/store"
)

// feedRoom returns how many events of the feed may be read.
func (r *round) feedRoom() int {
	room := maxUnsettled - len(r.unsettled)
	if room < maxUnsettled/4 && len(r.ready) > r.opt.Concurrency {
		return 0
	}
	return room
}

// dueRoom returns how many due deliveries may be read.
func (r *round) dueRoom() int {
	room := maxRepeats - r.due
	if room < maxRepeats/4 && len(r.retries) > r.opt.Concurrency {
		return 0
	}
	return room
}

// fill reads due deliveries and events of the feed.
func (r *round) fill(ctx context.Context) error {
	now := time.Now()
	if r.ending || r.pauseLeft(now) > 0 {
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

// fillProbe reads one delivery as a probe: in turns the next event of the feed,
// or a delivery that waits for a retry. The event has not failed yet, so it
// succeeds at a receiver that refuses only some orders. The retry succeeds at a
// receiver that refuses events at the first try.
func (r *round) fillProbe(ctx context.Context) error {
	if len(r.inFlight) > 0 {
		return nil
	}
	by := r.now().Add(maxDelay)
	if r.health.retryNext {
		if err := r.fillDue(ctx, by, 1); err != nil || len(r.inFlight) > 0 {
			return err
		}
	}
	for len(r.inFlight) == 0 && len(r.unsettled) < maxUnsettled {
		if err := r.fillFeed(ctx, probeChoice, 1); err != nil {
			return err
		}
		if r.drained {
			break
		}
	}
	if len(r.inFlight) > 0 || !r.drained {
		return nil
	}
	return r.fillDue(ctx, by, 1)
}

// maxDelay is longer than any wait for a retry.
const maxDelay = 365 * 24 * time.Hour

func (r *round) fillDue(ctx context.Context, by time.Time, room int) error {
	limit := room + r.due // those in hand are due too
	if r.health.down() {
		limit += maxRepeats // enough to find one that was tried
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
		// Prefer deliveries with few failures: one that was refused often says
		// little about the receiver. One that was never tried is no retry.
		slices.SortStableFunc(due, func(a, b store.Delivery) int {
			return cmp.Or(cmp.Compare(min(b.Attempts, 1), min(a.Attempts, 1)), cmp.Compare(a.Attempts, b.Attempts))
		})
	}
	for i := range due {
		if d := &due[i]; !r.inFlight[d.EventID] && room > 0 {
			room--
			r.due++
			r.enlist(&item{Delivery: *d, message: storedMessage(d)})
		}
	}
	return nil
}

// enlist adds an item behind those of its key. If it is the first one, it is
// ready.
func (r *round) enlist(it *item) {
	line := append(r.lanes[it.Key], it)
	r.lanes[it.Key], r.inFlight[it.EventID] = line, true
	if len(line) == 1 {
		r.makeReady(it)
	}
}

func (r *round) makeReady(it *item) {
	if it.Kept {
		r.retries = append(r.retries, it)
	} else {
		r.ready = append(r.ready, it)
	}
}

// fillFeed reads up to read events of the feed, and makes up to tried of them
// ready.
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
		case it.settled: // an earlier sender settled it
		case r.blocked[it.Key]:
			r.leaveWaiting(it)
		default:
			tried--
			r.enlist(it)
		}
	}
	return nil
}

// items turns events into items, and finds the keys that have to wait.
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
			// Events of test products are not sent. They count as settled, so
			// the cursor moves past them.
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
