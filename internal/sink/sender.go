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
	// maxUnsettled bounds the unsettled events of a sender, and so the events that
	// are delivered again after it was killed.
	maxUnsettled = 512
	// maxRepeats bounds the deliveries of the store that it holds in addition.
	maxRepeats = 256
	// If more than maxRetrying deliveries of a sink are retried, a delivery
	// fails after crowdedTries tries if the receiver accepted others meanwhile.
	// So the feed goes on.
	maxRetrying  = 1000
	crowdedTries = 3
	// keepEvents is the default of Options.KeepEvents.
	keepEvents = 100_000
	// After every sweepEvery events, at most maxSweep rows of the log are
	// deleted.
	sweepEvery = 1000
	maxSweep   = 2 * sweepEvery

	roundLength    = 10 * time.Second
	deliverTimeout = 10 * time.Second
	settleEvery    = 100 * time.Millisecond
	maxSettle      = 256
	settleTimeout  = 5 * time.Second
	lastTimeout    = 2 * time.Second // for recording outcomes while the engine stops
	stopGrace      = time.Second     // for running deliveries while the engine stops
	pollEvery      = 200 * time.Millisecond
	dueEvery       = time.Second

	// A sink is down after downSilent tries in a row without an answer, or
	// after downAnswered failures in a row of any kind. The second bound is
	// high, because a receiver that answers may refuse only the orders of one
	// product.
	downSilent   = 10
	downAnswered = 5000
	// While a sink is down, one delivery at a time is tried. The wait begins
	// with probeFirst and doubles up to maxProbePause, or up to probeAnswered if
	// the receiver answers.
	probeFirst    = 500 * time.Millisecond
	maxProbePause = 10 * time.Second
	probeAnswered = time.Second
	probeChoice   = 16 // events among which a probe is chosen
	// After an outage of at least this length, a success makes the deliveries
	// due that failed during it.
	outageLength = 5 * time.Second

	maxPause      = 10 * time.Minute // the longest pause that a receiver may ask for
	maxErrorBytes = 500
	maxStatus     = 32
	// lagAlert is the lag above which the sink alerts.
	lagAlert      = 10 * time.Minute
	lagAlertEvery = time.Minute
	burst         = 100 * time.Millisecond // of the rate limit
	statusEvery   = 5 * time.Second        // how often an idle sender reads its status again
	lookEvery     = time.Second            // how often a paused sender checks for an operator's retry
)

// SenderStore is the part of the store that a sender uses.
type SenderStore interface {
	store.Deliveries
	Events(ctx context.Context, after int64, limit int) ([]seckill.Event, error)
	OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
}

// Observer gets the events of a sender. Its methods return at once.
type Observer interface {
	// Tried is called after each try, with the new state of the delivery.
	Tried(sink string, state store.DeliveryState, took time.Duration)
	// Failed is called when the tries of a delivery are used up.
	Failed(sink string, d store.Delivery)
	// Crowded is called when a sink has so many retries that deliveries fail
	// early.
	Crowded(sink string, retrying int64, cause string)
	// Lagging is called when the oldest undelivered event of a sink is older
	// than ten minutes.
	Lagging(sink string, oldest time.Duration, cause string)
}

// Options are the settings of a sender.
type Options struct {
	Name   string
	Source string // source attribute of the CloudEvents
	Target Target
	Store  SenderStore
	Data   Data
	// Delays are the waits between tries; empty means DefaultDelays.
	Delays []time.Duration
	// RatePerSecond bounds the tries per second; 0 means no limit.
	RatePerSecond int
	// Concurrency bounds the concurrent deliveries; 0 means one.
	Concurrency int
	// AtEnd makes a new sink start after the last event.
	AtEnd    bool
	Logger   *slog.Logger
	Observer Observer
	// DeliverTimeout bounds one try; 0 means 10 s.
	DeliverTimeout time.Duration
	// KeepEvents is how many past events the delivery log keeps; 0 means
	// 100,000.
	KeepEvents int64
}

