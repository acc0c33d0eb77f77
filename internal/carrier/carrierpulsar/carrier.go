// Package carrierpulsar carries outbox entries and delayed messages over Pulsar
// topics.
//
// One subscription per process feeds all callers of Receive. It starts with the
// first Receive, so a process that only publishes gets no messages.
package carrierpulsar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/client/pulsarclient"
)

// Options name the topic, the subscription and the connection.
type Options struct {
	Link   pulsarclient.Options
	Topic  string // of public/default
	Group  string // the subscription
	Logger *slog.Logger
}

// Carrier implements carrier.Carrier and carrier.Delayer. Its subscription
// starts with the first Receive.
type Carrier struct {
	client *pulsarclient.Client
	topic  *pulsarclient.Topic
	group  string
	inbox  *inbox

	mu           sync.Mutex
	subscription *pulsarclient.Subscription // nil before the first Receive
}

var (
	_ carrier.Carrier = (*Carrier)(nil)
	_ carrier.Delayer = (*Carrier)(nil)
)

// Open checks the topic and creates the subscription at the earliest message.
// It waits for the broker until the context ends. Delayed messages need their
// own topic.
func Open(ctx context.Context, opt Options) (*Carrier, error) {
	client := opt.Link.NewClient(opt.Logger)
	c := &Carrier{client: client, group: opt.Group, inbox: newInbox()}
	var err error
	if c.topic, err = client.OpenTopic(ctx, opt.Topic); err == nil {
		// From now on the broker keeps messages for the subscription. If it
		// refuses the subscription, it does so now.
		err = background.Retry(ctx, establishPause, pulsarclient.IsSetup, func() error { return c.topic.Establish(ctx, c.options()) })
	}
	if err == nil {
		return c, nil
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusedTimeout)
	defer cancel()
	if c.topic != nil {
		_ = c.topic.Close(closing) // the first error is the one to report
	}
	_ = client.Close(closing)
	if pulsarclient.IsSetup(err) { // an operator has to fix it
		err = fmt.Errorf("%w: %w", carrier.ErrSetup, err)
	}
	return nil, err
}

const (
	// refusedTimeout bounds closing a carrier that cannot be opened.
	refusedTimeout = time.Second
	// establishPause is the pause between two attempts to create the
	// subscription.
	establishPause = 200 * time.Millisecond
)

func (c *Carrier) options() pulsarclient.SubscriptionOptions {
	return pulsarclient.SubscriptionOptions{Name: c.group, Inbox: c.inbox}
}

// joined returns the subscription. The first call starts it.
func (c *Carrier) joined() *pulsarclient.Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subscription == nil {
		c.subscription = c.topic.Subscribe(c.options())
	}
	return c.subscription
}

// Publish returns nil when the broker has stored the messages. After an error
// they may still arrive some seconds later.
func (c *Carrier) Publish(ctx context.Context, messages []carrier.Message) error {
	return c.publish(ctx, messages, time.Time{})
}

// PublishAt returns nil when the broker has stored the message. By default,
// Pulsar delivers it up to a second early, or late.
func (c *Carrier) PublishAt(ctx context.Context, m carrier.Message, due time.Time) error {
	if !due.After(time.Now()) {
		due = time.Time{}
	}
	return c.publish(ctx, []carrier.Message{m}, due)
}

func (c *Carrier) publish(ctx context.Context, messages []carrier.Message, due time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all := make([]pulsarclient.Outgoing, len(messages))
	for i := range messages {
		m := &messages[i]
		all[i] = pulsarclient.Outgoing{
			Key: m.Key, Body: m.Body, DeliverAt: due,
			Properties: []pulsarclient.Property{{Name: carrier.SignatureHeader, Value: m.Signature}},
		}
	}
	err := c.topic.Write(ctx, all)
	if errors.Is(err, pulsarclient.ErrTooLarge) {
		return carrier.ErrTooLarge
	}
	return err
}

// MaxBytes returns the broker's maxMessageSize.
func (c *Carrier) MaxBytes() int { return c.topic.MaxBytes() }

// Receive waits for messages until its context ends, also while the broker is
// away.
func (c *Carrier) Receive(ctx context.Context, most int) ([]carrier.Delivery, error) {
	s := c.joined()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		got, changed, err := c.inbox.take(most)
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

// Done returns nil when the broker has accepted the acknowledgements. The
// broker writes them to disk about once a second: after a crash, messages of
// the last second may come again. Deliveries from before the topic got other
// partitions are ignored.
func (c *Carrier) Done(ctx context.Context, deliveries []carrier.Delivery) error {
	open := c.inbox.open(deliveries)
	if len(open) == 0 {
		return nil
	}
	s := c.joined()
	if err := s.Acknowledge(ctx, idsOf(open)); err != nil {
		c.inbox.again(open)
		return fmt.Errorf("pulsar: settle: %w", err)
	}
	c.inbox.settle(open)
	s.Refill()
	return nil
}

// Again keeps the deliveries in this process, and Receive returns them after
// some seconds. Other messages do not wait. If the process dies, another one
// gets them at once.
func (c *Carrier) Again(_ context.Context, deliveries []carrier.Delivery) error {
	c.inbox.again(c.inbox.open(deliveries))
	return nil
}

// Ping reports whether the broker answers and has the topic, or would create it.
func (c *Carrier) Ping(ctx context.Context) error { return c.topic.Ping(ctx) }

// Close gives unsettled messages back, and closes the connections.
func (c *Carrier) Close(ctx context.Context) error {
	c.inbox.end()
	c.mu.Lock()
	last := c.subscription
	c.mu.Unlock()
	var left error
	if last != nil {
		left = last.Leave(ctx)
	}
	return errors.Join(left, c.topic.Close(ctx), c.client.Close(ctx))
}
