package sink

import (
	"context"
	"strings"
	"time"

	"seckill/internal/store"
)

// dispatch begins as many deliveries as may run. It returns how long until one
// more may.
func (r *round) dispatch(ctx context.Context) time.Duration {
	for len(r.ready) > 0 && !r.over {
		most := r.opt.Concurrency
		if r.failures >= downAfter {
			most = 1
		}
		now := time.Now()
		if r.tries >= most || r.held(now) > 0 {
			return settleEvery
		}
		if wait := r.paced(now); wait > 0 {
			return min(wait, settleEvery)
		}
		it := r.ready[0]
		r.ready = r.ready[1:]
		r.tries++
		go r.try(ctx, it)
	}
	return pollEvery
}

// try delivers one item. It touches nothing of the round.
func (r *round) try(tries context.Context, it *item) {
	ctx, cancel := context.WithTimeout(tries, r.opt.DeliverTimeout)
	defer cancel()
	began := time.Now()
	it.Status, it.err = r.opt.Target.Deliver(ctx, it.message)
	it.Latency = time.Since(began)
	it.cut = it.err != nil && tries.Err() != nil
	r.results <- it
}

// take notes how a try ended.
func (r *round) take(it *item) {
	r.tries--
	if it.cut {
		return // the round was ended: not the receiver's failure
	}
	now, wall := r.now(), time.Now()
	it.Attempts++
	it.LastAt, it.Status = now, clip(it.Status, maxStatus)
	if it.FirstAt.IsZero() {
		it.FirstAt = now
	}
	if it.err == nil {
		it.State, it.Error = store.DeliveryDelivered, ""
		r.back = r.worked(wall) || r.back
	} else {
		it.Error = clip(it.err.Error(), maxErrorBytes)
		r.back = r.missed(wall, it.err) || r.back
		r.retryAt(&it.Delivery, now, it.err)
	}
	r.opt.Observer.Tried(r.opt.Name, it.State, it.Latency)
	if it.State == store.DeliveryFailed {
		r.opt.Observer.Failed(r.opt.Name, it.Delivery)
	}
	r.leave(it)
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
	r.ready = append(r.ready, line[0])
}

// leave takes an item out of hand, to be recorded.
func (r *round) leave(it *item) {
	it.settled = true
	if len(r.done) == 0 {
		r.doneAt = time.Now()
	}
	if !it.Kept && it.State.Open() {
		r.opened++
	}
	r.done = append(r.done, it.Delivery)
	r.release = r.release || it.Kept && it.State == store.DeliveryDelivered
}

// leaveWaiting records that an item waits behind another of its key.
func (r *round) leaveWaiting(it *item) {
	it.State, it.LastAt = store.DeliveryWaiting, r.now()
	r.leave(it)
}

// clip bounds a text, in whole characters, for the delivery log.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
