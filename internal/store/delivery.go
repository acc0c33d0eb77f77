package store

import (
	"context"
	"time"

	"seckill"
)

// Deliveries keeps the position of each sink in the feed, and the result of each event that was
// sent to it. A sink is identified by its name. A sink that is no longer configured keeps its
// cursor.
//
// Deliveries of one key form a line. The first open one is retrying or failed, and those behind
// it wait. When the first one is settled, the next becomes due in the same transaction.
type Deliveries interface {
	// OpenSink creates the cursor of a sink that has none: before the first event, or behind
	// the last one if atEnd. It returns the state in either case.
	OpenSink(ctx context.Context, name string, atEnd bool) (SinkState, error)
	// SinkState reads the state of one sink (not_found).
	SinkState(ctx context.Context, name string) (SinkState, error)
	// SinkCursor is SinkState without the figures of deliveries. It is cheap, because the store
	// must read every open delivery for the figures.
	SinkCursor(ctx context.Context, name string) (SinkState, error)
	// SinkStates lists the states of all sinks by name, and counts settled
	// deliveries too.
	SinkStates(ctx context.Context) ([]SinkState, error)
	// TakeSink begins a new term of the sink and returns its state. From then on, calls by
	// senders of earlier terms fail with ErrTerm.
	TakeSink(ctx context.Context, name string) (SinkState, error)
	// SetSinkDown records that the sink is down, and since when, or that it is up. ErrTerm if
	// the sink is in another term; nothing is changed then.
	SetSinkDown(ctx context.Context, name string, term int64, down bool) error
	// FeedEnd returns the id of the last event. Events without a number yet are included: the
	// result is the number that the last of them will get.
	FeedEnd(ctx context.Context) (int64, error)

	// SettleDeliveries records the given deliveries, each under its sink and event, and moves
	// the cursor. A repeated call changes nothing. A waiting delivery becomes due if none
	// before it is open. ErrTerm if the sink is in another term; nothing is changed then.
	SettleDeliveries(ctx context.Context, sink string, term, cursor int64, done []Delivery) error
	// DeliveredAfter lists the ids of at most limit events above after that have a delivery,
	// lowest first.
	DeliveredAfter(ctx context.Context, sink string, after int64, limit int) ([]int64, error)
	// OpenKeys returns the given keys that have an open delivery.
	OpenKeys(ctx context.Context, sink string, keys []string) ([]string, error)
	// DeliveriesDue lists at most limit retrying deliveries, with their bodies, that are due at
	// the time by or earlier. The earliest comes first.
	DeliveriesDue(ctx context.Context, sink string, by time.Time, limit int) ([]Delivery, error)
	// HastenDeliveries makes retrying deliveries due now: those first tried at or after since,
	// or all of them if since is zero.
	HastenDeliveries(ctx context.Context, sink string, since time.Time) error
	// SweepDeliveries deletes at most limit settled deliveries of events below an id, and
	// returns how many.
	SweepDeliveries(ctx context.Context, sink string, below int64, limit int) (int, error)

	// Deliveries lists deliveries by event, without bodies, oldest first unless the filter says
	// otherwise.
	Deliveries(ctx context.Context, filter DeliveryFilter) ([]Delivery, error)
	// RetryDelivery makes a failed or retrying delivery due now, and its attempts start anew.
	// Any other state is wrong_state. RetryDeliveries does this for all of them of the sink,
	// and returns how many. It works in parts, each a transaction, and may be repeated after an
	// error.
	RetryDelivery(ctx context.Context, sink string, event int64, actor Actor) (Delivery, error)
	RetryDeliveries(ctx context.Context, sink string, actor Actor) (int, error)
	// SkipDelivery gives up a failed or retrying delivery, so that the next one of its key
	// becomes due. Any other state is wrong_state. A retrying delivery may be in flight, so a
	// new term begins.
	SkipDelivery(ctx context.Context, sink string, event int64, actor Actor) (Delivery, error)
	// SkipDeliveries gives up all failed deliveries of the sink, and returns how many. It works
	// in parts, like RetryDeliveries.
	SkipDeliveries(ctx context.Context, sink string, actor Actor) (int, error)
	// ReplaySink moves the cursor back to after, unless it is there or earlier. It deletes the
	// deliveries of later events, and begins a new term.
	ReplaySink(ctx context.Context, sink string, after int64, actor Actor) (SinkState, error)
	// ForgetSink deletes a sink with all its deliveries, and returns how many (not_found). It
	// works in parts, each a transaction. The last one deletes the sink itself. It may be
	// repeated after an error.
	ForgetSink(ctx context.Context, sink string, actor Actor) (int, error)
}

