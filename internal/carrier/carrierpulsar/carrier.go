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
	"sync"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/grace"
	"seckill/internal/pulsarlink"
)

// Options say which topic carries the messages.
type Options struct {
	Link   pulsarlink.Options
	Topic  string // of public/default
	Group  string // the subscription
	Logger *slog.Logger
}

// Carrier implements carrier.Carrier.
type Carrier struct{ *line }

// Delayer implements carrier.Delayer.
type Delayer struct{ *line }

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

// line is a topic, with a subscription to it from the first Receive on.
type line struct {
	client *pulsarlink.Client
	topic  *pulsarlink.Topic
	group  string
	inbox  *inbox

	mu           sync.Mutex
	subscription *pulsarlink.Subscription // nil before the first Receive
}

func openLine(ctx context.Context, opt Options) (*line, error) {
	client := opt.Link.NewClient(opt.Logger)
	l := &line{client: client, group: opt.Group, inbox: newInbox()}
	var err error
	if l.topic, err = client.OpenTopic(ctx, opt.Topic); err == nil {
		// The broker keeps messages for the subscription from then on, and refuses it
		// now if it ever does.
		err = grace.Retry(ctx, establishPause, pulsarlink.IsSetup, func() error { return l.topic.Establish(ctx, l.options()) })
	}
	if err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusedTimeout)
		defer cancel()
		if l.topic != nil {
			_ = l.topic.Close(closing) // the first error is the one to report
		}
		_ = client.Close(closing)
		return nil, setup(err)
	}
	return l, nil
}

const (
	// refusedTimeout bounds the end of a line that cannot be opened.
	refusedTimeout = time.Second
	// establishPause is the wait between two attempts to make the subscription.
	establishPause = 200 * time.Millisecond
)

func (l *line) options() pulsarlink.SubscriptionOptions {
	return pulsarlink.SubscriptionOptions{Name: l.group, Inbox: l.inbox}
}

// joined is the subscription, which the first call makes.
func (l *line) joined() *pulsarlink.Subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subscription == nil {
		l.subscription = l.topic.Subscribe(l.options())
	}
	return l.subscription
}

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
	s := l.joined()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		got, changed, err := l.inbox.take(most)
		if err != nil || len(got) > 0 {
			s.Refill()
			return got, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Done returns nil when the broker has taken the acknowledgements. The broker
// writes them down about once a second: if it crashes, those of the last second
// may come again. Deliveries from before the topic got other partitions are
// ignored.
func (l *line) Done(ctx context.Context, deliveries []carrier.Delivery) error {
	open := l.inbox.open(deliveries)
	if len(open) == 0 {
		return nil
	}
	s := l.joined()
	if err := s.Acknowledge(ctx, idsOf(open)); err != nil {
		l.inbox.again(open)
		return fmt.Errorf("pulsar: settle: %w", err)
	}
	l.inbox.settle(open)
	s.Refill()
	return nil
}

// Again keeps the deliveries in this process and returns them from Receive after
// some seconds. Other messages pass them meanwhile. If the process dies, they
// come at once, to another.
func (l *line) Again(_ context.Context, deliveries []carrier.Delivery) error {
	l.inbox.again(l.inbox.open(deliveries))
	return nil
}

// Ping reports whether the broker answers and has the topic, or would create it.
func (l *line) Ping(ctx context.Context) error { return l.topic.Ping(ctx) }

// Close gives back what is not settled, and ends the connections.
func (l *line) Close(ctx context.Context) error {
	l.inbox.end()
	l.mu.Lock()
	last := l.subscription
	l.mu.Unlock()
	var left error
	if last != nil {
		left = last.Leave(ctx)
	}
	return errors.Join(left, l.topic.Close(ctx), l.client.Close(ctx))
}
