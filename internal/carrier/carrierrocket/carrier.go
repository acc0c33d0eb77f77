// Package carrierrocket carries outbox entries over a RocketMQ topic, and
// messages that are due at a time over another one.
//
// One consumer per topic and process polls the brokers while somebody waits in
// Receive. A process that only publishes polls nothing.
//
// A group that receives for the first time begins with the oldest message, if
// the broker still has the topic's first messages, and in memory. Otherwise it
// begins with the newest, whatever the group's settings say. An operator who
// adds a group to a topic that is older than the broker's retention first runs
// "mqadmin resetOffsetByTime -g GROUP -t TOPIC -s 0".
package carrierrocket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"seckill/internal/carrier"
	"seckill/internal/client/rocketclient"
)

const (
	// maxBytes is a quarter of what brokers take by default, and eight times what the
	// relay packs into a message.
	maxBytes = 1 << 20
	// DefaultInvisible is when a message comes again whose receiver died.
	DefaultInvisible = 60 * time.Second
	// maxSends bounds the messages on the way to the broker. The proxy takes one
	// in each request.
	maxSends = 32
)

// Options say which topic carries the entries.
type Options struct {
	Link  rocketclient.Options
	Topic string // of type NORMAL, or DELAY if Delayed
	Group string
	// Delayed is for messages that are due at a time.
	Delayed bool
	// Invisible is how long a receiver has for a message before it comes again; 0
	// is DefaultInvisible. Proxies take 10 s at least.
	Invisible time.Duration
	Logger    *slog.Logger
}

// Carrier implements carrier.Carrier, and carrier.Delayer if it is Delayed.
type Carrier struct {
	producer *rocketclient.Client
	room     *semaphore.Weighted
	*receiver
}

var (
	_ carrier.Carrier = (*Carrier)(nil)
	_ carrier.Delayer = (*Carrier)(nil)
)

// Open checks that the topic exists and has the right type, and that the group
// exists. It waits for a proxy no longer than the context lives.
func Open(ctx context.Context, opt Options) (*Carrier, error) {
	if opt.Invisible == 0 {
		opt.Invisible = DefaultInvisible
	}
	kind := rocketclient.Normal
	if opt.Delayed {
		kind = rocketclient.Delay
	}
	role := rocketclient.Role{Topic: opt.Topic, Types: []rocketclient.Type{kind}}
	producer := rocketclient.New(opt.Link, role, opt.Logger)
	role.Group = opt.Group
	c := &Carrier{producer, semaphore.NewWeighted(maxSends), newReceiver(opt, rocketclient.New(opt.Link, role, opt.Logger))}
	err := producer.Check(ctx)
	if err == nil {
		err = c.consumer.CheckGroup(ctx, opt.Invisible)
	}
	if err != nil {
		_ = c.Close(ctx) // the first error is the one to report
		return nil, portError(err)
	}
	return c, nil
}

// Publish returns nil when the broker has stored all messages. It sends some at
// a time, so that messages of one key may be stored in another order.
func (c *Carrier) Publish(ctx context.Context, messages []carrier.Message) error {
	return c.publish(ctx, messages, time.Time{})
}

// PublishAt has the broker deliver a message at a time, which it keeps to about
// a second. A message that is due already is delivered at once.
func (c *Carrier) PublishAt(ctx context.Context, m carrier.Message, due time.Time) error {
	return c.publish(ctx, []carrier.Message{m}, due)
}

func (c *Carrier) publish(ctx context.Context, messages []carrier.Message, due time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range messages {
		if len(messages[i].Body) > maxBytes {
			return carrier.ErrTooLarge
		}
	}
	group, sending := errgroup.WithContext(ctx) // ends with the first error
	for i := range messages {
		if c.room.Acquire(sending, 1) != nil {
			break
		}
		group.Go(func() error {
			defer c.room.Release(1)
			m := &messages[i]
			return portError(c.producer.Send(sending, &rocketclient.Message{
				Key: m.Key, Body: m.Body, Properties: map[string]string{carrier.SignatureHeader: m.Signature}, Due: due,
			}))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err() // some were not sent if it has ended
}

// MaxBytes does not follow the proxy's limit.
func (c *Carrier) MaxBytes() int { return maxBytes }

// Ping reports whether a proxy answers and has the topic.
func (c *Carrier) Ping(ctx context.Context) error { return portError(c.producer.Ping(ctx)) }

// Close gives back what is not settled.
func (c *Carrier) Close(ctx context.Context) error {
	return errors.Join(c.receiver.close(ctx), c.producer.Close(ctx))
}

// portError translates errors of the link into those of the port.
func portError(err error) error {
	switch {
	case errors.Is(err, rocketclient.ErrSetup):
		return fmt.Errorf("%w: %w", carrier.ErrSetup, err)
	case errors.Is(err, rocketclient.ErrTooLarge):
		// It is within MaxBytes, and others of its batch may be stored.
		return fmt.Errorf("%w: the broker has to take messages of %d bytes: %w", carrier.ErrSetup, maxBytes, err)
	}
	return err
}
