// Package carrierkafka carries outbox entries over a Kafka topic.
//
// One client per process joins the consumer group and feeds all callers of
// Receive. It joins with the first Receive, so a process that only publishes
// owns no partitions.
//
//   - carrier.go: the port; consumer.go: one membership of the group
//   - partition.go: settled messages of a partition; commit.go: commits of offsets
//   - compressed.go: refusal of compressed batches
package carrierkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/client/kafkaclient"
)

var errClosed = errors.New("kafka: the carrier is closed")

// Options name the topic, the group and the connection.
type Options struct {
	Link  kafkaclient.Options
	Topic string
	Group string
	// Create creates a missing topic with Partitions and Replicas.
	Create               bool
	Partitions, Replicas int
	Logger               *slog.Logger
}

// Carrier implements carrier.Carrier.
type Carrier struct {
	opt   Options
	topic *kafkaclient.Topic

	mu       sync.Mutex
	consumer *consumer // nil until the first Receive
	isClosed bool

	closed chan struct{}
	tasks  sync.WaitGroup
}

var _ carrier.Carrier = (*Carrier)(nil)

// Open checks the topic, its partitions and the permissions on the group. It
// waits for the broker until the context ends.
func Open(ctx context.Context, opt Options) (*Carrier, error) {
	topic, err := kafkaclient.OpenTopic(ctx, opt.Link, kafkaclient.TopicOptions{
		Name: opt.Topic, Create: opt.Create, Partitions: opt.Partitions, Replicas: opt.Replicas, NoCompression: true,
		IfLost: "the outbox has them, they are published again",
	}, opt.Logger)
	if err != nil {
		return nil, setup(err)
	}
	c := &Carrier{opt: opt, topic: topic, closed: make(chan struct{})}
	if err := c.checkGroup(ctx); err != nil {
		_ = topic.Close(ctx) // the first error is the one to report
		return nil, setup(err)
	}
	return c, nil
}

// checkGroup returns an error if the user has no permission on the group. It
// ignores other errors, which may be an outage.
func (c *Carrier) checkGroup(ctx context.Context) error {
	_, err := c.topic.Committed(ctx, c.opt.Group)
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return err
	}
	return nil
}

// setup marks an error that waiting does not fix.
func setup(err error) error {
	if kafkaclient.Permanent(err) {
		return fmt.Errorf("%w: %w", carrier.ErrSetup, err)
	}
	return err
}

// Publish returns nil when the broker and all in-sync replicas have stored the
// messages. After an error they may still arrive some seconds later.
func (c *Carrier) Publish(ctx context.Context, messages []carrier.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	records := make([]*kgo.Record, len(messages))
	for i := range messages {
		m := &messages[i]
		records[i] = &kgo.Record{
			Key: []byte(m.Key), Value: m.Body,
			Headers: []kgo.RecordHeader{{Key: carrier.SignatureHeader, Value: []byte(m.Signature)}},
		}
	}
	err := c.topic.Write(ctx, records)
	if errors.Is(err, kafkaclient.ErrTooLarge) {
		return carrier.ErrTooLarge
	}
	return err
}

// MaxBytes returns the topic's max.message.bytes.
func (c *Carrier) MaxBytes() int { return c.topic.MaxBytes() }

// Receive waits for messages until its context ends, also while the broker is
// away.
func (c *Carrier) Receive(ctx context.Context, most int) ([]carrier.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from, err := c.join()
		if err != nil {
			return nil, err
		}
		got, changed, ended := from.take(most)
		switch {
		case len(got) > 0:
			return got, nil
		case ended:
			c.retire(from)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-c.closed:
		}
	}
}

// join returns the consumer, and makes one if there is none.
func (c *Carrier) join() (*consumer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		return nil, errClosed
	}
	if c.consumer == nil {
		made, err := newConsumer(c.opt.Link, c.topic, c.opt.Group, c.opt.Logger)
		if err != nil {
			return nil, err
		}
		c.consumer = made
	}
	return c.consumer, nil
}

// retire makes a consumer leave the group, if it is still the present one. The
// next Receive makes another.
func (c *Carrier) retire(old *consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.consumer != old || c.isClosed {
		return
	}
	c.consumer = nil
	c.tasks.Go(func() {
		if err := old.leave(context.Background()); err != nil { // it has its own timeout
			c.opt.Logger.Debug("kafka: leave the group", "topic", c.opt.Topic, "error", err)
		}
	})
}

// present returns the consumer, or nil.
func (c *Carrier) present() *consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.consumer
}

// Done settles deliveries and returns at once. The offsets are committed within
// a second, and by Close. After a crash, or an outage of the broker, messages
// that were settled shortly before may come again.
func (c *Carrier) Done(_ context.Context, deliveries []carrier.Delivery) error {
	if now := c.present(); now != nil {
		now.settle(deliveries)
	}
	return nil
}

// Again keeps the deliveries in this process, and Receive returns them after
// some seconds. Other messages of their partitions do not wait. If the process
// dies or leaves the group, another member gets them.
func (c *Carrier) Again(_ context.Context, deliveries []carrier.Delivery) error {
	if now := c.present(); now != nil {
		now.again(deliveries)
	}
	return nil
}

// Ping reports whether the broker answers and all partitions have a leader.
func (c *Carrier) Ping(ctx context.Context) error { return c.topic.Ping(ctx) }

// Close commits settled messages, and leaves the group.
func (c *Carrier) Close(ctx context.Context) error {
	c.mu.Lock()
	first, last := !c.isClosed, c.consumer
	c.isClosed = true
	c.mu.Unlock()
	if !first {
		return nil
	}
	close(c.closed)
	var errs []error
	if last != nil {
		errs = append(errs, last.leave(ctx))
	}
	errs = append(errs, background.WaitWithin(ctx, c.tasks.Wait))
	return errors.Join(append(errs, c.topic.Close(ctx))...)
}
