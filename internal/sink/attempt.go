package sink

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"seckill/internal/store"
)

// dispatch starts as many deliveries as allowed. It returns the time until the
// next one may start.
func (r *round) dispatch(ctx context.Context) time.Duration {
	for !r.ending {
		most := r.opt.Concurrency
		if r.health.down() {
			most = 1
		}
		line := r.nextLine(most)
		if line == nil {
			break
		}
		now := time.Now()
		if r.tries >= most || r.pauseLeft(now) > 0 {
			return settleEvery
		}
		if wait := r.rateWait(now); wait > 0 {
			return min(wait, settleEvery)
		}
		it := (*line)[0]
		*line = (*line)[1:]
		r.tries++
		if r.repeated = it.Kept; it.Kept {
			r.repeats++
		}
		go r.try(ctx, it)
	}
	return pollEvery
}

// nextLine chooses between new events and retries. It returns nil if none is
// ready. Retries leave one place free for new events, so a receiver that
// refuses some orders slowly does not delay the others. With only one place,
// they take turns.
func (r *round) nextLine(most int) *[]*item {
	places := most - 1
	if most == 1 && !r.repeated {
		places = 1
	}
	switch {
	case len(r.retries) > 0 && (r.repeats < places || most == 1 && len(r.ready) == 0):
		return &r.retries
	case len(r.ready) > 0:
		return &r.ready
	}
	return nil
}

// try delivers one item. It runs beside the round and must not use its fields.
func (r *round) try(tries context.Context, it *item) {
	it.Status, it.Latency, it.err = deliver(tries, r.opt.Target, it.message, r.opt.DeliverTimeout)
	it.cut = it.err != nil && tries.Err() != nil
	r.results <- it
}

// takeResult records the result of a try.
func (r *round) takeResult(it *item) {
	r.tries--
	if it.Kept {
		r.repeats--
	}
	if it.cut {
		return // the round ended the try: not a failure of the receiver
	}
	now, wall := r.now(), time.Now()
	it.Attempts++
	it.LastAt, it.Status = now, clip(it.Status, maxStatus)
	if it.FirstAt.IsZero() {
		it.FirstAt = now
	}
	var end outage
	if it.err == nil {
		it.State, it.Error = store.DeliveryDelivered, ""
		end = r.health.succeeded(wall, now)
	} else {
		it.Error = clip(it.err.Error(), maxErrorBytes)
		r.pause(wall, it.err)
		end = r.health.failed(wall, now, it.err)
		r.retryAt(&it.Delivery, now, it.err)
	}
	if end.over && !r.outage.over {
		r.outage = end
	}
	r.opt.Observer.Tried(r.opt.Name, it.State, it.Latency)
	if it.State == store.DeliveryFailed {
		r.opt.Observer.Failed(r.opt.Name, it.Delivery)
	}
	r.giveBack(it)
	line := r.lanes[it.Key][1:]
	if it.State != store.DeliveryDelivered {
		r.blocked[it.Key] = true
		for _, behind := range line {
			r.leaveWaiting(behind)
		}
		line = nil
	}
	if len(line) == 0 {
		delete(r.lanes, it.Key)
		return
	}
	r.lanes[it.Key] = line
	r.makeReady(line[0])
}

// retryAt decides what happens to a delivery that failed at now.
func (r *round) retryAt(d *store.Delivery, now time.Time, err error) {
	wait, again := r.plan.next(d.Attempts, now.Sub(d.FirstAt), rand.Float64())
	if !again && r.health.down() { // the receiver is away, so it refused nothing
		wait, again = r.plan[len(r.plan)-1], true
	}
	if again && r.tooMany(d) {
		r.crowded, again = d.Error, false
	}
	if !again {
		d.State = store.DeliveryFailed
		return
	}
	if later := (*Later)(nil); errors.As(err, &later) {
		wait = max(wait, min(later.After, maxPause))
	}
	d.State, d.NextAt = store.DeliveryRetrying, now.Add(wait)
}

// tooMany reports whether a delivery fails early because too many others are
// retried. The receiver must have accepted others since its first try: then the
// failures are the delivery's own.
func (r *round) tooMany(d *store.Delivery) bool {
	return r.retrying > maxRetrying && d.Attempts >= crowdedTries && !r.health.down() && d.FirstAt.Before(r.health.lastOK)
}

// pause starts the pause that a receiver asks for.
func (r *round) pause(now time.Time, err error) {
	if later := (*Later)(nil); errors.As(err, &later) {
		r.pausedTo = now.Add(min(max(later.After, 0), maxPause))
	}
}

// giveBack ends the work on an item, whose outcome is then recorded.
func (r *round) giveBack(it *item) {
	it.settled, r.settled = true, true
	if len(r.done) == 0 {
		r.doneAt = time.Now()
	}
	switch retried := it.State == store.DeliveryRetrying; {
	case retried && !it.Kept:
		r.retrying++
	case !retried && it.Kept:
		r.retrying--
	}
	r.done = append(r.done, it.Delivery)
	r.release = r.release || it.Kept && it.State == store.DeliveryDelivered
}

// leaveWaiting records that an item waits behind another one of its key.
func (r *round) leaveWaiting(it *item) {
	it.State, it.LastAt = store.DeliveryWaiting, r.now()
	r.giveBack(it)
}

// clip shortens a text for the delivery log, without splitting a character.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
