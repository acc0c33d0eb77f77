package relay

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"seckill"
	"seckill/internal/carrier/carriertest"
	"seckill/internal/queue"
)

// askedOutbox counts how often it is asked which entries wait. All of them do.
type askedOutbox struct {
	queue.Consumer
	asked int
}

func (o *askedOutbox) Waits(_ context.Context, of []queue.Delivery) ([]bool, error) {
	o.asked++
	waits := make([]bool, len(of))
	for i := range waits {
		waits[i] = true
	}
	return waits, nil
}

type storeAway struct{ err error }

func (s *storeAway) Ping(context.Context) error { return s.err }

type noMeter struct{ Meter }

func (noMeter) Holds(int) {}

// fullRelay holds all that it may.
func fullRelay(store *storeAway) (*relay, *askedOutbox) {
	line := New(Options{
		Store: store, Meter: noMeter{}, Logger: slog.New(slog.DiscardHandler), Timing: Timing{CheckEvery: 100 * time.Millisecond},
	})
	line.carrier = carriertest.NewMemory()
	r, outbox := newRelay(line), &askedOutbox{}
	r.consumer, r.heardAt, r.movedAt = outbox, time.Now(), time.Now()
	id := queue.ID{Stream: "s", Seq: 1}
	h := &holding{delivery: queue.Delivery{ID: id, Entry: seckill.Entry{Claims: make([]seckill.Claim, heldMost)}}}
	r.sent(h, time.Now())
	r.held[id], r.claims = h, heldMost
	return r, outbox
}

func TestRound_FullRelayAsksTheOutboxOnceInCheckEvery(t *testing.T) {
	r, outbox := fullRelay(&storeAway{})
	const rounds = 5
	began := time.Now()
	for range rounds {
		r.round(t.Context())
	}
	if took := time.Since(began); outbox.asked > 1+int(took/r.opt.Timing.CheckEvery) || outbox.asked == 0 {
		t.Errorf("asked %d times in %s", outbox.asked, took)
	}
}

func TestRound_FullRelayAsksLessOftenWhileTheStoreIsAway(t *testing.T) {
	store := &storeAway{err: errors.New("away")}
	r, outbox := fullRelay(store)
	now := time.Now()
	if err := r.look(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	next := r.checkAt
	if wait := next.Sub(now); wait < awayFactor*r.opt.Timing.CheckEvery {
		t.Errorf("the next check is after %s", wait)
	}
	store.err = nil
	if err := r.look(t.Context(), next.Add(-time.Millisecond)); err != nil || outbox.asked != 1 {
		t.Errorf("before that it asked %d times, %v", outbox.asked, err)
	}
	if err := r.look(t.Context(), next); err != nil || outbox.asked != 2 {
		t.Errorf("then it asked %d times, %v", outbox.asked, err)
	}
	if wait := time.Until(r.checkAt); wait > r.opt.Timing.CheckEvery {
		t.Errorf("with the store the next check is after %s", wait)
	}
}

func TestInsist_ReportsTheReasonRatherThanTheEndOfTheTime(t *testing.T) {
	r, _ := fullRelay(&storeAway{})
	r.opt.Timing.PublishWithin = 2 * retryPause
	reason, calls := errors.New("no broker is reachable"), 0
	err := r.insist(t.Context(), "ask", func(ctx context.Context) error {
		if calls++; calls == 1 {
			return reason
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if calls < 2 || !errors.Is(err, reason) {
		t.Errorf("after %d calls the error is: %v", calls, err)
	}
}
