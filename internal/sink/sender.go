package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seckill"
	"seckill/internal/store"
)

// Bounds of a sender.
const (
	// maxUnsettled is how many events a sender holds at once, and so how many are
	// delivered again after it was killed.
	maxUnsettled = 512
	// maxRepeats is how many of the store's deliveries it holds beside them.
	maxRepeats = 256
	// While more than maxRetrying deliveries of a sink are retried, one that the
	// receiver refused while it took others is kept as failed after crowdedTries
	// tries, and the feed goes on.
	maxRetrying  = 1000
	crowdedTries = 3
	// keepEvents is how many events back the delivery log reaches, unless
	// Options say otherwise.
	keepEvents = 100_000
	// sweepEvery and sweepMost: after so many events at most so many rows of the
	// log are deleted.
	sweepEvery = 1000
	sweepMost  = 2 * sweepEvery

	roundLength    = 10 * time.Second
	deliverTimeout = 10 * time.Second
	settleEvery    = 100 * time.Millisecond
	settleMost     = 256
	settleTimeout  = 5 * time.Second
	lastTimeout    = 2 * time.Second // to record outcomes while the engine stops
	stopGrace      = time.Second     // of deliveries in hand when the engine stops
	pollEvery      = 200 * time.Millisecond
	dueEvery       = time.Second

	// A sink is down after downSilent tries in a row without an answer, or after
	// downAnswered failures in a row of any kind. A receiver that answers may
	// refuse the orders of one product alone, so it takes many failures until the
	// others have to wait too.
	downSilent   = 10
	downAnswered = 5000
	// While a sink is down one delivery at a time is tried, after probeFirst, then
	// twice that, up to probeMost; up to probeAnswered if the receiver answers.
	probeFirst    = 500 * time.Millisecond
	probeMost     = 10 * time.Second
	probeAnswered = time.Second
	probeChoice   = 16 // events among which a probe is chosen
	// A success after an outage of this length makes the deliveries due that
	// failed during it.
	outageLength = 5 * time.Second

	maxPause      = 10 * time.Minute // that a receiver may ask for
	maxErrorBytes = 500
	maxStatus     = 32
	// lagAlert is how far behind a sink may be before somebody is told.
	lagAlert      = 10 * time.Minute
	lagAlertEvery = time.Minute
	burst         = 100 * time.Millisecond // of the pace
	tellEvery     = 5 * time.Second        // that an idle sender reads its status anew
	lookEvery     = time.Second            // that a pausing sender looks for an operator's retry
)

// SenderStore is what a sender needs of the store.
type SenderStore interface {
	store.Deliveries
	Events(ctx context.Context, after int64, limit int) ([]seckill.Event, error)
	OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
}

// Observer is told what a sender does. Its methods return at once.
type Observer interface {
	// Tried is one try; the state is what became of the delivery.
	Tried(sink string, state store.DeliveryState, took time.Duration)
	// Failed is a delivery whose tries are used up.
	Failed(sink string, d store.Delivery)
	// Crowded is a sink with so many retries that deliveries fail early.
	Crowded(sink string, retrying int64, cause string)
	// Lagging is a sink whose oldest undelivered event is older than ten minutes.
	Lagging(sink string, oldest time.Duration, cause string)
}

// Options are what a sender is made of.
type Options struct {
	Name   string
	Source string // of the events, as CloudEvents has it
	Target Target
	Store  SenderStore
	Data   Data
	// Delays are the waits between tries; empty for DefaultDelays.
	Delays []time.Duration
	// RatePerSecond bounds the tries a second; 0 is off.
	RatePerSecond int
	// Concurrency bounds the deliveries at the same time; 0 for one.
	Concurrency int
	// AtEnd lets a new sink begin behind the last event.
	AtEnd    bool
	Logger   *slog.Logger
	Observer Observer
	// DeliverTimeout bounds one try; 0 for 10 s.
	DeliverTimeout time.Duration
	// KeepEvents is how many events back the delivery log reaches; 0 for 100,000.
	KeepEvents int64
}

