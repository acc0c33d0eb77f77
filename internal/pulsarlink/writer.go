package pulsarlink

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// writer is a producer for one layout of the topic.
type writer struct {
	producer pulsar.Producer
	layout   string
	made     time.Time
	suspect  atomic.Bool // a write failed for another reason than its context

	// turn is taken to hand messages to the producer. Its sequence numbers must not
	// overtake each other, and it panics if it is closed meanwhile.
	turn   chan struct{}
	closed bool
}

func (t *Topic) newWriter(ctx context.Context, partitions []string) (*writer, error) {
	producer, err := Call(ctx, func() (pulsar.Producer, error) {
		return t.client.CreateProducer(pulsar.ProducerOptions{
			Topic: t.name, SendTimeout: sendTimeout, MaxPendingMessages: maxUnsent + 1,
			// A message is an entry of the topic's log by itself: the relay has packed
			// what belongs together. The library's batches by key made it slower, and a
			// batch is settled as a whole by default.
			DisableBatching: true, CompressionType: pulsar.LZ4,
			BackOffPolicyFunc: Backoff, PartitionsAutoDiscoveryInterval: NeverDiscover,
		})
	}, func(late pulsar.Producer) { late.Close() })
	if err != nil {
		return nil, Explain(err)
	}
	return &writer{producer: producer, layout: layout(partitions), made: time.Now(), turn: make(chan struct{}, 1)}, nil
}

// sending waits for the end of several messages.
type sending struct {
	done chan struct{} // closed when all ended

	mu   sync.Mutex
	left int
	err  error // the first one
}

func (s *sending) ended(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	if s.left -= n; s.left == 0 {
		close(s.done)
	}
}

// send hands messages to the producer. It rarely waits: Topic has no more on the
// way than the producer's queue takes.
func (w *writer) send(ctx context.Context, messages []*pulsar.ProducerMessage) *sending {
	s := &sending{done: make(chan struct{}), left: len(messages)}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		s.ended(len(messages), ctx.Err())
		return s
	}
	if w.closed {
		s.ended(len(messages), errClosed)
		return s
	}
	for i, m := range messages {
		if err := w.sendOne(ctx, m, s); err != nil {
			s.ended(len(messages)-i, err)
			break
		}
	}
	return s
}

// sendOne returns an error if the message's end is not told to s. The library
// closes a producer by itself when its topic is gone, and panics if that happens
// now.
func (w *writer) sendOne(ctx context.Context, m *pulsar.ProducerMessage, s *sending) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pulsar: the producer was closed: %v", p)
		}
	}()
	w.producer.SendAsync(ctx, m, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { s.ended(1, err) })
	return nil
}

// close fails what is not stored. The library may take some seconds for it.
func (w *writer) close(ctx context.Context) {
	select {
	case w.turn <- struct{}{}:
		w.closed = true
		<-w.turn
	case <-ctx.Done():
		return
	}
	_ = Do(ctx, w.producer.Close) // the client ends it, if the context ends before
}
