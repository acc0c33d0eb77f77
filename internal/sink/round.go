package sink

import (
	"context"
	"time"

	"seckill/internal/store"
)

// round is one round of a sender. Its methods run on one goroutine; deliveries
// run on others and come back through results.
type round struct {
	*Sender
	state store.SinkState // as the round found it
	began time.Time
	over  bool // nothing new is begun

	read    int64          // the last event that was read from the feed
	cursor  int64          // as the store has it
	drained bool           // the feed had no more
	feedAt  time.Time      // when to read it again
	dueAt   time.Time      // when to look for due deliveries again
	known   map[int64]bool // events above the cursor that have a delivery

	unsettled []*item // events above the cursor, in the feed's order
	ready     []*item // events of the feed that may be tried now
	again     []*item // deliveries of the store that may be tried now
	lanes     map[string][]*item
	blocked   map[string]bool // keys with a delivery that this round left open
	flying    map[int64]bool  // events in hand, until the store has their outcome
	due       int             // deliveries of the store in hand, until it has their outcome
	tries     int             // that are under way
	repeats   int             // of them, those of deliveries that the store had
	settled   bool            // some delivery left the hand
	// repeated says that the last try was of a delivery that the store had.
	repeated bool
	results  chan *item

	done    []store.Delivery // outcomes that the store does not have yet
	doneAt  time.Time        // of the first of them
	release bool             // more may be due than was found last
	outage  outage           // that has ended, and whose deliveries are not due yet
}

// item is an event in hand.
type item struct {
	store.Delivery
	message *Message
	settled bool
	err     error
	cut     bool // the try was ended, not by its own timeout
}

// now is the store's time.
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

// findKnown finds the events above the cursor that have a delivery. There are
// none after a round that ended with nothing in hand.
func (r *round) findKnown(ctx context.Context) error {
	if r.even {
		return nil
	}
	after, err := r.opt.Store.DeliveredAfter(ctx, r.opt.Name, r.cursor, 2*maxUnsettled)
	r.known = make(map[int64]bool, len(after))
	for _, id := range after {
		r.known[id] = true
	}
	return err
}

// step does all that can be done now. It returns how long to wait for more, or
// 0 at the end of the round. When ctx has ended it begins nothing; tries in hand
// and the recording of outcomes have the longer context.
func (r *round) step(ctx, longer context.Context) (time.Duration, error) {
	r.over = r.over || ctx.Err() != nil || time.Since(r.began) > roundLength
	if err := r.fill(ctx); err != nil {
		if ctx.Err() == nil {
			return 0, err
		}
		r.over = true // the stop ended the reading: what is in hand is recorded
	}
	wait := r.dispatch(longer)
	if err := r.settle(longer, r.tries == 0 && r.inHand() == 0); err != nil {
		return 0, err
	}
	wait = max(wait, time.Millisecond)
	switch {
	case r.tries > 0:
		return min(wait, settleEvery), nil
	case r.over, r.held(time.Now()) > 0, r.idle():
		return 0, nil
	}
	return wait, nil
}

// inHand is how many deliveries may be tried now.
func (r *round) inHand() int { return len(r.ready) + len(r.again) }

// idle reports whether nothing is left to do: nothing is in hand, and there is
// nothing more to take in hand.
func (r *round) idle() bool {
	return r.inHand() == 0 && len(r.done) == 0 && !r.release && r.drained
}

// await waits for a result, at most so long, and takes all that are there.
func (r *round) await(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	stop := ctx.Done()
	if r.over {
		stop = nil // tries end by themselves
	}
	select {
	case it := <-r.results:
		r.take(it)
	case <-timer.C:
	case <-stop:
	}
	for {
		select {
		case it := <-r.results:
			r.take(it)
		default:
			return
		}
	}
}

// settle records the outcomes, if it is time or asked for.
func (r *round) settle(ctx context.Context, now bool) error {
	if len(r.done) == 0 && len(r.unsettled) == 0 {
		return nil
	}
	if !now && len(r.done) < settleMost && time.Since(r.doneAt) < settleEvery {
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
		delete(r.flying, r.done[i].EventID)
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

// sweep keeps the delivery log bounded.
func (r *round) sweep(ctx context.Context) error {
	if r.cursor-r.sweptAt < sweepEvery || r.cursor <= r.opt.KeepEvents {
		return nil
	}
	_, err := r.opt.Store.SweepDeliveries(ctx, r.opt.Name, r.cursor-r.opt.KeepEvents, sweepMost)
	if err == nil {
		r.sweptAt = r.cursor
	}
	return err
}

// finish waits for tries that are under way, whose context has ended, and
// records what is left to record.
func (r *round) finish(ctx context.Context, err error) error {
	r.over = true
	for r.tries > 0 {
		r.take(<-r.results)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer cancel()
	if err := r.settle(ctx, true); err != nil {
		return err
	}
	r.even, r.Sender.drained = len(r.unsettled) == 0, r.drained
	if r.read == r.state.Cursor && !r.settled && time.Since(r.Status().At) < tellEvery {
		return nil // nothing new
	}
	return r.tell(ctx)
}