// Sender sends the events of the feed to one sink: at least once, and in order
// per key. Its rounds are run by a duty. A sender that is killed at any point
// repeats at most maxUnsettled deliveries.
//
// What a delivery waits for stands in the store; a sender remembers between
// rounds only how the sink behaves.
type Sender struct {
	opt  Options
	plan schedule

	term     int64     // of the sink, as this sender has taken it; 0 for none
	health   health    // how the receiver answers
	pausedTo time.Time // the receiver asked for it
	slot     time.Time // of the pace
	retrying int64     // deliveries that are retried, as far as is known
	crowded  string    // why a delivery failed early, until it was said
	downAt   time.Time // since when the sink is down, as the store has it
	sweptAt  int64
	lookedAt time.Time // when the store was last read during a pause
	// retriedAt is when an operator last asked for a retry, as this sender knows.
	retriedAt time.Time
	alerted   time.Time
	even      bool // no event above the cursor has a delivery
	drained   bool // the last round left nothing in the feed

	mu     sync.Mutex
	status Status
}

// Status is what a sender knows of its sink.
type Status struct {
	At time.Time // when it was known; zero before the first round
	// Lag is how many events of the feed the sink has not been sent yet.
	Lag int64
	// Oldest is the age of the oldest event that is not delivered.
	Oldest                    time.Duration
	Retrying, Waiting, Failed int64
	Down                      bool
}

// NewSender makes a sender.
func NewSender(opt Options) *Sender {
	if len(opt.Delays) == 0 {
		opt.Delays = DefaultDelays
	}
	if opt.Concurrency <= 0 {
		opt.Concurrency = 1
	}
	if opt.DeliverTimeout == 0 {
		opt.DeliverTimeout = deliverTimeout
	}
	if opt.KeepEvents == 0 {
		opt.KeepEvents = keepEvents
	}
	return &Sender{opt: opt, plan: opt.Delays}
}

// Status is the state at the end of the last round.
func (s *Sender) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Round sends what is due, for ten seconds at most, and ends early when nothing
// is left to do.
func (s *Sender) Round(ctx context.Context) error {
	if s.held(time.Now()) > 0 {
		if held, err := s.rest(ctx); held || err != nil {
			return err
		}
	}
	state, err := s.begin(ctx)
	if err != nil {
		s.term, s.even = 0, false
		return fmt.Errorf("sink %s: %w", s.opt.Name, err)
	}
	r := &round{
		Sender: s, state: state, began: time.Now(), read: state.Cursor, cursor: state.Cursor,
		lanes: make(map[string][]*item), blocked: make(map[string]bool), flying: make(map[int64]bool),
		results: make(chan *item, s.opt.Concurrency),
	}
	s.drained = false
	err = r.run(ctx)
	if err != nil {
		s.even = false
	}
	if errors.Is(err, store.ErrTerm) { // the next round begins where the new term does
		s.opt.Logger.Info("sink: its cursor was moved or another instance sends", "sink", s.opt.Name)
		s.term = 0
		err = nil
	}
	if err != nil {
		return fmt.Errorf("sink %s: %w", s.opt.Name, err)
	}
	return nil
}

// rest is a round while nothing is tried. It reports false if an operator has
// asked for a retry, which ends the pause.
func (s *Sender) rest(ctx context.Context) (bool, error) {
	if time.Since(s.lookedAt) < lookEvery {
		return true, nil
	}
	s.lookedAt = time.Now()
	state, err := s.opt.Store.SinkCursor(ctx, s.opt.Name)
	if err != nil {
		return true, fmt.Errorf("sink %s: %w", s.opt.Name, err)
	}
	if state.RetriedAt.After(s.retriedAt) {
		s.retriedAt, s.pausedTo, s.health.probeAt = state.RetriedAt, time.Time{}, time.Time{}
		return false, nil
	}
	if time.Since(s.Status().At) < tellEvery {
		return true, nil
	}
	return true, s.tell(ctx)
}

