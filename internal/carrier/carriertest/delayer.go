package carriertest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seckill/internal/carrier"
)

// MemoryDelayer is an in-process broker of delayed messages. Tests make it
// refuse, lose and deliver early.
type MemoryDelayer struct {
	mu      sync.Mutex
	waiting []*delayedMessage // by due
	held    map[*delayedMessage]bool
	changed chan struct{}
	sent    []carrier.Message
	again   int
	down    error
	early   time.Duration
	frozen  atomic.Bool
}

type delayedMessage struct {
	message carrier.Message
	due     time.Time
}

// againAfter is the delay after which a message comes again that was given
// back.
const againAfter = 20 * time.Millisecond

// NewMemoryDelayer makes an empty broker.
func NewMemoryDelayer() *MemoryDelayer {
	return &MemoryDelayer{held: make(map[*delayedMessage]bool), changed: make(chan struct{})}
}

func (m *MemoryDelayer) signal() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Fail makes every call return err, until it is called with nil.
func (m *MemoryDelayer) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
	m.signal()
}

// Freeze makes calls last until their contexts end.
func (m *MemoryDelayer) Freeze() { m.frozen.Store(true) }

// answer waits while the broker is frozen.
func (m *MemoryDelayer) answer(ctx context.Context) error {
	if m.frozen.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

// Early makes messages arrive that much before they are due.
func (m *MemoryDelayer) Early(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.early = by
	m.signal()
}

// Wipe loses all messages.
func (m *MemoryDelayer) Wipe() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = nil
	clear(m.held)
}

// Inject adds a due message, like any client that may write the topic.
func (m *MemoryDelayer) Inject(message carrier.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(&delayedMessage{message, time.Now()})
}

// Sent lists all messages that were ever published.
func (m *MemoryDelayer) Sent() []carrier.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sent)
}

// GivenBack counts deliveries that were given back.
func (m *MemoryDelayer) GivenBack() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.again
}

// Unsettled counts the messages that wait or are with a receiver.
func (m *MemoryDelayer) Unsettled() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting) + len(m.held)
}

func (m *MemoryDelayer) add(message *delayedMessage) {
	i, _ := slices.BinarySearchFunc(m.waiting, message, func(a, b *delayedMessage) int { return a.due.Compare(b.due) })
	m.waiting = slices.Insert(m.waiting, i, message)
	m.signal()
}

// Ping returns the error of Fail.
func (m *MemoryDelayer) Ping() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.down
}

// PublishAt stores a message.
func (m *MemoryDelayer) PublishAt(ctx context.Context, message carrier.Message, due time.Time) error {
	if err := m.answer(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	m.sent = append(m.sent, message)
	m.add(&delayedMessage{message, due})
	return nil
}

// Receive waits for due messages.
func (m *MemoryDelayer) Receive(ctx context.Context, most int) ([]carrier.Delivery, error) {
	for {
		got, changed, next, err := m.take(most)
		if err != nil || len(got) > 0 {
			return got, err
		}
		timer := time.NewTimer(next)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// take returns due messages, or how long to wait.
func (m *MemoryDelayer) take(most int) (got []carrier.Delivery, changed <-chan struct{}, next time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return nil, nil, 0, m.down
	}
	now := time.Now().Add(m.early)
	for len(got) < most && len(m.waiting) > 0 && !m.waiting[0].due.After(now) {
		h := m.waiting[0]
		m.waiting = m.waiting[1:]
		m.held[h] = true
		got = append(got, carrier.Delivery{Message: h.message, Handle: h})
	}
	next = time.Hour
	if len(m.waiting) > 0 {
		next = m.waiting[0].due.Sub(now)
	}
	return got, m.changed, next, nil
}

// Done settles deliveries.
func (m *MemoryDelayer) Done(ctx context.Context, deliveries []carrier.Delivery) error {
	if err := m.answer(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	for _, d := range deliveries {
		delete(m.held, d.Handle.(*delayedMessage))
	}
	return nil
}

// Again gives deliveries back. They come again after a moment, due or not.
func (m *MemoryDelayer) Again(ctx context.Context, deliveries []carrier.Delivery) error {
	if err := m.answer(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	for _, d := range deliveries {
		h := d.Handle.(*delayedMessage)
		if m.held[h] {
			delete(m.held, h)
			m.again++
			m.add(&delayedMessage{h.message, time.Now().Add(m.early + againAfter)})
		}
	}
	return nil
}

// Close gives back unsettled messages.
func (m *MemoryDelayer) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h := range m.held {
		m.add(h)
	}
	clear(m.held)
	return nil
}
