// Package carrierrocket carries outbox entries over a RocketMQ topic, and
// delayed messages over another one.
//
// One consumer per topic and process polls the brokers while a caller waits in
// Receive. A process that only publishes polls nothing.
//
// A new group starts with the oldest message only if the broker still has the
// topic's first messages in memory. Otherwise it starts with the newest one,
// whatever the settings of the group. If the topic is older than the broker's
// retention, the operator first runs "mqadmin resetOffsetByTime -g GROUP -t
// TOPIC -s 0".
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
	// maxBytes is a quarter of the brokers' default limit, and eight times the
	// relay's largest message.
	maxBytes = 1 << 20
	// DefaultInvisible is the time after which a message comes again whose
	// receiver died.
	DefaultInvisible = 60 * time.Second
	// maxSends bounds the concurrent sends. The proxy accepts one message per
	// request.
	maxSends = 32
)

// Options name the topic, the group and the connection.
type Options struct {
	Link  rocketclient.Options
	Topic string // of type NORMAL, or DELAY if Delayed
	Group string
	// Delayed makes a carrier of delayed messages.
	Delayed bool
	// Invisible is the time that a receiver has for a message before it comes
	// again; 0 means DefaultInvisible. Proxies require at least 10 s.
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

// Open checks that the topic exists with the right type, and that the group
// exists. It waits for a proxy until the context ends.
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

// Publish returns nil when the broker has stored all messages. It sends several
// at a time, so messages of one key may be stored in another order.
func (c *Carrier) Publish(ctx context.Context, messages []carrier.Message) error {
	return c.publish(ctx, messages, time.Time{})
}

// PublishAt makes the broker deliver a message at a time, accurate to about a
// second. A message that is already due is delivered at once.
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
	group, sending := errgroup.WithContext(ctx) // the first error cancels the others
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
	return ctx.Err() // if it has ended, some were not sent
}

// MaxBytes is fixed: it ignores the limit of the proxy.
func (c *Carrier) MaxBytes() int { return maxBytes }

// Ping reports whether a proxy answers and has the topic.
func (c *Carrier) Ping(ctx context.Context) error { return portError(c.producer.Ping(ctx)) }

// Close gives unsettled messages back, and disconnects.
func (c *Carrier) Close(ctx context.Context) error {
	return errors.Join(c.receiver.close(ctx), c.producer.Close(ctx))
}

// portError translates errors of the client into those of the port.
func portError(err error) error {
	switch {
	case errors.Is(err, rocketclient.ErrSetup):
		return fmt.Errorf("%w: %w", carrier.ErrSetup, err)
	case errors.Is(err, rocketclient.ErrTooLarge):
		// The message is within MaxBytes, and others of its batch may be
		// stored.
		return fmt.Errorf("%w: the broker has to take messages of %d bytes: %w", carrier.ErrSetup, maxBytes, err)
	}
	return err
}
