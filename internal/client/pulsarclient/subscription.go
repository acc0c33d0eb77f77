package pulsarclient

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// maxAck bounds the messages of one acknowledgement, so that it fits into a
	// command.
	maxAck = 1000
	// maxPermits bounds the messages on the way from all partitions together.
	// minPermits is the minimum for each.
	maxPermits = 256
	minPermits = 4
	// leaveTimeout bounds closing a consumer.
	leaveTimeout = 2 * time.Second
)

// Inbox accepts messages. The goroutine that reads the connection calls its
// methods, so they must not block.
type Inbox interface {
	// Take returns false if there is no room. Then all unacknowledged messages
	// of the partition come again.
	Take(m *Message) bool
	// HasRoom reports whether more messages may come.
	HasRoom() bool
	// Reset forgets all messages, because the topic has other partitions now.
	// They come again from those.
	Reset()
}

// SubscriptionOptions are the name and the inbox of a subscription.
type SubscriptionOptions struct {
	Name  string
	Inbox Inbox
}

// Subscription has a consumer on each partition of a topic, and replaces it
// after its end.
//
// Then unacknowledged messages come again, and the inbox has to recognise them.
type Subscription struct {
	opt   SubscriptionOptions
	topic *Topic

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex
	parts []*part // of the present partitions
}

// part is a subscription to one partition.
type part struct {
	of      *Subscription
	index   int
	name    string
	permits int // permits of a consumer
	slot[*consumer]
}

// Establish creates the subscription on each partition, or fails. From then on
// the broker keeps messages for it.
func (t *Topic) Establish(ctx context.Context, opt SubscriptionOptions) error {
	s := &Subscription{opt: opt, topic: t}
	var group errgroup.Group
	for _, p := range s.newParts(t.present().partitions) {
		group.Go(func() error {
			c, err := openConsumer(ctx, p)
			if err == nil {
				_ = c.leave()
			}
			return err
		})
	}
	return group.Wait()
}

// Subscribe starts to receive.
func (t *Topic) Subscribe(opt SubscriptionOptions) *Subscription {
	s := &Subscription{opt: opt, topic: t}
	s.ctx, s.cancel = context.WithCancel(t.ctx)
	s.tasks.Go(func() {
		for s.ctx.Err() == nil {
			s.receive(t.present())
			opt.Inbox.Reset()
		}
	})
	return s
}

func (s *Subscription) newParts(partitions []string) []*part {
	parts := make([]*part, len(partitions))
	for i, name := range partitions {
		parts[i] = &part{of: s, index: i, name: name, permits: max(maxPermits/len(partitions), minPermits)}
	}
	return parts
}

// receive keeps consumers until the topic has other partitions.
func (s *Subscription) receive(layout *writer) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(layout.ctx, cancel)()
	parts := s.newParts(layout.partitions)
	s.mu.Lock()
	s.parts = parts
	s.mu.Unlock()
	var keeping sync.WaitGroup
	for _, p := range parts {
		keeping.Go(func() {
			p.keep(ctx, nil, func(ctx context.Context) (c *consumer, err error) {
				if err = s.topic.isLaidOut(ctx, layout.partitions); err == nil {
					c, err = openConsumer(ctx, p)
				}
				if err != nil {
					s.topic.client.log.Debug("pulsar: open a consumer", "topic", p.name, "error", err)
				}
				return c, err
			})
		})
	}
	keeping.Wait()
}

func (s *Subscription) present() []*part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts
}

// Refill lets more messages come, if the inbox has room.
func (s *Subscription) Refill() {
	if !s.opt.Inbox.HasRoom() {
		return
	}
	for _, p := range s.present() {
		if c := p.get(); c != nil {
			c.refill()
		}
	}
}

// Acknowledge returns nil when the broker has accepted the acknowledgements.
// After an error the messages may come again. It waits while there is no
// connection.
func (s *Subscription) Acknowledge(ctx context.Context, ids []MessageID) error {
	var group errgroup.Group
	for _, p := range s.present() {
		for some := range slices.Chunk(p.own(ids), maxAck) {
			group.Go(func() error {
				c, err := p.await(ctx, s.ctx.Done())
				if err != nil {
					return err
				}
				return c.acknowledge(ctx, some)
			})
		}
	}
	return group.Wait()
}

// own returns the ids of this partition.
func (p *part) own(ids []MessageID) []MessageID {
	var own []MessageID
	for _, id := range ids {
		if id.Partition == p.index {
			own = append(own, id)
		}
	}
	return own
}

// Leave closes the consumers, so that the broker delivers unacknowledged
// messages to others. It waits until the context ends at most.
func (s *Subscription) Leave(ctx context.Context) error {
	s.cancel()
	return wait(ctx, s.tasks.Wait)
}
