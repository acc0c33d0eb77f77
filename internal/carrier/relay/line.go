package relay

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/queue"
)

// Outbox is the part of the outbox that a line uses.
type Outbox interface {
	Consumer(ctx context.Context, name string) (queue.Consumer, error)
	Relay(ctx context.Context, name string) (queue.Consumer, error)
}

// Pinger checks whether orders can be written.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Meter counts the events of a line.
type Meter interface {
	// Published counts messages and claims that the broker has stored. again
	// means that they were published before.
	Published(messages, claims int, again bool)
	// Rejected counts messages that were settled unread: forged, foreign or
	// poison.
	Rejected(why string)
	// Stray counts copies whose entries did not wait in the outbox.
	Stray(entries int)
	// Holds sets the number of claims that the relay holds.
	Holds(claims int)
	// Bypassed reports that workers read the outbox directly, and the reason.
	// nil means that they no longer do.
	Bypassed(cause error)
}

// Options are the parts and settings of a line.
type Options struct {
	Name   string // name of the relay among the consumers of the outbox
	Outbox Outbox
	// Open connects to the broker. It is called until it succeeds. Until then
	// workers read the outbox.
	Open   func(ctx context.Context) (carrier.Carrier, error)
	Codec  *carrier.Codec
	Store  Pinger
	Meter  Meter
	Logger *slog.Logger
	Timing Timing // zero fields get their defaults
}

// Timing holds the intervals and timeouts of a line.
type Timing struct {
	// PublishWithin bounds a publish with its retries. After it the broker is
	// unwell.
	PublishWithin time.Duration
	// RepublishAfter is the time after which an unacknowledged entry is
	// published again. It doubles each time.
	RepublishAfter time.Duration
	// UnwellAfter is the age of the oldest published entry at which the broker
	// is unwell, if the store works and either no entry or only younger ones
	// were acknowledged.
	UnwellAfter time.Duration
	// CheckEvery is how often the relay checks which of its entries still wait.
	CheckEvery time.Duration
	// PingEvery is how often the relay pings the broker while it publishes
	// nothing. A broker that does not answer for PublishWithin is unwell.
	PingEvery time.Duration
	// MinBypass is the shortest bypass. It doubles if the broker is unwell
	// again soon.
	MinBypass time.Duration
}

func (t Timing) filled() Timing {
	fill := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	fill(&t.PublishWithin, 5*time.Second)
	fill(&t.RepublishAfter, 10*time.Second)
	fill(&t.UnwellAfter, 20*time.Second)
	fill(&t.CheckEvery, 500*time.Millisecond)
	fill(&t.PingEvery, 3*time.Second)
	fill(&t.MinBypass, 15*time.Second)
	return t
}

// maxArrivals bounds the messages that wait for a worker of this process.
const maxArrivals = 64

// Line connects the outbox, the broker and the workers of one process.
type Line struct {
	opt        Options
	complaints *alert.ThrottledLog // about the outbox, and about received messages
	arrivals   chan *parcel

	// calls is the context of the calls that settle messages, for all workers.
	// It ends background.GraceTime after a stop. Closing the carrier gives
	// unsettled messages back.
	calls    context.Context
	endCalls context.CancelFunc

	mu       sync.Mutex
	carrier  carrier.Carrier // nil until it is open
	bypassed bool
	changed  chan struct{} // closed and replaced when bypassed changes
}

// New makes a line. Run it once. Workers join with Consumer.
func New(opt Options) *Line {
	opt.Timing = opt.Timing.filled()
	l := &Line{
		opt: opt, complaints: alert.NewThrottledLog(opt.Logger, time.Now), bypassed: true, arrivals: make(chan *parcel, maxArrivals),
		changed: make(chan struct{}),
	}
	l.calls, l.endCalls = context.WithCancel(context.Background())
	return l
}

// Run relays and receives until ctx ends. Then it hands back the entries of the
// relay. Call Close after the workers have ended.
func (l *Line) Run(ctx context.Context) {
	context.AfterFunc(ctx, func() { time.AfterFunc(background.GraceTime, l.endCalls) })
	opened, ok := background.Reach(ctx, l.opt.Open, func(err error) {
		l.opt.Logger.Warn("broker not reached; workers read the outbox", "error", err)
		l.bypass(err)
	})
	if !ok {
		return
	}
	l.mu.Lock()
	l.carrier = opened
	l.mu.Unlock()
	l.bypass(nil)
	var running sync.WaitGroup
	running.Go(func() { l.receive(ctx) })
	running.Go(func() { newRelay(l).run(ctx) })
	running.Wait()
}

// broker returns the carrier. It is open if a message was received from it.
func (l *Line) broker() carrier.Carrier {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.carrier
}

// Close gives unsettled messages back to the broker, and disconnects.
func (l *Line) Close(ctx context.Context) error {
	if c := l.broker(); c != nil {
		return c.Close(ctx)
	}
	return nil
}

// Bypassed reports whether workers read the outbox directly.
func (l *Line) Bypassed() bool {
	bypassed, _ := l.mode()
	return bypassed
}

// mode reports whether workers read the outbox directly, and returns a channel
// that closes when that changes.
func (l *Line) mode() (bypassed bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bypassed, l.changed
}

func (l *Line) bypass(cause error) {
	l.mu.Lock()
	if now := cause != nil; now != l.bypassed {
		l.bypassed = now
		close(l.changed)
		l.changed = make(chan struct{})
	}
	l.mu.Unlock()
	l.opt.Meter.Bypassed(cause)
}
