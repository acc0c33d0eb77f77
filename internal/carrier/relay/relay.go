package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/fault"
	"seckill/internal/queue"
)

const (
	// heldMost bounds the claims that the relay holds: a quarter of a kilobyte
	// each, so 25 MB. Beyond it nothing more is read until some are acknowledged.
	heldMost = 100_000
	// readMost bounds the claims of one reading.
	readMost = 2000
	// awayFactor is how much longer a relay waits between two checks while the
	// store is away: nothing is acknowledged then, and each check asks the outbox
	// about all that is held.
	awayFactor = 10
	// republishMost is the longest time between two copies of an entry.
	republishMost = 10 * time.Minute
	// retryPause is the wait between two tries of a publish, and after a reading
	// that failed.
	retryPause = 250 * time.Millisecond
	// callWithin bounds a call to the outbox, the store or the broker's health.
	callWithin = 5 * time.Second
	// closeWithin bounds the end.
	closeWithin = 2 * time.Second
)

var errStuck = errors.New("published entries are not acknowledged")

// holding is an entry that the relay has read and nobody has acknowledged.
type holding struct {
	delivery queue.Delivery
	first    time.Time // when it was first published; zero before
	waiting  time.Time // since when it waits while the store works
	due      time.Time // when it is published again
	copies   int
	large    bool
	direct   bool // it was given to a worker of this process
	unknown  bool // the last check was not told whether it waits
}

// relay reads the outbox and publishes. It is used by one goroutine.
type relay struct {
	*Line
	consumer queue.Consumer
	held     map[queue.ID]*holding
	claims   int
	checkAt  time.Time
	heardAt  time.Time // when the broker last took messages or answered
	passed   time.Time // when the youngest acknowledged entry was first published
	movedAt  time.Time // when the last acknowledgement was seen
	deaths   int       // those of other consumers that it has acted on
	helpTo   time.Time // until when workers of this process get what waits

	bypassAt  time.Time // when the present bypass began; zero without one
	bypassFor time.Duration
	bypassEnd time.Time // when the last bypass ended
	wellSeen  int
}

func newRelay(l *Line) *relay { return &relay{Line: l, held: make(map[queue.ID]*holding)} }

// run relays until ctx ends.
func (r *relay) run(ctx context.Context) {
	if !r.join(ctx) {
		return
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		if err := r.consumer.Close(closing); err != nil {
			r.opt.Logger.Warn("relay did not hand back its entries; others take them over", "error", err)
		}
	}()
	for ctx.Err() == nil {
		if r.bypassAt.IsZero() {
			r.round(ctx)
		} else {
			r.bypassRound(ctx)
		}
	}
}

func (r *relay) join(ctx context.Context) bool {
	for ctx.Err() == nil {
		joining, cancel := context.WithTimeout(ctx, callWithin)
		consumer, err := r.opt.Outbox.Relay(joining, r.opt.Name)
		cancel()
		if err == nil {
			r.consumer = consumer
			return true
		}
		r.opt.Logger.Warn("relay has not joined the outbox yet", "error", err)
		_ = background.Pause(ctx, retryPause) // the loop looks at ctx
	}
	return false
}

// round checks what is held and how the broker is, if that is due, and passes
// new entries on.
func (r *relay) round(ctx context.Context) {
	if err := r.look(ctx, time.Now()); err != nil {
		r.unwell(ctx, err)
		return
	}
	if r.claims >= heldMost {
		_ = background.Pause(ctx, time.Until(r.checkAt)) // the caller looks at ctx
		return
	}
	fresh, err := r.read(ctx)
	if err != nil {
		r.complaints.Say(slog.LevelWarn, "read", "relay cannot read the outbox; it tries again", "error", err)
		_ = background.Pause(ctx, retryPause) // the loop looks at ctx
	}
	if err := r.publish(ctx, fresh, false); err != nil {
		r.unwell(ctx, err)
	}
}

// look does the checks that are due. An error says that the broker is unwell.
func (r *relay) look(ctx context.Context, now time.Time) error {
	if !now.Before(r.checkAt) {
		wait := r.opt.Timing.CheckEvery
		storeWell, err := r.check(ctx, now)
		if err != nil {
			return err
		}
		if !storeWell {
			wait *= awayFactor
		}
		r.checkAt = time.Now().Add(wait)
	}
	// A broker that dies while nothing is sold must not be found out by the first
	// order of the next sale.
	if now.Sub(r.heardAt) < r.opt.Timing.PingEvery {
		return nil
	}
	return r.insist(ctx, "ask the broker for its health", r.broker().Ping)
}

// read takes entries from the outbox until the next check is due.
func (r *relay) read(ctx context.Context) ([]*holding, error) {
	bounded, cancel := context.WithDeadline(ctx, r.checkAt)
	defer cancel()
	got, err := r.consumer.Receive(bounded, readMost)
	if err != nil && bounded.Err() != nil {
		err = nil
	}
	var fresh []*holding
	for i := range got {
		h := r.held[got[i].ID]
		if h == nil { // else the outbox took it for lost, and gave it back to this relay
			h = &holding{delivery: got[i]}
			r.held[got[i].ID] = h
			r.claims += len(got[i].Entry.Claims)
		}
		fresh = append(fresh, h)
	}
	if len(fresh) > 0 {
		r.opt.Meter.Holds(r.claims)
	}
	return fresh, err
}

