package carriertest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seckill/internal/carrier"
)

// Memory is an in-process broker for tests of code that uses carriers. Tests
// make it lose, hold back and refuse messages.
type Memory struct {
	mu      sync.Mutex
	waiting []carrier.Message
	held    map[*memoryHandle]bool
	changed chan struct{}
	sent    []carrier.Message
	down    error
	limit   int
	swallow bool
	frozen  atomic.Bool
}

type memoryHandle struct{ message carrier.Message }

// memoryLimit is the largest body.
const memoryLimit = 256 << 10

// NewMemory makes an empty broker.
func NewMemory() *Memory {
	return &Memory{held: make(map[*memoryHandle]bool), changed: make(chan struct{}), limit: memoryLimit}
}

func (m *Memory) signal() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Fail makes every call return err, until it is called with nil.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
	m.signal()
}

// Freeze makes calls last until their contexts end.
func (m *Memory) Freeze() { m.frozen.Store(true) }

// answer waits while the broker is frozen.
func (m *Memory) answer(ctx context.Context) error {
	if m.frozen.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

// Wipe loses all messages.
func (m *Memory) Wipe() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = nil
	clear(m.held)
}

// Swallow makes the broker accept messages and deliver none, or deliver again.
func (m *Memory) Swallow(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.swallow = on
	m.signal()
}

// Limit sets the largest body.
func (m *Memory) Limit(bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = bytes
}

// Sent lists all messages that were ever published.
func (m *Memory) Sent() []carrier.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sent)
}

// Unsettled counts the messages that wait or are with a receiver.
func (m *Memory) Unsettled() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting) + len(m.held)
}

// Inject adds a message, like any client that may write the topic.
func (m *Memory) Inject(message carrier.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = append(m.waiting, message)
	m.signal()
}

// Publish stores messages.
func (m *Memory) Publish(ctx context.Context, messages []carrier.Message) error {
	if err := m.answer(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	for i := range messages {
		if len(messages[i].Body) > m.limit {
			return carrier.ErrTooLarge
		}
	}
	m.waiting = append(m.waiting, messages...)
	m.sent = append(m.sent, messages...)
	m.signal()
	return nil
}

// MaxBytes returns the size of the largest body.
func (m *Memory) MaxBytes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limit
}

// Receive waits for messages.
func (m *Memory) Receive(ctx context.Context, most int) ([]carrier.Delivery, error) {
	for {
		m.mu.Lock()
		if m.down != nil {
			defer m.mu.Unlock()
			return nil, m.down
		}
		if n := min(most, len(m.waiting)); n > 0 && !m.swallow {
			got := make([]carrier.Delivery, n)
			for i := range got {
				h := &memoryHandle{m.waiting[i]}
				m.held[h] = true
				got[i] = carrier.Delivery{Message: h.message, Handle: h}
			}
			m.waiting = slices.Clone(m.waiting[n:])
			m.mu.Unlock()
			return got, nil
		}
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Done settles deliveries.
func (m *Memory) Done(ctx context.Context, deliveries []carrier.Delivery) error {
	if err := m.answer(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	for _, d := range deliveries {
		delete(m.held, d.Handle.(*memoryHandle))
	}
	return nil
}

// Again gives deliveries back. They come again after a moment.
func (m *Memory) Again(ctx context.Context, deliveries []carrier.Delivery) error {
	if err := m.answer(ctx); err != nil {
		return err
	}
	time.AfterFunc(20*time.Millisecond, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, d := range deliveries {
			if h := d.Handle.(*memoryHandle); m.held[h] {
				delete(m.held, h)
				m.waiting = append(m.waiting, h.message)
			}
		}
		m.signal()
	})
	return nil
}

// Ping returns the error of Fail.
func (m *Memory) Ping(ctx context.Context) error {
	if err := m.answer(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.down
}

// Close gives back unsettled messages.
func (m *Memory) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h := range m.held {
		m.waiting = append(m.waiting, h.message)
	}
	clear(m.held)
	m.signal()
	return nil
}