// begin reads the state of the sink, and takes it if it is not this sender's.
func (s *Sender) begin(ctx context.Context) (store.SinkState, error) {
	state, err := s.opt.Store.SinkCursor(ctx, s.opt.Name)
	if seckill.CodeNotFound.In(err) {
		state, err = s.opt.Store.OpenSink(ctx, s.opt.Name, s.opt.AtEnd)
	}
	if err != nil {
		return state, err
	}
	if s.retriedAt = state.RetriedAt; s.term != 0 && s.term == state.Term {
		return state, nil
	}
	if state, err = s.opt.Store.TakeSink(ctx, s.opt.Name); err != nil {
		return state, err
	}
	s.term, s.sweptAt, s.even = state.Term, 0, false
	if s.retrying = state.Count[store.DeliveryRetrying]; s.retrying > 0 {
		s.health.inherit(time.Now())
	}
	if s.downAt = state.DownAt; !s.downAt.IsZero() {
		s.health.restore(time.Now())
	}
	return state, nil
}

// record tells the store and the log whether the sink is down, if that changed.
func (s *Sender) record(ctx context.Context, now time.Time) error {
	down := s.health.down()
	if down == !s.downAt.IsZero() {
		return nil
	}
	if err := s.opt.Store.SetSinkDown(ctx, s.opt.Name, s.term, down); err != nil {
		return err
	}
	if down {
		s.downAt = now
		s.opt.Logger.Warn("sink: down, its events wait in the store", "sink", s.opt.Name, "error", s.health.cause)
	} else {
		s.opt.Logger.Info("sink: back", "sink", s.opt.Name, "down_for", now.Sub(s.downAt).Round(time.Second))
		s.downAt = time.Time{}
	}
	return nil
}

// held is how long no delivery is tried.
func (s *Sender) held(now time.Time) time.Duration {
	return max(s.pausedTo.Sub(now), s.health.probeIn(now), 0)
}

// paced is how long until the pace allows one more, and takes the place if it is
// now.
func (s *Sender) paced(now time.Time) time.Duration {
	if s.opt.RatePerSecond <= 0 {
		return 0
	}
	if earliest := now.Add(-burst); s.slot.Before(earliest) {
		s.slot = earliest
	}
	if wait := s.slot.Sub(now); wait > 0 {
		return wait
	}
	s.slot = s.slot.Add(time.Second / time.Duration(s.opt.RatePerSecond))
	return 0
}

// tell keeps the sink's status, and says if it lags.
func (s *Sender) tell(ctx context.Context) error {
	state, err := s.opt.Store.SinkState(ctx, s.opt.Name)
	if err != nil {
		return err
	}
	s.retrying = state.Count[store.DeliveryRetrying]
	status := Status{
		At: time.Now(), Down: s.health.down(), Retrying: state.Count[store.DeliveryRetrying],
		Waiting: state.Count[store.DeliveryWaiting], Failed: state.Count[store.DeliveryFailed],
	}
	if !state.OldestAt.IsZero() {
		status.Oldest = max(state.At.Sub(state.OldestAt), 0)
	}
	behind := time.Duration(0)
	if !s.drained {
		if status.Lag, behind, err = lag(ctx, s.opt.Store, &state); err != nil {
			return err
		}
	}
	if s.crowded != "" {
		s.opt.Observer.Crowded(s.opt.Name, status.Retrying, s.crowded)
		s.crowded = ""
	}
	status.Oldest = max(status.Oldest, behind)
	if status.Down {
		behind = status.Oldest
	}
	if behind > lagAlert && time.Since(s.alerted) > lagAlertEvery {
		s.alerted = time.Now()
		s.opt.Observer.Lagging(s.opt.Name, behind, s.health.cause)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
	return nil
}

// lag is how many events are above the cursor, and how old the first of them is.
func lag(ctx context.Context, from SenderStore, state *store.SinkState) (events int64, oldest time.Duration, err error) {
	end, err := from.FeedEnd(ctx)
	if err != nil || end <= state.Cursor {
		return 0, 0, err
	}
	next, err := from.Events(ctx, state.Cursor, 1)
	if err != nil || len(next) == 0 { // all of them were deleted
		return 0, 0, err
	}
	return end - state.Cursor, max(state.At.Sub(next[0].At), 0), nil
}
