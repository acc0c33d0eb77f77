package relay

import (
	"context"
	"log/slog"
	"time"

	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/queue"
)

const (
	// maxReceive bounds the messages of one receive.
	maxReceive = 32
	// receiveFor bounds one receive.
	receiveFor = 20 * time.Second
	// receivePause is the wait after a receive that failed.
	receivePause = 500 * time.Millisecond
	// settleWithin bounds a call that settles messages. After a stop less time
	// is left, see Line.calls.
	settleWithin = 5 * time.Second
)

// parcel is a message with its entries. It is settled when all its entries are.
type parcel struct {
	message []carrier.Delivery // none if the entries came without a broker
	entries []queue.Delivery
	left    map[queue.ID]bool
}

func newParcel(entries []queue.Delivery, message ...carrier.Delivery) *parcel {
	p := &parcel{message: message, entries: entries, left: make(map[queue.ID]bool, len(entries))}
	for i := range entries {
		p.left[entries[i].ID] = true
	}
	return p
}

// receive receives messages from the broker until ctx ends. Unacceptable
// messages are settled and counted, so that they block nothing.
func (l *Line) receive(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, receiveFor)
		messages, err := l.broker().Receive(bounded, maxReceive)
		idle := bounded.Err() != nil
		cancel()
		if err != nil && !idle {
			if !failing {
				l.opt.Logger.Warn("receive from the broker failed; it is tried again", "error", err)
			}
			failing = true
			_ = background.Pause(ctx, receivePause) // the loop checks ctx
			continue
		}
		failing = false
		for i := range messages {
			l.accept(ctx, messages[i])
		}
	}
}

// accept passes a message to the workers.
func (l *Line) accept(ctx context.Context, message carrier.Delivery) {
	entries, err := l.opt.Codec.Decode(&message.Message)
	if err != nil {
		l.reject(message, err)
		return
	}
	select {
	case l.arrivals <- newParcel(entries, message):
	case <-ctx.Done(): // closing the carrier gives the message back
	}
}

// reject settles a message that no receiver can accept.
func (l *Line) reject(message carrier.Delivery, cause error) {
	why := carrier.Rejection(cause)
	l.opt.Meter.Rejected(why)
	// Anyone who may write the topic decides how many there are, so the log is
	// throttled.
	l.complaints.Say(slog.LevelWarn, "rejected "+why, "message rejected and settled", "why", why, "key", alert.Clip(message.Key), "bytes", len(message.Body))
	l.done([]carrier.Delivery{message})
}

// done settles messages. If that fails they come again, and the outbox shows
// that they are settled.
func (l *Line) done(messages []carrier.Delivery) {
	if len(messages) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(l.calls, settleWithin)
	defer cancel()
	if err := l.broker().Done(ctx, messages); err != nil {
		l.complaints.Say(slog.LevelWarn, "settle", "messages not settled at the broker; they come again", "messages", len(messages), "error", err)
	}
}

// again gives messages back to the broker.
func (l *Line) again(messages []carrier.Delivery) error {
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(l.calls, settleWithin)
	defer cancel()
	return l.broker().Again(ctx, messages)
}
