package sink

import (
	"context"
	"slices"
	"strings"
	"time"

	"seckill"
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

	window  []*item // events above the cursor, in the feed's order
	ready   []*item // may be tried now
	lanes   map[string][]*item
	blocked map[string]bool // keys with a delivery that this round left open
	flying  map[int64]bool  // events in hand, until the store has their outcome
	tries   int             // that are under way
	opened  int64           // deliveries that this round left open
	results chan *item

	done    []store.Delivery // outcomes that the store does not have yet
	doneAt  time.Time        // of the first of them
	release bool             // more may be due than was found last
	back    bool             // the sink works again
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
	if r.state.Count[store.DeliveryRetrying] == 0 {
		r.dueAt = time.Now().Add(dueEvery)
	}
	tries, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		wait, err := r.step(ctx, tries)
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
	after, err := r.opt.Store.DeliveredAfter(ctx, r.opt.Name, r.cursor, 2*maxWindow)
	r.known = make(map[int64]bool, len(after))
	for _, id := range after {
		r.known[id] = true
	}
	return err
}

// step does all that can be done now. It returns how long to wait for more, or
// 0 at the end of the round.
func (r *round) step(ctx, tries context.Context) (time.Duration, error) {
	r.over = r.over || ctx.Err() != nil || time.Since(r.began) > roundLength
	if err := r.fill(ctx); err != nil {
		return 0, err
	}
	wait := r.dispatch(tries)
	if err := r.settle(ctx, r.tries == 0 && len(r.ready) == 0); err != nil {
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

// idle reports whether nothing is left to do: nothing is in hand, and there is
// nothing more to take in hand.
func (r *round) idle() bool {
	return len(r.ready) == 0 && len(r.done) == 0 && !r.release && (r.drained || r.full())
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

// settle records the outcomes, if it is time or asked for.
func (r *round) settle(ctx context.Context, now bool) error {
	if len(r.done) == 0 && len(r.window) == 0 {
		return nil
	}
	if !now && len(r.done) < settleMost && time.Since(r.doneAt) < settleEvery {
		return nil
	}
	cursor := r.cursor
	left := 0
	for left < len(r.window) && r.window[left].settled {
		cursor = r.window[left].EventID
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
	}
	r.window, r.cursor, r.done = r.window[left:], cursor, nil
	if r.back {
		if err := r.opt.Store.HastenDeliveries(ctx, r.opt.Name); err != nil {
			return err
		}
		r.back, r.release = false, true
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
	r.even, r.Sender.drained = len(r.window) == 0, r.drained
	if r.read == r.state.Cursor && r.opened == 0 && time.Since(r.Status().At) < tellEvery {
		return nil // nothing new
	}
	return r.tell(ctx)
}

// clip bounds a text, in whole characters, for the delivery log.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
