package sink

import (
	"context"
	"time"

	"seckill/internal/store"
)

// round is one round of a sender. Its methods run on one goroutine. Deliveries
// run on others and return through results.
type round struct {
	*Sender
	state  store.SinkState // at the beginning of the round
	began  time.Time
	ending bool // nothing new is started

	read    int64          // the last event that was read from the feed
	cursor  int64          // in the store
	drained bool           // the feed had no more events
	feedAt  time.Time      // when to read it again
	dueAt   time.Time      // when to read due deliveries again
	known   map[int64]bool // events above the cursor that have a delivery

	unsettled []*item // events above the cursor, in the order of the feed
	ready     []*item // new events that may be tried now
	retries   []*item // deliveries of the store that may be tried now
	lanes     map[string][]*item
	blocked   map[string]bool // keys with a delivery that this round left unfinished
	inFlight  map[int64]bool  // events in hand, until the store has their outcome
	due       int             // deliveries of the store in hand, until it has their outcome
	tries     int             // running tries
	repeats   int             // running tries of deliveries of the store
	settled   bool            // at least one delivery was given back
	// repeated means that the last try was of a delivery of the store.
	repeated bool
	results  chan *item

	done    []store.Delivery // outcomes that the store does not have yet
	doneAt  time.Time        // when the first of them was added
	release bool             // more deliveries may be due than were read last
	outage  outage           // an ended outage whose deliveries are not due yet
}

// item is an event that the round has in hand.
type item struct {
	store.Delivery
	message *Message
	settled bool
	err     error
	cut     bool // the round ended the try, not its timeout
}

// now returns the time by the store's clock.
func (r *round) now() time.Time {
	return r.state.At.Add(time.Since(r.began)).Truncate(time.Millisecond)
}

func (r *round) run(ctx context.Context) error {
	if err := r.findKnown(ctx); err != nil {
		return err
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })()
	for {
		wait, err := r.step(ctx, longer)
		if err != nil || wait == 0 {
			cancel()
			return r.finish(ctx, err)
		}
		r.await(ctx, wait)
	}
}

// findKnown reads the events above the cursor that have a delivery. After a
// round that ended with no unsettled event there are none.
func (r *round) findKnown(ctx context.Context) error {
	if r.noneUnsettled {
		return nil
	}
	after, err := r.opt.Store.DeliveredAfter(ctx, r.opt.Name, r.cursor, 2*maxUnsettled)
	r.known = make(map[int64]bool, len(after))
	for _, id := range after {
		r.known[id] = true
	}
	return err
}

// step does everything that can be done now. It returns the time to wait for
// more, or 0 at the end of the round. After the end of ctx it starts nothing;
// running tries and the recording use the longer context.
func (r *round) step(ctx, longer context.Context) (time.Duration, error) {
	r.ending = r.ending || ctx.Err() != nil || time.Since(r.began) > roundLength
	if err := r.fill(ctx); err != nil {
		if ctx.Err() == nil {
			return 0, err
		}
		r.ending = true // the stop interrupted the read; items in hand are still recorded
	}
	wait := r.dispatch(longer)
	if err := r.settle(longer, r.tries == 0 && r.inHand() == 0); err != nil {
		return 0, err
	}
	wait = max(wait, time.Millisecond)
	switch {
	case r.tries > 0:
		return min(wait, settleEvery), nil
	case r.ending, r.pauseLeft(time.Now()) > 0, r.idle():
		return 0, nil
	}
	return wait, nil
}

// inHand returns how many deliveries may be tried now.
func (r *round) inHand() int { return len(r.ready) + len(r.retries) }

// idle reports whether nothing is in hand and nothing more can be read.
func (r *round) idle() bool {
	return r.inHand() == 0 && len(r.done) == 0 && !r.release && r.drained
}

// await waits for a result up to a time, and takes all results.
func (r *round) await(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	stop := ctx.Done()
	if r.ending {
		stop = nil // the running tries end by themselves
	}
	select {
	case it := <-r.results:
		r.takeResult(it)
	case <-timer.C:
	case <-stop:
	}
	for {
		select {
		case it := <-r.results:
			r.takeResult(it)
		default:
			return
		}
	}
}

// settle records the outcomes, if it is time or now is set.
func (r *round) settle(ctx context.Context, now bool) error {
	if len(r.done) == 0 && len(r.unsettled) == 0 {
		return nil
	}
	if !now && len(r.done) < maxSettle && time.Since(r.doneAt) < settleEvery {
		return nil
	}
	cursor := r.cursor
	left := 0
	for left < len(r.unsettled) && r.unsettled[left].settled {
		cursor = r.unsettled[left].EventID
		left++
	}
	if len(r.done) == 0 && cursor == r.cursor {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := r.opt.Store.SettleDeliveries(ctx, r.opt.Name, r.term, cursor, r.done); err != nil {
		return err
	}
	for i := range r.done {
		delete(r.inFlight, r.done[i].EventID)
		if r.done[i].Kept {
			r.due--
		}
	}
	r.unsettled, r.cursor, r.done = r.unsettled[left:], cursor, nil
	if err := r.record(ctx, r.now()); err != nil {
		return err
	}
	if r.outage.over {
		if err := r.opt.Store.HastenDeliveries(ctx, r.opt.Name, r.outage.since); err != nil {
			return err
		}
		r.outage, r.release = outage{}, true
	}
	if r.release {
		r.dueAt = time.Time{}
	}
	return r.sweep(ctx)
}

// sweep deletes old rows of the delivery log.
func (r *round) sweep(ctx context.Context) error {
	if r.cursor-r.sweptAt < sweepEvery || r.cursor <= r.opt.KeepEvents {
		return nil
	}
	_, err := r.opt.Store.SweepDeliveries(ctx, r.opt.Name, r.cursor-r.opt.KeepEvents, maxSweep)
	if err == nil {
		r.sweptAt = r.cursor
	}
	return err
}

// finish waits for running tries, whose context has ended, and records the
// rest.
func (r *round) finish(ctx context.Context, err error) error {
	r.ending = true
	for r.tries > 0 {
		r.takeResult(<-r.results)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer cancel()
	if err := r.settle(ctx, true); err != nil {
		return err
	}
	r.noneUnsettled, r.Sender.drained = len(r.unsettled) == 0, r.drained
	if r.read == r.state.Cursor && !r.settled && time.Since(r.Status().At) < statusEvery {
		return nil // nothing new
	}
	return r.readStatus(ctx)
}
