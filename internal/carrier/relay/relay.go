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
	// maxHeld bounds the claims that the relay holds: 25 MB at 250 bytes each.
	// At the bound it reads nothing until some are acknowledged.
	maxHeld = 100_000
	// maxRead bounds the claims of one read.
	maxRead = 2000
	// awayFactor makes the time between two checks longer while the store is
	// away: nothing is acknowledged then, and each check asks the outbox about
	// all held entries.
	awayFactor = 10
	// maxRepublish is the longest time between two copies of an entry.
	maxRepublish = 10 * time.Minute
	// retryPause is the pause between two tries of a publish, and after a read
	// that failed.
	retryPause = 250 * time.Millisecond
	// callWithin bounds a call to the outbox, the store or the broker's health.
	callWithin = 5 * time.Second
	// closeWithin bounds the handing back at the end.
	closeWithin = 2 * time.Second
)

var errStuck = errors.New("published entries are not acknowledged")

// heldEntry is an entry that the relay has read and that is not acknowledged.
type heldEntry struct {
	delivery queue.Delivery
	first    time.Time // time of the first publish; zero before
	waiting  time.Time // since when it waits while the store works
	due      time.Time // time of the next publish
	copies   int
	large    bool
	direct   bool // a worker of this process has received it
	unknown  bool // the outbox did not answer for it in the last check
}

// relay reads the outbox and publishes. One goroutine uses it.
type relay struct {
	*Line
	consumer   queue.Consumer
	held       map[queue.ID]*heldEntry
	claims     int
	checkAt    time.Time
	answeredAt time.Time // when the broker last stored messages or answered
	passed     time.Time // first publish of the youngest acknowledged entry
	movedAt    time.Time // when the last acknowledgement was seen
	deaths     int       // deaths of other consumers that were handled
	helpUntil  time.Time // until then, workers of this process get waiting entries

	bypassAt  time.Time // beginning of the present bypass; zero without one
	bypassFor time.Duration
	bypassEnd time.Time // end of the last bypass
	wellSeen  int
}

func newRelay(l *Line) *relay { return &relay{Line: l, held: make(map[queue.ID]*heldEntry)} }

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
		_ = background.Pause(ctx, retryPause) // the loop checks ctx
	}
	return false
}

// round makes the due checks of entries and broker, and publishes new entries.
func (r *relay) round(ctx context.Context) {
	if err := r.runChecks(ctx, time.Now()); err != nil {
		r.unwell(ctx, err)
		return
	}
	if r.claims >= maxHeld {
		_ = background.Pause(ctx, time.Until(r.checkAt)) // the caller checks ctx
		return
	}
	fresh, err := r.read(ctx)
	if err != nil {
		r.complaints.Say(slog.LevelWarn, "read", "relay cannot read the outbox; it tries again", "error", err)
		_ = background.Pause(ctx, retryPause) // the loop checks ctx
	}
	if err := r.publish(ctx, fresh, false); err != nil {
		r.unwell(ctx, err)
	}
}

// runChecks makes the due checks. An error means that the broker is unwell.
func (r *relay) runChecks(ctx context.Context, now time.Time) error {
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
	// Ping the broker while nothing is sold. Otherwise the first order of the
	// next sale would find a dead broker.
	if now.Sub(r.answeredAt) < r.opt.Timing.PingEvery {
		return nil
	}
	return r.retryCall(ctx, "ask the broker for its health", r.broker().Ping)
}

// read reads entries from the outbox until the next check is due.
func (r *relay) read(ctx context.Context) ([]*heldEntry, error) {
	bounded, cancel := context.WithDeadline(ctx, r.checkAt)
	defer cancel()
	got, err := r.consumer.Receive(bounded, maxRead)
	if err != nil && bounded.Err() != nil {
		err = nil
	}
	var fresh []*heldEntry
	for i := range got {
		h := r.held[got[i].ID]
		if h == nil { // else the outbox gave the entry back to this relay, because it counted as lost
			h = &heldEntry{delivery: got[i]}
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

// publish publishes entries. An error means that the broker did not store them
// in time.
func (r *relay) publish(ctx context.Context, entries []*heldEntry, again bool) error {
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
		err := r.retryCall(ctx, "publish to the broker", func(ctx context.Context) error { return r.broker().Publish(ctx, messages) })
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
		h.large, h.due = true, now // soon again, if no worker has room
	}
	r.giveToWorkers(ctx, large)
	return nil
}

// sent records a copy of an entry.
func (r *relay) sent(h *heldEntry, now time.Time) {
	if h.first.IsZero() {
		h.first, h.waiting = now, now
	}
	delay := r.opt.Timing.RepublishAfter << min(h.copies, 10)
	h.copies++
	h.due = now.Add(min(delay, maxRepublish))
}

// giveToWorkers passes entries to workers of this process, as copies without a message.
// It waits a moment for room.
func (r *relay) giveToWorkers(ctx context.Context, entries []*heldEntry) {
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

// retryCall calls the broker until it succeeds, or for PublishWithin.
func (r *relay) retryCall(ctx context.Context, what string, call func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, r.opt.Timing.PublishWithin)
	defer cancel()
	never := func(error) bool { return false }
	err := background.Retry(bounded, retryPause, never, func() error { return call(bounded) })
	switch {
	case err == nil:
		r.answeredAt = time.Now()
	case ctx.Err() == nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil // or a stop: the outbox has everything
}

// check asks which entries still wait, removes the others, and publishes due
// entries again. An error means that the broker is unwell.
func (r *relay) check(ctx context.Context, now time.Time) (storeWell bool, err error) {
	defer func() { r.opt.Meter.Holds(r.claims) }()
	// The broker may give the messages of a dead instance to others much later:
	// 8 s with Kafka, 60 s with RocketMQ.
	if n := r.consumer.Deaths(); n != r.deaths {
		r.deaths, r.helpUntil = n, now.Add(r.opt.Timing.RepublishAfter)
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
	if now.Before(r.helpUntil) {
		r.giveToWorkers(ctx, r.heldIf(func(h *heldEntry) bool { return !h.direct && !h.unknown }))
	}
	return true, r.publish(ctx, r.heldIf(func(h *heldEntry) bool { return !now.Before(h.due) }), true)
}

// heldIf returns the matching held entries, oldest first.
func (r *relay) heldIf(is func(*heldEntry) bool) (some []*heldEntry) {
	for _, h := range r.held {
		if is(h) {
			some = append(some, h)
		}
	}
	slices.SortFunc(some, func(a, b *heldEntry) int {
		return cmp.Or(cmp.Compare(a.delivery.ID.Stream, b.delivery.ID.Stream), cmp.Compare(a.delivery.ID.Seq, b.delivery.ID.Seq))
	})
	return some
}

// forgetSettled removes acknowledged entries, and marks the entries for which
// the outbox did not answer.
func (r *relay) forgetSettled(ctx context.Context, all []*heldEntry, now time.Time) {
	deliveries := make([]queue.Delivery, len(all))
	for i := range all {
		deliveries[i] = all[i].delivery
	}
	asking, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	states, err := r.consumer.Waits(asking, deliveries)
	if err != nil && ctx.Err() == nil {
		r.complaints.Say(slog.LevelWarn, "relay asks", "outbox did not answer for some entries; the relay checks them again", "error", err)
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

// stuck returns an error if the oldest published entry has waited too long, and
// either no entry or only much younger ones were acknowledged since. Slow
// workers acknowledge old entries first, so they do not count.
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
