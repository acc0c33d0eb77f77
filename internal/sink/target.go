// Package sink sends the events of the store to the systems around the engine:
// webhooks and brokers.
package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Message is one event on its way out. All targets get the same body.
type Message struct {
	// ID is unique among all events of a store, also after an older copy of the
	// store was restored. A repeated delivery has the same ID.
	ID string
	// Key is the order number, or "product:ID" for an event of a sale. Messages
	// of one key are delivered in their order.
	Key  string
	Type string // such as "seckill.order.paid"
	Time time.Time
	Body []byte // CloudEvents 1.0, structured JSON
}

// Target is where a sink delivers to. Methods are safe for concurrent use and
// return within their context's deadline.
type Target interface {
	// Deliver returns nil when the receiver has the message for good: the HTTP
	// server has answered 2xx, or the broker has stored it. After an error the
	// receiver may have it or not. Status is a short word for the delivery log,
	// such as "204" or "stored", also beside an error where there was an answer.
	Deliver(ctx context.Context, m *Message) (status string, err error)
	// Close fails what is not stored yet.
	Close(ctx context.Context) error
}

// deliver makes one try, within a time.
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

// noAnswer is the error of a try that took too long.
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

// reason is what a target knows beside the end of the time: of several errors
// that one wraps, the first that is not about time. nil if there is none.
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

// Later is the error of a receiver that asks for a pause.
type Later struct {
	After time.Duration // at least this long; the sender bounds it
	Err   error
}

func (l *Later) Error() string { return l.Err.Error() }
func (l *Later) Unwrap() error { return l.Err }

// Answered is the error of a receiver that answered with a failure. It may be
// about this one message, so many of them have to come in a row until the sink
// counts as down. Of other errors, which are no answer, a few are enough.
type Answered struct{ Err error }

func (a *Answered) Error() string { return a.Err.Error() }
func (a *Answered) Unwrap() error { return a.Err }

// Rejected is the error of a receiver that works, and refuses this one message.
// It never counts towards the sink being down.
type Rejected struct{ Err error }

func (r *Rejected) Error() string { return r.Err.Error() }
func (r *Rejected) Unwrap() error { return r.Err }
