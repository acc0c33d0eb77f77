package pulsarlink

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// againAfter is when a message that was given back comes again.
	againAfter = 3 * time.Second
	againEvery = 250 * time.Millisecond
	// maxGivenBack bounds the messages of a partition that wait to come again.
	// Beyond it all messages come again at once.
	maxGivenBack = 16_384
	// maxAck bounds the messages of one acknowledgement, so that it fits in a
	// command.
	maxAck = 1000
	// windowMost is how many messages may be on the way from all partitions,
	// windowLeast from each.
	windowMost  = 256
	windowLeast = 4
	// leaveTimeout bounds the end of a consumer.
	leaveTimeout = 2 * time.Second
)

// Inbox takes messages. Its methods are called by the goroutine that reads the
// connection: they must not wait.
type Inbox interface {
	// Take is false if there is no room. The message comes again then.
	Take(m *Message) bool
	// HasRoom reports whether more messages may come.
	HasRoom() bool
}

// SubscriptionOptions say who receives.
type SubscriptionOptions struct {
	Name  string
	Inbox Inbox
}

// Subscription has a consumer on each partition of a topic, and opens it again
// when it has ended. It is made for one layout of the topic.
//
// Messages that came and were not acknowledged come again when a consumer was
// opened again: the inbox has to recognise them.
type Subscription struct {
	opt        SubscriptionOptions
	topic      *Topic
	partitions []string
	window     int
	parts      []*part
	isFlowing  atomic.Bool

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// Subscribe opens a consumer on each partition, or none. No message comes before
// Start.
func (t *Topic) Subscribe(ctx context.Context, opt SubscriptionOptions) (*Subscription, error) {
	partitions := t.Layout()
	s := &Subscription{opt: opt, topic: t, partitions: partitions, window: max(windowMost/len(partitions), windowLeast)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	first := make([]*consumer, len(partitions))
	var group errgroup.Group
	for i, name := range partitions {
		p := &part{of: s, index: i, name: name}
		s.parts = append(s.parts, p)
		group.Go(func() (err error) {
			first[i], err = openConsumer(ctx, p)
			return err
		})
	}
	err := group.Wait()
	for i, c := range first {
		switch {
		case err == nil:
			s.parts[i].now.set(c, nil)
			s.tasks.Go(func() { s.parts[i].keep(c) })
		case c != nil:
			c.leave(ctx)
		}
	}
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.tasks.Go(s.redeliver)
	return s, nil
}

// Start lets messages come.
func (s *Subscription) Start() {
	s.isFlowing.Store(true)
	s.Refill()
}

// Refill lets more messages come. The inbox has room again.
func (s *Subscription) Refill() {
	if !s.isFlowing.Load() {
		return
	}
	for _, p := range s.parts {
		if c := p.now.get(); c != nil {
			c.refill()
		}
	}
}

// IsOutdated reports whether the topic has other partitions now.
func (s *Subscription) IsOutdated() bool { return !slices.Equal(s.partitions, s.topic.Layout()) }

// Acknowledge returns nil when the broker has taken the acknowledgements. After
// an error the messages may come again. While there is no connection it waits.
func (s *Subscription) Acknowledge(ctx context.Context, ids []MessageID) error {
	var group errgroup.Group
	for _, p := range s.parts {
		for some := range slices.Chunk(p.own(ids), maxAck) {
			group.Go(func() error {
				c, err := p.now.await(ctx, s.ctx.Done())
				if err != nil {
					return err
				}
				return c.acknowledge(ctx, some)
			})
		}
	}
	return group.Wait()
}

// GiveBack has messages come again after some seconds, to anyone.
func (s *Subscription) GiveBack(ids []MessageID) {
	for _, id := range ids {
		p := s.parts[id.Partition]
		if c := p.now.get(); c != nil && !p.giveBack(id) {
			c.end(errFlood)
		}
	}
}

// redeliver asks for messages that were given back.
func (s *Subscription) redeliver() {
	tick := time.NewTicker(againEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			for _, p := range s.parts {
				for some := range slices.Chunk(p.due(now), maxAck) {
					if c := p.now.get(); c != nil {
						c.conn.send(sayRedeliver(c.id, some))
					}
				}
			}
		}
	}
}

// Leave closes the consumers: the broker gives to others what was not
// acknowledged. It waits no longer than the context lives.
func (s *Subscription) Leave(ctx context.Context) error {
	s.cancel()
	return wait(ctx, s.tasks.Wait)
}
