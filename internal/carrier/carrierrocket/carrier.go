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
	"seckill/internal/rocketlink"
)

const (
	// DefaultMaxBytes is a quarter of what brokers take by default.
	DefaultMaxBytes = 1 << 20
	// DefaultInvisible is when a message comes again whose receiver died.
	DefaultInvisible = 60 * time.Second
	// headRoom is more than key, properties and the broker's own fields take
	// beside the body.
	headRoom = 32 << 10
	// maxSends bounds the messages on the way to the broker. The proxy takes one
	// in each request.
	maxSends = 32
)

// Options say which topic carries the entries.
type Options struct {
	Link  rocketlink.Options
	Topic string // of type NORMAL
	Group string
	// MaxBytes is the largest body; 0 is DefaultMaxBytes. Where the proxy says that
	// it takes less, that counts.
	MaxBytes int
	// Invisible is how long a receiver has for a message before it comes again; 0
	// is DefaultInvisible. Proxies take 10 s at least.
	Invisible time.Duration
	Logger    *slog.Logger
}

func (o *Options) fill() {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Invisible == 0 {
		o.Invisible = DefaultInvisible
	}
}

// Carrier implements carrier.Carrier.
type Carrier struct {
	sender
	*receiver
}

var _ carrier.Carrier = (*Carrier)(nil)

// Open checks that the topic exists and has the type NORMAL, and that the group
// exists. It waits for a proxy no longer than the context lives.
func Open(ctx context.Context, opt Options) (*Carrier, error) {
	s, r, err := openBoth(ctx, opt, rocketlink.Normal)
	if err != nil {
		return nil, err
	}
	return &Carrier{s, r}, nil
}

// openBoth opens both halves on a topic of a type.
func openBoth(ctx context.Context, opt Options, kind rocketlink.Type) (sender, *receiver, error) {
	opt.fill()
	s, err := newSender(ctx, opt, kind)
	if err != nil {
		return sender{}, nil, err
	}
	r := newReceiver(opt, kind)
	if err := r.consumer.CheckGroup(ctx, opt.Invisible); err != nil {
		_ = errors.Join(r.close(ctx), s.producer.Close(ctx)) // the first error is the one to report
		return sender{}, nil, portError(err)
	}
	return s, r, nil
}

// Publish returns nil when the broker has stored all messages. It sends some at
// a time, so that messages of one key may be stored in another order.
func (c *Carrier) Publish(ctx context.Context, messages []carrier.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	most := c.MaxBytes()
	for i := range messages {
		if len(messages[i].Body) > most {
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
			return c.send(sending, &messages[i], time.Time{})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err() // some were not sent if it has ended
}

// Ping reports whether a proxy answers and has the topic.
func (c *Carrier) Ping(ctx context.Context) error { return portError(c.producer.Ping(ctx)) }

// Close gives back what is not settled.
func (c *Carrier) Close(ctx context.Context) error {
	return errors.Join(c.receiver.close(ctx), c.producer.Close(ctx))
}

// sender is the half that publishes.
type sender struct {
	producer *rocketlink.Client
	maxBytes int
	room     *semaphore.Weighted
}

func newSender(ctx context.Context, opt Options, kind rocketlink.Type) (sender, error) {
	producer := rocketlink.New(opt.Link, rocketlink.Role{Topic: opt.Topic, Types: []rocketlink.Type{kind}}, opt.Logger)
	if err := producer.Check(ctx); err != nil {
		_ = producer.Close(ctx) // the first error is the one to report
		return sender{}, portError(err)
	}
	return sender{producer, opt.MaxBytes, semaphore.NewWeighted(maxSends)}, nil
}

// MaxBytes is the smaller of the option and the proxy's limit.
func (s *sender) MaxBytes() int {
	if limit := s.producer.MaxBody(); limit > headRoom {
		return min(s.maxBytes, limit-headRoom)
	}
	return s.maxBytes
}

func (s *sender) send(ctx context.Context, m *carrier.Message, due time.Time) error {
	return portError(s.producer.Send(ctx, &rocketlink.Message{
		Key: m.Key, Body: m.Body, Properties: map[string]string{carrier.SignatureHeader: m.Signature}, Due: due,
	}))
}

// portError translates errors of the link into those of the port.
func portError(err error) error {
	switch {
	case errors.Is(err, rocketlink.ErrSetup):
		return fmt.Errorf("%w: %w", carrier.ErrSetup, err)
	case errors.Is(err, rocketlink.ErrTooLarge):
		// It is within MaxBytes, and others of its batch may be stored.
		return fmt.Errorf("%w: lower the largest message size: %w", carrier.ErrSetup, err)
	}
	return err
}
