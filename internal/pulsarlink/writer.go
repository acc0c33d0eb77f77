package pulsarlink

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// writer is a producer with a connection of its own. It is of no use when that
// is lost: the library's way to connect again races with messages that are sent
// meanwhile, and gives up for good in some cases.
type writer struct {
	client   *Client
	producer pulsar.Producer
	layout   string
	made     time.Time
	suspect  atomic.Bool // a write failed for another reason than its context

	// turn is taken to hand messages to the producer. Its sequence numbers must not
	// overtake each other, and it panics if it is closed meanwhile.
	turn   chan struct{}
	closed bool
	// ended is closed when the producer is. It does not tell the end of all that it
	// has not sent.
	ended chan struct{}
	once  sync.Once
}

// lost is closed when the writer has lost its connection.
func (w *writer) lost() <-chan struct{} { return w.client.news.lost }

func (w *writer) isLost() bool {
	select {
	case <-w.lost():
		return true
	default:
		return false
	}
}

func (t *Topic) newWriter(ctx context.Context, partitions []string) (*writer, error) {
	client, err := t.link.Reachable(ctx).NewClient(t.log)
	if err != nil {
		return nil, err
	}
	never := uint(0)
	options := pulsar.ProducerOptions{
		Topic: t.name, SendTimeout: sendTimeout, MaxPendingMessages: maxUnsent + 1,
		// A message is an entry of the topic's log by itself: the relay has packed
		// what belongs together. The library's batches by key made it slower, and a
		// batch is settled as a whole by default.
		DisableBatching: true, CompressionType: pulsar.LZ4,
		MaxReconnectToBroker: &never, PartitionsAutoDiscoveryInterval: NeverDiscover,
	}
	producer, err := Call(ctx, func() (pulsar.Producer, error) {
		made, err := client.CreateProducer(options)
		if err != nil {
			client.Close()
		}
		return made, err
	}, func(pulsar.Producer) { client.Close() })
	if err != nil {
		return nil, client.Explain(err)
	}
	return &writer{
		client: client, producer: producer, layout: layout(partitions), made: time.Now(),
		turn: make(chan struct{}, 1), ended: make(chan struct{}),
	}, nil
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
	for _, m := range messages {
		w.producer.SendAsync(ctx, m, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { s.ended(1, err) })
	}
	return s
}

// close fails what is not stored. It returns with the context, and goes on by
// itself for a bounded time.
func (w *writer) close(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		w.closed = true
		<-w.turn
	case <-ctx.Done():
	}
	return Do(ctx, func() {
		w.client.Close() // closes the producer first
		w.once.Do(func() { close(w.ended) })
	})
}
