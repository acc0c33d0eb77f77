// Package sink sends the events of the store to systems around the engine:
// webhooks and brokers.
//
//   - target.go, broker.go, lazy.go: the port; message.go: the CloudEvent
//   - sender.go, round.go, fill.go, attempt.go: the sender of one sink
//   - health.go, schedule.go: when a receiver is down, when a delivery is retried
//   - admin.go: requests of operators; address.go, secret.go: checks of settings
package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Message is one event to deliver. All targets get the same body.
type Message struct {
	// ID is unique among all events of a store, even after an older copy of the
	// store was restored. A repeated delivery has the same ID.
	ID string
	// Key is the order number, or "product:ID" for an event of a sale. Messages
	// of one key are delivered in order.
	Key  string
	Type string // such as "seckill.order.paid"
	Time time.Time
	Body []byte // CloudEvents 1.0, structured JSON
}

// Target is the receiver of a sink. Methods are safe for concurrent use and
// return within their context's deadline.
type Target interface {
	// Deliver returns nil when the receiver has the message durably: the HTTP
	// server has answered 2xx, or the broker has stored it. After an error the
	// receiver may have it or not. Status is a short word for the delivery log,
	// such as "204" or "stored". It may be set beside an error, if there was an
	// answer.
	Deliver(ctx context.Context, m *Message) (status string, err error)
	// Close fails messages that are not stored yet.
	Close(ctx context.Context) error
}

// deliver makes one try with a timeout.
func deliver(ctx context.Context, to Target, m *Message, within time.Duration) (status string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	began := time.Now()
	status, err = to.Deliver(ctx, m)
	took = time.Since(began)
	if errors.Is(err, context.DeadlineExceeded) && took >= within {
		err = &noAnswer{within, err}
	}
	return status, took, err
}

// noAnswer is the error of a try that timed out.
type noAnswer struct {
	within time.Duration
	err    error
}

func (n *noAnswer) Error() string {
	text := fmt.Sprintf("no answer in %g s", n.within.Seconds())
	if why := reason(n.err); why != nil {
		text += ": " + why.Error()
	}
	return text
}

func (n *noAnswer) Unwrap() error { return n.err }

// reason returns the first cause that is not a timeout, or nil if there is
// none.
func reason(err error) error {
	for err != nil {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			all := several.Unwrap()
			at := slices.IndexFunc(all, func(e error) bool { return !errors.Is(e, context.DeadlineExceeded) })
			if at < 0 {
				return nil
			}
			return all[at]
		}
		err = errors.Unwrap(err)
	}
	return nil
}

// Later is the error of a receiver that requests a pause.
type Later struct {
	After time.Duration // at least this long; the sender bounds it
	Err   error
}

func (l *Later) Error() string { return l.Err.Error() }
func (l *Later) Unwrap() error { return l.Err }

// Answered is the error of a receiver that answered with a failure. The failure
// may concern this one message only, so the sink counts as down after many of
// them in a row. For errors without an answer, a few are enough.
type Answered struct{ Err error }

func (a *Answered) Error() string { return a.Err.Error() }
func (a *Answered) Unwrap() error { return a.Err }

// Rejected is the error of a working receiver that refuses this one message. It
// never makes the sink count as down.
type Rejected struct{ Err error }

func (r *Rejected) Error() string { return r.Err.Error() }
func (r *Rejected) Unwrap() error { return r.Err }