// Sender sends the events of the feed to one sink: at least once, and in order
// per key. A background loop runs its rounds. A sender that is killed at any
// point repeats at most maxUnsettled deliveries.
//
// The store holds the state of every delivery. Between rounds a sender
// remembers only how the receiver behaves.
type Sender struct {
	opt  Options
	plan schedule

	term     int64     // term under which this sender has taken the sink; 0 for none
	health   health    // how the receiver answers
	pausedTo time.Time // end of a pause that the receiver asked for
	slot     time.Time // next free slot of the rate limit
	retrying int64     // deliveries that are retried, as last read
	crowded  string    // why a delivery failed early; cleared when reported
	downAt   time.Time // since when the sink is down, by the store's clock; zero if it is up
	sweptAt  int64
	lookedAt time.Time // when the store was last read during a pause
	// retriedAt is when an operator last requested a retry, as last read.
	retriedAt     time.Time
	alerted       time.Time
	noneUnsettled bool // no event above the cursor has a delivery
	drained       bool // the last round read the whole feed

	mu     sync.Mutex
	status Status
}

// Status is the state of a sink as a sender last saw it.
type Status struct {
	At time.Time // when it was read; zero before the first round
	// Lag is the number of events that were not sent yet.
	Lag int64
	// Oldest is the age of the oldest undelivered event.
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

// Status returns the state at the end of the last round.
func (s *Sender) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Round sends due deliveries, for ten seconds at most. It ends early if nothing
// is left to do.
func (s *Sender) Round(ctx context.Context) error {
	if s.pauseLeft(time.Now()) > 0 {
		if paused, err := s.pausedRound(ctx); paused || err != nil {
			return err
		}
	}
	state, err := s.begin(ctx)
	if err != nil {
		s.term, s.noneUnsettled = 0, false
		return fmt.Errorf("sink %s: %w", s.opt.Name, err)
	}
	r := &round{
		Sender: s, state: state, began: time.Now(), read: state.Cursor, cursor: state.Cursor,
		lanes: make(map[string][]*item), blocked: make(map[string]bool), inFlight: make(map[int64]bool),
		results: make(chan *item, s.opt.Concurrency),
	}
	s.drained = false
	err = r.run(ctx)
	if err != nil {
		s.noneUnsettled = false
	}
	if errors.Is(err, store.ErrTerm) { // the next round starts at the cursor of the new term
		s.opt.Logger.Info("sink: its cursor was moved or another instance sends", "sink", s.opt.Name)
		s.term = 0
		err = nil
	}
	if err != nil {
		return fmt.Errorf("sink %s: %w", s.opt.Name, err)
	}
	return nil
}

// pausedRound is a round during a pause. It returns false if an operator has requested
// a retry, which ends the pause.
func (s *Sender) pausedRound(ctx context.Context) (bool, error) {
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
	if time.Since(s.Status().At) < statusEvery {
		return true, nil
	}
	return true, s.readStatus(ctx)
}

// begin reads the state of the sink, and takes the sink if it has another
// sender.
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
	s.term, s.sweptAt, s.noneUnsettled = state.Term, 0, false
	if s.retrying = state.Count[store.DeliveryRetrying]; s.retrying > 0 {
		s.health.inherit(time.Now())
	}
	if s.downAt = state.DownAt; !s.downAt.IsZero() {
		s.health.restore(time.Now())
	}
	return state, nil
}

// record writes to the store and the log if the sink went down or came back.
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

// pauseLeft returns the time until a delivery may be tried, because of a pause or a
// probe.
func (s *Sender) pauseLeft(now time.Time) time.Duration {
	return max(s.pausedTo.Sub(now), s.health.probeIn(now), 0)
}

// rateWait returns the time until the rate limit allows a try, and uses the slot
// if it is free now.
func (s *Sender) rateWait(now time.Time) time.Duration {
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

// readStatus reads the status of the sink and keeps it, and alerts if the sink lags.
func (s *Sender) readStatus(ctx context.Context) error {
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

// lag returns the number of events above the cursor, and the age of the first
// one.
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