// publish sends entries. An error says that the broker did not take them in
// time.
func (r *relay) publish(ctx context.Context, entries []*holding, again bool) error {
	if len(entries) == 0 {
		return nil
	}
	packs, large, err := pack(r.opt.Codec, r.broker().MaxBytes(), entries)
	if err != nil {
		return err
	}
	messages := make([]carrier.Message, len(packs))
	for i := range packs {
		messages[i] = packs[i].message
	}
	if len(messages) > 0 {
		err := r.insist(ctx, "publish to the broker", func(ctx context.Context) error { return r.broker().Publish(ctx, messages) })
		if err != nil {
			return err
		}
	}
	fault.Point("relay.after_publish")
	now := time.Now()
	claims := 0
	for _, p := range packs {
		for _, h := range p.entries {
			r.sent(h, now)
			claims += len(h.delivery.Entry.Claims)
		}
	}
	if len(messages) > 0 {
		r.opt.Meter.Published(len(messages), claims, again)
	}
	for _, h := range large {
		h.large, h.due = true, now // offered again soon if no worker has room
	}
	r.give(ctx, large)
	return nil
}

// sent books a copy of an entry.
func (r *relay) sent(h *holding, now time.Time) {
	if h.first.IsZero() {
		h.first, h.waiting = now, now
	}
	delay := r.opt.Timing.RepublishAfter << min(h.copies, 10)
	h.copies++
	h.due = now.Add(min(delay, republishMost))
}

// give passes entries to workers of this process, as copies that come by no
// broker. It waits for room a moment.
func (r *relay) give(ctx context.Context, entries []*holding) {
	ctx, cancel := context.WithTimeout(ctx, retryPause)
	defer cancel()
	for _, h := range entries {
		select {
		case r.arrivals <- newParcel([]queue.Delivery{h.delivery}):
			h.direct = true
			r.sent(h, time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// insist calls the broker until it succeeds, or for PublishWithin.
func (r *relay) insist(ctx context.Context, what string, call func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, r.opt.Timing.PublishWithin)
	defer cancel()
	never := func(error) bool { return false }
	err := background.Retry(bounded, retryPause, never, func() error { return call(bounded) })
	switch {
	case err == nil:
		r.heardAt = time.Now()
	case ctx.Err() == nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil // or stopping: the outbox has all
}

// check asks which entries still wait, forgets the others, and publishes again
// what is due. An error says that the broker is unwell.
func (r *relay) check(ctx context.Context, now time.Time) (storeWell bool, err error) {
	defer func() { r.opt.Meter.Holds(r.claims) }()
	// What a dead instance has in hand, the broker may give to others much later:
	// 8 s with Kafka, 60 s with RocketMQ.
	if n := r.consumer.Deaths(); n != r.deaths {
		r.deaths, r.helpTo = n, now.Add(r.opt.Timing.RepublishAfter)
	}
	if len(r.held) == 0 {
		return true, nil
	}
	all := slices.Collect(maps.Values(r.held))
	r.forgetSettled(ctx, all, now)
	storeWell = r.storeWell(ctx)
	for _, h := range r.held {
		if h.unknown || !storeWell { // the outbox or the store is away, not the broker
			h.waiting = now
			h.due = later(h.due, now.Add(r.opt.Timing.RepublishAfter))
		}
	}
	if !storeWell {
		return false, nil
	}
	if err := r.stuck(now); err != nil {
		return true, err
	}
	if now.Before(r.helpTo) {
		r.give(ctx, r.which(func(h *holding) bool { return !h.direct && !h.unknown }))
	}
	return true, r.publish(ctx, r.which(func(h *holding) bool { return !now.Before(h.due) }), true)
}

// which picks entries that are held, oldest first.
func (r *relay) which(is func(*holding) bool) (some []*holding) {
	for _, h := range r.held {
		if is(h) {
			some = append(some, h)
		}
	}
	slices.SortFunc(some, func(a, b *holding) int {
		return cmp.Or(cmp.Compare(a.delivery.ID.Stream, b.delivery.ID.Stream), cmp.Compare(a.delivery.ID.Seq, b.delivery.ID.Seq))
	})
	return some
}

// forgetSettled drops the entries that somebody has acknowledged, and notes those
// of which the outbox does not say it.
func (r *relay) forgetSettled(ctx context.Context, all []*holding, now time.Time) {
	deliveries := make([]queue.Delivery, len(all))
	for i := range all {
		deliveries[i] = all[i].delivery
	}
	asking, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	states, err := r.consumer.Waits(asking, deliveries)
	if err != nil && ctx.Err() == nil {
		r.complaints.Say(slog.LevelWarn, "relay asks", "outbox does not say of all entries whether they wait; those are left alone until it does", "error", err)
	}
	for i, h := range all {
		if h.unknown = states[i] == queue.Unknown; states[i] != queue.Gone {
			continue
		}
		delete(r.held, h.delivery.ID)
		r.claims -= len(h.delivery.Entry.Claims)
		r.movedAt = now
		r.passed = later(r.passed, h.first)
	}
}

func (r *relay) storeWell(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return r.opt.Store.Ping(ctx) == nil
}

// stuck says that the oldest published entry waits for too long: no entry was
// acknowledged meanwhile, or much younger ones were. Workers that are slow
// acknowledge old entries first, and are no reason to bypass the broker.
func (r *relay) stuck(now time.Time) error {
	after := r.opt.Timing.UnwellAfter
	for _, h := range r.held {
		if h.first.IsZero() || h.large || now.Sub(h.waiting) <= after {
			continue
		}
		if now.Sub(r.movedAt) > after || r.passed.Sub(h.first) > after {
			return fmt.Errorf("%w: the oldest waits for %s", errStuck, now.Sub(h.waiting).Round(time.Second))
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
