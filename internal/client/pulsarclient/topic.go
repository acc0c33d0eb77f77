package pulsarclient

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"seckill/internal/background"
)

const (
	// watchEvery is the interval between checks of the topic.
	watchEvery = 2 * time.Second
	// sendTimeout is how long a broker may take to store a message. A message
	// may be stored that long after Write has returned.
	sendTimeout = 10 * time.Second
	// unsentBytes bounds the messages on their way to the broker. Each counts
	// with its body and messageRoom, which also bounds their number.
	unsentBytes = 32 << 20
	messageRoom = 4096
	// headBytes bounds key and properties together.
	headBytes = 384
	// awaitPause is the pause between two attempts to open the topic.
	awaitPause = 200 * time.Millisecond
)

// Topic writes one topic and watches it. After an outage it works again by
// itself, also if the broker has lost the topic and creates it again. During
// the outage, calls return errors within their context.
//
// Methods are safe for concurrent use.
type Topic struct {
	client *Client
	name   string

	room     *semaphore.Weighted
	checkNow chan struct{} // requests a check by watch

	mu     sync.Mutex
	writer *writer

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// OpenTopic checks that the topic can be written. It waits for the broker until
// the context ends.
func (c *Client) OpenTopic(ctx context.Context, name string) (*Topic, error) {
	t := &Topic{client: c, name: fullName(name), room: semaphore.NewWeighted(unsentBytes), checkNow: make(chan struct{}, 1)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	err := background.Retry(ctx, awaitPause, IsSetup, func() error {
		partitions, err := t.Partitions(ctx)
		if err != nil {
			return err
		}
		t.writer, err = t.firstWriter(ctx, partitions)
		return err
	})
	if err != nil {
		t.cancel()
		return nil, fmt.Errorf("open topic %s: %w", t.name, err)
	}
	t.tasks.Go(t.watch)
	return t, nil
}

// present returns the writer for the partitions of the last check, some seconds
// ago.
func (t *Topic) present() *writer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writer
}

// MaxBytes returns the size of the largest body: the broker's limit, less the
// room for the message's head.
func (t *Topic) MaxBytes() int { return t.client.maxMessage() - messageRoom }

// Ping reports whether the broker answers and has the topic, or would create it.
func (t *Topic) Ping(ctx context.Context) error {
	if _, err := t.Partitions(ctx); err != nil {
		return fmt.Errorf("find topic %s: %w", t.name, err)
	}
	return nil
}

// Partitions reads the topic's partitions. A topic without partitions counts as
// one.
func (t *Topic) Partitions(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return t.client.partitions(ctx, t.name)
}

// Write returns nil when the broker has stored all messages. After an error any
// of them may be stored, even some seconds later.
func (t *Topic) Write(ctx context.Context, messages []Outgoing) error {
	if len(messages) == 0 {
		return nil
	}
	size, err := t.check(messages)
	if err != nil {
		return err
	}
	if err := t.room.Acquire(ctx, size); err != nil {
		return fmt.Errorf("pulsar: wait for earlier messages: %w", err)
	}
	s := &sending{done: make(chan struct{}), left: len(messages), free: func() { t.room.Release(size) }}
	for i := range messages {
		p, err := t.producer(ctx, messages[i].Key)
		if err != nil {
			s.ended(len(messages)-i, err)
			return err
		}
		p.write(&messages[i], s)
	}
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("pulsar: wait for the broker to store messages: %w", ctx.Err())
	}
}

// producer returns the producer for a key. It waits while there is none.
func (t *Topic) producer(ctx context.Context, key string) (*producer, error) {
	for {
		w := t.present()
		p, err := w.slots[partitionOf(key, len(w.slots))].await(ctx, w.ctx.Done())
		if err == nil || ctx.Err() != nil {
			return p, err
		}
		if t.ctx.Err() != nil {
			return nil, errClosed
		}
	}
}

// check returns the room that the messages need.
func (t *Topic) check(messages []Outgoing) (int64, error) {
	size, most := 0, t.MaxBytes()
	for i := range messages {
		if len(messages[i].Body) > most || messages[i].head() > headBytes {
			return 0, ErrTooLarge
		}
		size += len(messages[i].Body) + messageRoom
	}
	return int64(min(size, unsentBytes)), nil
}

// watch replaces the writer if the topic has other partitions, and closes
// producers whose broker does not store.
func (t *Topic) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.ctx.Done():
			t.present().end()
			return
		case <-t.checkNow:
		case <-tick.C:
		}
		t.present().closeStuck()
		partitions, err := t.Partitions(t.ctx)
		if err != nil {
			t.client.log.Debug("pulsar: check the topic", "topic", t.name, "error", err)
			continue
		}
		t.follow(partitions)
	}
}

// follow makes a writer for new partitions.
func (t *Topic) follow(partitions []string) {
	last := t.present()
	if slices.Equal(partitions, last.partitions) {
		return
	}
	made := t.newWriter(partitions, make([]*producer, len(partitions)))
	t.mu.Lock()
	t.writer = made
	t.mu.Unlock()
	last.end()
}

// isLaidOut checks that the topic still has these partitions. A broker that has
// lost its data would create a partition as a separate topic.
func (t *Topic) isLaidOut(ctx context.Context, partitions []string) error {
	now, err := t.Partitions(ctx)
	if err == nil && !slices.Equal(now, partitions) {
		select {
		case t.checkNow <- struct{}{}:
		default: // a check is already requested
		}
		return errOtherPartitions
	}
	return err
}

// Close fails messages that are not stored yet. It waits until the context ends
// at most.
func (t *Topic) Close(ctx context.Context) error {
	t.cancel()
	return wait(ctx, t.tasks.Wait)
}

// wait waits for an end, until the context ends at most.
func wait(ctx context.Context, end func()) error {
	if err := background.WaitWithin(ctx, end); err != nil {
		return fmt.Errorf("pulsar: close: %w", err)
	}
	return nil
}
