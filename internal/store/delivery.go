package store

import (
	"context"
	"time"

	"seckill"
)

// Deliveries keeps how far each sink has read the feed, and what became of the
// events that it was sent. A sink goes by its name; one that nobody has
// configured any more keeps its cursor.
//
// Deliveries of one key form a line: the first that is not settled is retrying
// or failed, and those behind it wait. When the first one is settled, the next
// becomes due in the same transaction.
type Deliveries interface {
	// OpenSink gives a sink that has none a cursor: before the first event, or
	// behind the last one if atEnd. It returns the state in either case.
	OpenSink(ctx context.Context, name string, atEnd bool) (SinkState, error)
	// SinkState reads the state of one sink (not_found).
	SinkState(ctx context.Context, name string) (SinkState, error)
	// SinkCursor is SinkState without the figures of deliveries, for which the
	// store reads every open one.
	SinkCursor(ctx context.Context, name string) (SinkState, error)
	// SinkStates lists the states of all sinks by name, and counts settled
	// deliveries too.
	SinkStates(ctx context.Context) ([]SinkState, error)
	// TakeSink begins a new term of the sink and returns its state. What senders
	// of earlier terms settle later fails with ErrTerm.
	TakeSink(ctx context.Context, name string) (SinkState, error)
	// SetSinkDown records since when the sink is down, or that it is not. If the
	// sink is in another term, ErrTerm is returned and nothing is changed.
	SetSinkDown(ctx context.Context, name string, term int64, down bool) error
	// FeedEnd is the id of the last event. Events that have no number yet count:
	// it is the number that the last of them will get.
	FeedEnd(ctx context.Context) (int64, error)

	// SettleDeliveries records deliveries as they are given, each under its sink
	// and event, and moves the cursor. Repeated, it changes nothing. Waiting ones
	// that have nothing open before them become due. If the sink is in another
	// term, ErrTerm is returned and nothing is changed.
	SettleDeliveries(ctx context.Context, sink string, term, cursor int64, done []Delivery) error
	// DeliveredAfter lists the events above an id that have a delivery, at most
	// limit, lowest first.
	DeliveredAfter(ctx context.Context, sink string, after int64, limit int) ([]int64, error)
	// OpenKeys lists those of the keys that have a delivery which is not settled.
	OpenKeys(ctx context.Context, sink string, keys []string) ([]string, error)
	// DeliveriesDue lists at most limit retrying deliveries whose next try is not
	// later than by, earliest first, with their bodies.
	DeliveriesDue(ctx context.Context, sink string, by time.Time, limit int) ([]Delivery, error)
	// HastenDeliveries makes every retrying delivery due now that was tried first
	// at or after a time; every one if it is zero.
	HastenDeliveries(ctx context.Context, sink string, since time.Time) error
	// SweepDeliveries deletes at most limit settled deliveries of events below an
	// id, and returns how many.
	SweepDeliveries(ctx context.Context, sink string, below int64, limit int) (int, error)

	// Deliveries lists by event, oldest first unless asked otherwise, without
	// bodies.
	Deliveries(ctx context.Context, filter DeliveryFilter) ([]Delivery, error)
	// RetryDelivery makes a failed or retrying delivery due now, with fresh
	// attempts. Any other state is wrong_state. RetryDeliveries does so with all of
	// these of the sink, and returns how many. It takes a transaction for each
	// part of them, and may be repeated after an error.
	RetryDelivery(ctx context.Context, sink string, event int64, actor Actor) (Delivery, error)
	RetryDeliveries(ctx context.Context, sink string, actor Actor) (int, error)
	// SkipDelivery gives up a failed or retrying delivery, so that the next one
	// of its key becomes due. Any other state is wrong_state. For a retrying one,
	// which may be under way, a new term begins.
	SkipDelivery(ctx context.Context, sink string, event int64, actor Actor) (Delivery, error)
	// SkipDeliveries gives up all failed deliveries of the sink, and returns how
	// many, in parts as RetryDeliveries.
	SkipDeliveries(ctx context.Context, sink string, actor Actor) (int, error)
	// ReplaySink sets the cursor back to after, if it is beyond it, forgets the
	// deliveries of later events, and begins a new term.
	ReplaySink(ctx context.Context, sink string, after int64, actor Actor) (SinkState, error)
	// ForgetSink deletes a sink with all its deliveries, and returns how many
	// (not_found). It takes a transaction for each part of them, the last one for
	// the sink itself, and may be repeated after an error.
	ForgetSink(ctx context.Context, sink string, actor Actor) (int, error)
}

// DeliveryState is where a delivery stands.
type DeliveryState uint8

// The states of a delivery, with the numbers that the store keeps.
const (
	DeliveryRetrying  DeliveryState = 1 // it was tried, or is next in its line
	DeliveryWaiting   DeliveryState = 2 // an earlier one of its key is open
	DeliveryFailed    DeliveryState = 3 // its tries are used up
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

// Open reports whether the delivery still holds up later ones of its key.
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

// Delivery is one event at one sink.
type Delivery struct {
	Sink      string
	EventID   int64
	Key       string
	Kind      seckill.EventKind
	MessageID string
	EventAt   time.Time
	State     DeliveryState
	Attempts  int
	Status    string // of the last try, such as "204"; "" without an answer
	Latency   time.Duration
	Error     string    // of the last try
	FirstAt   time.Time // the first try; zero before it
	LastAt    time.Time // the last try; before the first, when it began to wait
	NextAt    time.Time // of a retrying one
	// Body is the message, kept while the delivery is open.
	Body []byte
	// Kept says that it came from the store, and so may have others behind it.
	Kept bool
}

// DeliveryFilter narrows Deliveries; zero fields but Sink do not narrow.
type DeliveryFilter struct {
	Sink  string
	State DeliveryState
	Key   string
	// MessageID is the id that the receiver sees.
	MessageID string
	After     int64 // page: only events above this one
	Before    int64 // page: only events below this one; 0 for all
	Newest    bool  // newest first, instead of oldest
	Limit     int
}

// SinkState is how far a sink has come.
type SinkState struct {
	Name   string
	Cursor int64 // the last event that was taken from the feed
	Term   int64
	// Count has the deliveries by state; settled ones only from SinkStates.
	Count map[DeliveryState]int64
	// NextAt is the earliest next try; OldestAt the time of the oldest event that
	// is open. Zero if there is none.
	NextAt, OldestAt time.Time
	// LastError is that of the open delivery that was tried last.
	LastError   string
	LastErrorAt time.Time
	CreatedAt   time.Time
	DownAt      time.Time // since when it is down; zero if it is not
	RetriedAt   time.Time // when an operator last made deliveries due; zero for never
	At          time.Time // the store's now
}

// Open counts the deliveries that are not settled.
func (s *SinkState) Open() int64 {
	return s.Count[DeliveryRetrying] + s.Count[DeliveryWaiting] + s.Count[DeliveryFailed]
}
