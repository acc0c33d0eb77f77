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
	asked  int
	deaths int
}

func (o *askedOutbox) Deaths() int { return o.deaths }

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

func TestCheck_WorkersGetWhatADeadInstanceMayHaveInHand(t *testing.T) {
	store := &storeAway{}
	r, outbox := fullRelay(store)
	now := time.Now()
	given := func(after time.Duration) int {
		t.Helper()
		if _, err := r.check(t.Context(), now.Add(after)); err != nil {
			t.Fatal(err)
		}
		return len(r.arrivals)
	}
	hold := func(seq uint64) {
		h := &holding{delivery: queue.Delivery{ID: queue.ID{Stream: "s", Seq: seq}}}
		r.sent(h, now.Add(5*time.Second))
		r.held[h.delivery.ID] = h
	}
	if n := given(0); n > 0 {
		t.Errorf("without a death workers get %d entries", n)
	}
	outbox.deaths, store.err = 1, errors.New("away")
	if n := given(time.Second); n > 0 {
		t.Errorf("while the store is away workers get %d entries", n)
	}
	store.err = nil
	for range 2 {
		if n := given(2 * time.Second); n != 1 {
			t.Errorf("after a death workers get %d entries, want one, once", n)
		}
	}
	hold(2) // it may go to the dead one as well
	if n := given(3 * time.Second); n != 2 {
		t.Errorf("soon after a death workers have got %d entries, want 2", n)
	}
	hold(3)
	if n := given(time.Second + r.opt.Timing.RepublishAfter); n != 2 {
		t.Errorf("later workers have got %d entries, want no more", n)
	}
	if p := <-r.arrivals; len(p.message) > 0 || len(p.entries) != 1 || !p.left[queue.ID{Stream: "s", Seq: 1}] {
		t.Errorf("a worker gets %+v", p)
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