// DeliveryState is the state of a delivery.
type DeliveryState uint8

// The states of a delivery, with the numbers that the store keeps.
const (
	DeliveryRetrying  DeliveryState = 1 // was tried, or is the next of its key
	DeliveryWaiting   DeliveryState = 2 // an earlier one of its key is open
	DeliveryFailed    DeliveryState = 3 // all attempts failed
	DeliveryDelivered DeliveryState = 4
	DeliverySkipped   DeliveryState = 5 // given up by an operator
)

// DeliveryStates lists all of them.
var DeliveryStates = []DeliveryState{DeliveryRetrying, DeliveryWaiting, DeliveryFailed, DeliveryDelivered, DeliverySkipped}

func (s DeliveryState) String() string {
	switch s {
	case DeliveryRetrying:
		return "retrying"
	case DeliveryWaiting:
		return "waiting"
	case DeliveryFailed:
		return "failed"
	case DeliveryDelivered:
		return "delivered"
	case DeliverySkipped:
		return "skipped"
	}
	return "unknown"
}

// Open reports whether the delivery blocks later ones of its key.
func (s DeliveryState) Open() bool {
	return s == DeliveryRetrying || s == DeliveryWaiting || s == DeliveryFailed
}

// ParseDeliveryState reads the name of a state.
func ParseDeliveryState(name string) (DeliveryState, error) {
	for _, state := range DeliveryStates {
		if state.String() == name {
			return state, nil
		}
	}
	return 0, seckill.Errorf(seckill.CodeBadRequest, "unknown state of a delivery %q", name)
}

// Delivery is the delivery of one event to one sink.
type Delivery struct {
	Sink      string
	EventID   int64
	Key       string
	Kind      seckill.EventKind
	MessageID string
	EventAt   time.Time
	State     DeliveryState
	Attempts  int
	Status    string // of the last try, such as "204"; "" if there was no answer
	Latency   time.Duration
	Error     string    // of the last try
	FirstAt   time.Time // the first try; zero before it
	LastAt    time.Time // the last try; before the first try, the time when it began to wait
	NextAt    time.Time // the next try, if retrying
	// Body is the message, kept while the delivery is open.
	Body []byte
	// Kept is true if the delivery was read from the store, so that others may wait behind it.
	Kept bool
}

// DeliveryFilter narrows Deliveries; zero fields but Sink do not narrow.
type DeliveryFilter struct {
	Sink  string
	State DeliveryState
	Key   string
	// MessageID is the id that the receiver gets.
	MessageID string
	After     int64 // page: only events above this one
	Before    int64 // page: only events below this one; 0 for all
	Newest    bool  // newest first, instead of oldest
	Limit     int
}

// SinkState is the position and the figures of a sink.
type SinkState struct {
	Name   string
	Cursor int64 // the last event that was taken from the feed
	Term   int64
	// Count has the deliveries by state. Settled ones are counted only by SinkStates.
	Count map[DeliveryState]int64
	// NextAt is the earliest next try. OldestAt is the time of the oldest event with an open
	// delivery. Zero if there is none.
	NextAt, OldestAt time.Time
	// LastError is that of the open delivery that was tried last.
	LastError   string
	LastErrorAt time.Time
	CreatedAt   time.Time
	DownAt      time.Time // since when it is down; zero if it is not
	RetriedAt   time.Time // when an operator last made deliveries due; zero for never
	At          time.Time // the time of the store's clock
}

// Open counts the open deliveries.
func (s *SinkState) Open() int64 {
	return s.Count[DeliveryRetrying] + s.Count[DeliveryWaiting] + s.Count[DeliveryFailed]
}
