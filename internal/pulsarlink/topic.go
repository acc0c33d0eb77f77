package pulsarlink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"golang.org/x/sync/semaphore"
)

const (
	// watchEvery is how often the topic is looked at.
	watchEvery = 2 * time.Second
	// sendTimeout is how long the client tries to store a message. A message may be
	// stored that long after Write has returned.
	sendTimeout = 10 * time.Second
	// lostAfter is when a message is given up of which the client never told the
	// end.
	lostAfter = sendTimeout + 5*time.Second
	// unsentBytes bounds what is on the way to the broker. Each message counts
	// messageRoom more than its body, so it bounds their number as well.
	unsentBytes = 32 << 20
	messageRoom = 4096
	maxUnsent   = unsentBytes / messageRoom
	// headBytes bounds key and properties together.
	headBytes = 384
	// awaitPause is the wait between two tries to make a writer, replaceTimeout
	// bounds each.
	awaitPause     = 200 * time.Millisecond
	replaceTimeout = 2 * operationTimeout
)

// Topic writes one topic and watches over it. It outlives outages: calls return
// errors within their context and work again when the broker is back, also if it
// has lost the topic and creates it again.
//
// Methods are safe for concurrent use.
type Topic struct {
	link   Options
	name   string
	log    *slog.Logger
	client *Client // asks only

	room    *semaphore.Weighted
	lookNow chan struct{} // asks watch to look now
	wellAt  atomic.Int64  // since when looks succeed, in Unix nanoseconds; 0 if the last failed

	mu       sync.Mutex
	writer   *writer
	replaced chan struct{} // closed and replaced with each writer

	looking sync.Mutex
	under   *look // the look that is under way; nil if there is none

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// look is one question for the topic's partitions.
type look struct {
	done       chan struct{}
	partitions []string
	err        error
}

// OpenTopic checks that the topic can be written. It waits for the broker no
// longer than the context lives.
func OpenTopic(ctx context.Context, link Options, name string, log *slog.Logger) (*Topic, error) {
	full, err := FullName(name)
	if err != nil {
		return nil, err
	}
	client, err := link.NewClient(log)
	if err != nil {
		return nil, err
	}
	t := &Topic{
		link: link, name: full, log: log, client: client,
		room: semaphore.NewWeighted(unsentBytes), lookNow: make(chan struct{}, 1), replaced: make(chan struct{}),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	if t.writer, err = t.await(ctx); err != nil {
		t.cancel()
		client.Abandon()
		return nil, err
	}
	t.tasks.Go(t.watch)
	return t, nil
}

// await makes the first writer. It tries again until the context ends, unless
// that cannot help.
func (t *Topic) await(ctx context.Context) (*writer, error) {
	for {
		w, err := t.first(ctx)
		if err == nil {
			return w, nil
		}
		if IsSetup(err) || ctx.Err() != nil {
			return nil, fmt.Errorf("open topic %s: %w", t.name, err)
		}
		select {
		case <-time.After(awaitPause):
		case <-ctx.Done():
		}
	}
}

func (t *Topic) first(ctx context.Context) (*writer, error) {
	partitions, err := t.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	return t.newWriter(ctx, partitions)
}

// Name is the topic's full name.
func (t *Topic) Name() string { return t.name }

// Layout changes when the topic has other partitions. It may be some seconds
// late.
func (t *Topic) Layout() string {
	w, _ := t.present()
	return w.layout
}

// present is the writer, and a channel that is closed when there is another.
func (t *Topic) present() (*writer, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writer, t.replaced
}

// Well is how long the broker has been answering; 0 if it does not.
func (t *Topic) Well() time.Duration {
	if at := t.wellAt.Load(); at > 0 {
		return time.Since(time.Unix(0, at))
	}
	return 0
}

// MaxBytes is the largest body of a message: the broker's limit, less what a
// body that does not compress grows by, and the message's own head.
func (t *Topic) MaxBytes() int {
	w, _ := t.present()
	most := w.client.maxMessage()
	return most - most/200 - messageRoom
}

// Ping reports whether the broker answers and has the topic, or would create it.
func (t *Topic) Ping(ctx context.Context) error {
	_, err := t.Partitions(ctx)
	return err
}

// Partitions asks the broker for the topic's partitions. A topic without
// partitions is its own only one. Calls at the same time share one request.
func (t *Topic) Partitions(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.looking.Lock()
	now := t.under
	if now == nil {
		now = &look{done: make(chan struct{})}
		t.under = now
		go t.look(now)
	}
	t.looking.Unlock()
	// The client goes on trying while the broker refuses it.
	select {
	case <-now.done:
		return now.partitions, now.err
	case <-t.client.news.refused():
	case <-ctx.Done():
	}
	return nil, t.client.Explain(ctx.Err())
}

// look asks. The client bounds it by operationTimeout.
func (t *Topic) look(l *look) {
	l.partitions, l.err = Call(t.ctx, func() ([]string, error) { return t.client.TopicPartitions(t.name) }, nil)
	if l.err != nil {
		l.err = t.client.Explain(l.err)
		t.wellAt.Store(0)
	} else {
		t.wellAt.CompareAndSwap(0, time.Now().UnixNano())
	}
	t.looking.Lock()
	t.under = nil
	t.looking.Unlock()
	close(l.done)
}

// Write returns nil when the broker has stored all messages. After an error any
// of them may be stored, also some seconds later.
func (t *Topic) Write(ctx context.Context, messages []*pulsar.ProducerMessage) error {
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
	w, err := t.connected(ctx)
	if err != nil {
		t.room.Release(size)
		return err
	}
	sent := w.send(ctx, messages)
	go t.release(w, sent, size)
	select {
	case <-sent.done:
		return Explain(sent.err)
	case <-w.ended:
		return errLost
	case <-ctx.Done():
		return fmt.Errorf("pulsar: wait for the broker to store messages: %w", ctx.Err())
	}
}

// release gives back the room of messages when they ended.
func (t *Topic) release(w *writer, sent *sending, size int64) {
	defer t.room.Release(size)
	late := time.NewTimer(lostAfter)
	defer late.Stop()
	select {
	case <-sent.done:
		if sent.err == nil || errors.Is(sent.err, context.Canceled) || errors.Is(sent.err, context.DeadlineExceeded) {
			return
		}
	case <-w.ended:
		return
	case <-late.C:
	}
	w.suspect.Store(true)
	t.Check()
}

// connected is the writer. While that has lost its connection, it waits for the
// next one.
func (t *Topic) connected(ctx context.Context) (*writer, error) {
	for {
		w, replaced := t.present()
		if t.ctx.Err() != nil {
			return nil, errClosed
		}
		if !w.isLost() {
			return w, nil
		}
		select {
		case <-replaced:
		case <-t.ctx.Done():
		case <-ctx.Done():
			return nil, t.client.Explain(fmt.Errorf("wait for a connection: %w", ctx.Err()))
		}
	}
}

// check returns how much room messages take.
func (t *Topic) check(messages []*pulsar.ProducerMessage) (int64, error) {
	size, most := 0, t.MaxBytes()
	for _, m := range messages {
		head := len(m.Key)
		for name, value := range m.Properties {
			head += len(name) + len(value)
		}
		if len(m.Payload) > most || head > headBytes {
			return 0, ErrTooLarge
		}
		size += len(m.Payload) + messageRoom
	}
	return int64(min(size, unsentBytes)), nil
}

// Check has the topic looked at now rather than in some seconds.
func (t *Topic) Check() {
	select {
	case t.lookNow <- struct{}{}:
	default:
	}
}

// watch replaces the writer when it has lost its connection, when the topic has
// other partitions, or when a write failed while the broker is well.
func (t *Topic) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		w, _ := t.present()
		lost, soon := w.lost(), (<-chan time.Time)(nil)
		if w.isLost() {
			lost, soon = nil, time.After(awaitPause)
		}
		select {
		case <-t.ctx.Done():
			return
		case <-lost:
			t.end(w)
		case <-soon:
		case <-t.lookNow:
		case <-tick.C:
		}
		if err := t.refresh(w); err != nil {
			t.log.Debug("pulsar: look at the topic", "topic", t.name, "error", err)
		}
	}
}

