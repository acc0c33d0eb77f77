// Package carrierpulsar carries outbox entries and delayed messages over Pulsar
// topics.
//
// One subscription per process feeds all callers of Receive. It begins with the
// first Receive: a process that only publishes gets no messages.
package carrierpulsar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/pulsarlink"
)

// Options say which topic carries the messages.
type Options struct {
	Link   pulsarlink.Options
	Topic  string // one of public/default, or TENANT/NAMESPACE/TOPIC
	Group  string // the subscription
	Logger *slog.Logger
}

// Carrier implements carrier.Carrier.
type Carrier struct{ line }

// Delayer implements carrier.Delayer.
type Delayer struct{ line }

var (
	_ carrier.Carrier = (*Carrier)(nil)
	_ carrier.Delayer = (*Delayer)(nil)
)

// Open checks the topic and makes the subscription, from the earliest message
// on. It waits for the broker no longer than the context lives.
func Open(ctx context.Context, opt Options) (*Carrier, error) {
	l, err := openLine(ctx, opt)
	if err != nil {
		return nil, err
	}
	return &Carrier{l}, nil
}

// OpenDelayer is Open for delayed messages. They need a topic of their own.
func OpenDelayer(ctx context.Context, opt Options) (*Delayer, error) {
	l, err := openLine(ctx, opt)
	if err != nil {
		return nil, err
	}
	return &Delayer{l}, nil
}

// line is a topic with its receiver.
type line struct {
	client   *pulsarlink.Client
	topic    *pulsarlink.Topic
	receiver *receiver
}

func openLine(ctx context.Context, opt Options) (line, error) {
	client, err := opt.Link.NewClient(opt.Logger)
	if err != nil {
		return line{}, setup(err)
	}
	l := line{client: client}
	if l.topic, err = client.OpenTopic(ctx, opt.Topic); err == nil {
		l.receiver = newReceiver(opt, l.topic)
		err = l.receiver.check(ctx)
	}
	if err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusedTimeout)
		defer cancel()
		if l.topic != nil {
			_ = l.topic.Close(closing) // the first error is the one to report
		}
		_ = client.Close(closing)
		return line{}, setup(err)
	}
	l.receiver.start()
	return l, nil
}

// refusedTimeout bounds the end of a line that cannot be opened.
const refusedTimeout = time.Second

// setup marks errors that an operator has to mend.
func setup(err error) error {
	if pulsarlink.IsSetup(err) {
		return fmt.Errorf("%w: %w", carrier.ErrSetup, err)
	}
	return err
}

// Publish returns nil when the broker has stored the messages. After an error
// they may still arrive some seconds later.
func (c *Carrier) Publish(ctx context.Context, messages []carrier.Message) error {
	return c.publish(ctx, messages, time.Time{})
}

// MaxDelay is 0: Pulsar has no bound.
func (d *Delayer) MaxDelay() time.Duration { return 0 }

// PublishAt returns nil when the broker has stored the message. Pulsar delivers
// it up to a second early, by its default, or late.
func (d *Delayer) PublishAt(ctx context.Context, m carrier.Message, due time.Time) error {
	if !due.After(time.Now()) {
		due = time.Time{}
	}
	return d.publish(ctx, []carrier.Message{m}, due)
}

func (l *line) publish(ctx context.Context, messages []carrier.Message, due time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all := make([]pulsarlink.Outgoing, len(messages))
	for i := range messages {
		m := &messages[i]
		all[i] = pulsarlink.Outgoing{
			Key: m.Key, Body: m.Body, DeliverAt: due,
			Properties: []pulsarlink.Property{{Name: carrier.SignatureHeader, Value: m.Signature}},
		}
	}
	err := l.topic.Write(ctx, all)
	if errors.Is(err, pulsarlink.ErrTooLarge) {
		return carrier.ErrTooLarge
	}
	return err
}

// MaxBytes follows the broker's maxMessageSize.
func (l *line) MaxBytes() int { return l.topic.MaxBytes() }

// Receive waits for messages. While the broker is away it waits as well, until
// its context ends.
func (l *line) Receive(ctx context.Context, most int) ([]carrier.Delivery, error) {
	return l.receiver.receive(ctx, most)
}

// Done returns nil when the broker has taken the acknowledgements. The broker
// writes them down about once a second: if it crashes, those of the last second
// may come again. Deliveries of an earlier subscription are ignored.
func (l *line) Done(ctx context.Context, deliveries []carrier.Delivery) error {
	return l.receiver.settle(ctx, deliveries)
}

// Again has the broker deliver the messages again after some seconds. Other
// messages pass them meanwhile. If the process dies, they come at once.
func (l *line) Again(_ context.Context, deliveries []carrier.Delivery) error {
	l.receiver.again(deliveries)
	return nil
}

// Lag is -1: Pulsar's protocol does not tell it, only its admin API does.
func (c *Carrier) Lag(context.Context) (int64, error) { return -1, nil }

// Ping reports whether the broker answers and has the topic, or would create it.
func (l *line) Ping(ctx context.Context) error { return l.topic.Ping(ctx) }

// Close gives back what is not settled, and ends the connections.
func (l *line) Close(ctx context.Context) error {
	return errors.Join(l.receiver.close(ctx), l.topic.Close(ctx), l.client.Close(ctx))
}
