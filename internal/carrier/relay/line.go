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

// Outbox is what a line needs of the outbox.
type Outbox interface {
	Consumer(ctx context.Context, name string) (queue.Consumer, error)
	Relay(ctx context.Context, name string) (queue.Consumer, error)
}

// Pinger tells whether orders can be written.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Meter counts what happens on a line.
type Meter interface {
	// Published counts messages and claims that the broker has stored; again
	// says that they were published before.
	Published(messages, claims int, again bool)
	// Rejected counts messages that were settled unread: forged, foreign or
	// poison.
	Rejected(why string)
	// Stray counts copies whose entries did not wait in the outbox.
	Stray(entries int)
	// Holds tells how many claims the relay holds.
	Holds(claims int)
	// Bypassed tells that workers read the outbox directly, and why, or that they
	// no longer do (nil).
	Bypassed(cause error)
}

// Options are a line's parts and settings.
type Options struct {
	Name   string // of the relay among the consumers of the outbox
	Outbox Outbox
	// Open connects to the broker. It is called again until it succeeds; until
	// then workers read the outbox.
	Open   func(ctx context.Context) (carrier.Carrier, error)
	Codec  *carrier.Codec
	Store  Pinger
	Meter  Meter
	Logger *slog.Logger
	Timing Timing // zero fields have their defaults
}

// Timing is when a line acts.
type Timing struct {
	// PublishWithin bounds a publish, its retries included. Beyond it the broker
	// is unwell.
	PublishWithin time.Duration
	// RepublishAfter is when an unacknowledged entry is published again; each
	// further time takes twice as long.
	RepublishAfter time.Duration
	// UnwellAfter is the age of the oldest published entry at which the broker is
	// unwell: the store works, and younger entries pass it or none does.
	UnwellAfter time.Duration
	// CheckEvery is how often the relay asks which of its entries still wait.
	CheckEvery time.Duration
	// PingEvery is how often the relay asks for the broker's health while it
	// publishes nothing. A broker that does not answer for PublishWithin is unwell.
	PingEvery time.Duration
	// BypassLeast is how long workers read the outbox at least. It doubles when
	// the broker is unwell again soon.
	BypassLeast time.Duration
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
	fill(&t.BypassLeast, 15*time.Second)
	return t
}

// arrivalsMost bounds the messages that wait for a worker of this process.
const arrivalsMost = 64

// Line is one process's connection between outbox, broker and workers.
type Line struct {
	opt        Options
	complaints *alert.ThrottledLog // about the outbox and what brokers bring
	arrivals   chan *parcel

	// calls is the context of calls that settle messages, for all workers. It ends
	// background.Call after a stop. Closing the carrier gives back what is not settled.
	calls    context.Context
	endCalls context.CancelFunc

	mu       sync.Mutex
	carrier  carrier.Carrier // nil before it is open
	bypassed bool
	changed  chan struct{} // closed and replaced when bypassed changes
}

// New makes a line. Run it once; workers join by Consumer.
func New(opt Options) *Line {
	opt.Timing = opt.Timing.filled()
	l := &Line{
		opt: opt, complaints: alert.NewThrottledLog(opt.Logger, time.Now), bypassed: true, arrivals: make(chan *parcel, arrivalsMost),
		changed: make(chan struct{}),
	}
	l.calls, l.endCalls = context.WithCancel(context.Background())
	return l
}

// Run relays and receives until ctx ends, and then hands back what the relay
// holds. Close comes after the workers have ended.
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

// broker is the open carrier. Whoever has a message of it may ask for it.
func (l *Line) broker() carrier.Carrier {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.carrier
}

// Close gives unsettled messages back to the broker, and leaves it.
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

// mode is whether workers read the outbox directly, and a channel that closes
// when that changes.
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