// end fails what a writer has not stored.
func (t *Topic) end(w *writer) {
	t.tasks.Go(func() { _ = w.close(t.ctx) }) // an error says that Close was called
}

func (t *Topic) refresh(w *writer) error {
	partitions, err := t.Partitions(t.ctx)
	if err != nil {
		return err
	}
	isSuspect := w.suspect.Load() && time.Since(w.made) > watchEvery
	if layout(partitions) == w.layout && !w.isLost() && !isSuspect {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, replaceTimeout)
	defer cancel()
	made, err := t.newWriter(ctx, partitions)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.writer = made
	close(t.replaced)
	t.replaced = make(chan struct{})
	t.mu.Unlock()
	t.end(w)
	return nil
}

func layout(partitions []string) string { return strings.Join(partitions, " ") }

// Close fails what is not stored yet, and waits no longer than the context
// lives.
func (t *Topic) Close(ctx context.Context) error {
	if t.ctx.Err() != nil {
		return nil
	}
	t.cancel()
	err := Do(ctx, t.tasks.Wait) // watch makes no writer after this
	t.client.Abandon()
	w, _ := t.present()
	if err = errors.Join(err, w.close(ctx)); err != nil {
		return fmt.Errorf("pulsar: close: %w", err)
	}
	return nil
}
