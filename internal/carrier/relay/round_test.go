package relay

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carriertest"
	"seckill/internal/queue"
)

// askedOutbox counts how often it is asked which entries wait. All entries
// wait.
type askedOutbox struct {
	queue.Consumer
	asked  int
	deaths int
	away   string // a stream that does not answer
	gone   string // a stream whose entries do not wait
}

func (o *askedOutbox) Deaths() int { return o.deaths }

func (o *askedOutbox) Waits(_ context.Context, of []queue.Delivery) ([]queue.State, error) {
	o.asked++
	states := make([]queue.State, len(of))
	var err error
	for i := range of {
		if states[i] = queue.Waiting; of[i].ID.Stream == o.away {
			states[i], err = queue.Unknown, errors.New("no answer")
		}
		if of[i].ID.Stream == o.gone {
			states[i] = queue.Gone
		}
	}
	return states, err
}

type storeAway struct{ err error }

func (s *storeAway) Ping(context.Context) error { return s.err }

type noMeter struct{ Meter }

func (noMeter) Holds(int) {}

func (noMeter) Published(int, int, bool) {}

// fullRelay holds the maximum.
func fullRelay(store *storeAway) (*relay, *askedOutbox) {
	line := New(Options{
		Store: store, Meter: noMeter{}, Logger: slog.New(slog.DiscardHandler), Timing: Timing{CheckEvery: 100 * time.Millisecond},
	})
	line.carrier = carriertest.NewMemory()
	r, outbox := newRelay(line), &askedOutbox{}
	r.consumer, r.answeredAt, r.movedAt = outbox, time.Now(), time.Now()
	id := queue.ID{Stream: "s", Seq: 1}
	h := &heldEntry{delivery: queue.Delivery{ID: id, Entry: seckill.Entry{Claims: make([]seckill.Claim, maxHeld)}}}
	r.sent(h, time.Now())
	r.held[id], r.claims = h, maxHeld
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
	if err := r.runChecks(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	next := r.checkAt
	if wait := next.Sub(now); wait < awayFactor*r.opt.Timing.CheckEvery {
		t.Errorf("the next check comes after %s", wait)
	}
	store.err = nil
	if err := r.runChecks(t.Context(), next.Add(-time.Millisecond)); err != nil || outbox.asked != 1 {
		t.Errorf("before that, it asked %d times, %v", outbox.asked, err)
	}
	if err := r.runChecks(t.Context(), next); err != nil || outbox.asked != 2 {
		t.Errorf("after that, it asked %d times, %v", outbox.asked, err)
	}
	if wait := time.Until(r.checkAt); wait > r.opt.Timing.CheckEvery {
		t.Errorf("with the store, the next check comes after %s", wait)
	}
}

func TestCheck_WorkersGetEntriesOfADeadInstance(t *testing.T) {
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
		h := &heldEntry{delivery: queue.Delivery{ID: queue.ID{Stream: "s", Seq: seq}}}
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
	hold(2) // the dead instance may have got it too
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

// One master of a Cluster is away, so it is unknown whether its entries wait.
func TestReceive_CopiesOfASilentPartDelayNoOthers(t *testing.T) {
	r, outbox := fullRelay(&storeAway{})
	broker := carriertest.NewMemory()
	r.carrier, r.bypassed, outbox.away = broker, false, "away"
	c := &consumer{line: r.Line, Consumer: outbox, open: make(map[queue.ID][]*parcel)}
	arrive := func(stream string, claims int) {
		broker.Inject(carrier.Message{})
		messages, err := broker.Receive(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		id := queue.ID{Stream: stream, Seq: uint64(len(c.open)+len(r.arrivals)) + 1}
		r.arrivals <- newParcel([]queue.Delivery{{ID: id, Entry: seckill.Entry{Claims: make([]seckill.Claim, claims)}}}, messages...)
	}
	receive := func(want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if got, err := c.Receive(ctx, 1); err != nil || len(got) != 1 || got[0].ID.Stream != want || got[0].Stray {
			t.Fatalf("received %v, %v, want one of %s", got, err, want)
		}
	}
	arrive("away", 1)
	for range 3 {
		arrive("s", 1)
		receive("s")
	}
	// Copies above the bound go back to the broker.
	arrive("away", maxUnknown)
	arrive("s", 1)
	receive("s")
	brief, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if back, err := broker.Receive(brief, 10); err != nil || len(back) != 1 || len(c.unknown) != 1 {
		t.Errorf("%d messages went back, %v, and %d copies are kept, want one each", len(back), err, len(c.unknown))
	}
	outbox.away = ""
	receive("away")
}

func TestCheck_PartOfTheOutboxIsAway(t *testing.T) {
	ring, err := auth.NewRing([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	r, outbox := fullRelay(&storeAway{})
	r.opt.Codec = &carrier.Codec{Store: "store", Ring: ring}
	now := time.Now()
	clear(r.held)
	for _, stream := range []string{"away", "gone", "s"} {
		h := &heldEntry{delivery: queue.Delivery{ID: queue.ID{Stream: stream}}}
		r.sent(h, now)
		r.held[h.delivery.ID] = h
	}
	outbox.away, outbox.gone, outbox.deaths = "away", "gone", 1
	away, other := r.held[queue.ID{Stream: "away"}], r.held[queue.ID{Stream: "s"}]
	check := func(after time.Duration) error {
		_, err := r.check(t.Context(), now.Add(after))
		return err
	}
	if err := check(r.opt.Timing.RepublishAfter); err != nil || len(r.held) != 2 {
		t.Errorf("%d entries are held, %v, want the waiting and the unknown one", len(r.held), err)
	}
	if away.copies != 1 || away.direct || other.copies != 2 || !other.direct {
		t.Errorf("given to a worker were %+v and %+v, want only the second one", away, other)
	}
	later := 2 * r.opt.Timing.UnwellAfter
	if err := check(later); !errors.Is(err, errStuck) {
		t.Errorf("an entry that is known to wait for long: %v", err)
	}
	delete(r.held, other.delivery.ID)
	if err := check(later); err != nil || away.copies != 1 {
		t.Errorf("an entry that is unknown for long: %v, %d copies", err, away.copies)
	}
	outbox.away = ""
	if err := check(later + r.opt.Timing.RepublishAfter); err != nil || away.copies != 2 {
		t.Errorf("once it is known: %v, %d copies", err, away.copies)
	}
}

func TestRetryCall_ReportsTheReasonInsteadOfTheTimeout(t *testing.T) {
	r, _ := fullRelay(&storeAway{})
	r.opt.Timing.PublishWithin = 2 * retryPause
	reason, calls := errors.New("no broker is reachable"), 0
	err := r.retryCall(t.Context(), "ask", func(ctx context.Context) error {
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
