package carrierpulsar

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/client/pulsarclient"
)

// Bounds of memory. No more messages are requested while one of them is
// reached: maxReady messages that no receiver has taken, maxHeld unsettled
// messages or heldBytes of them. Messages that are already on the way may take
// overBytes more, which is more than the engine's own messages need. Others
// come again later.
const (
	maxReady  = 256
	maxHeld   = 16_384
	heldBytes = 64 << 20
	overBytes = 64 << 20
	overHeld  = 2 * maxHeld
)

// againAfter is the delay after which a message is ready again that was given
// back.
const againAfter = 3 * time.Second

var errClosed = errors.New("pulsar: the carrier is closed")

// inbox holds the messages of a subscription.
type inbox struct {
	mu      sync.Mutex
	isEnded bool
	ready   []*delivery
	held    map[pulsarclient.MessageID]*delivery // ready, or with a receiver
	bytes   int                                  // bytes of held
	changed chan struct{}                        // closed and replaced when ready grows, or the inbox ends
}

var _ pulsarclient.Inbox = (*inbox)(nil)

// delivery is the handle of a message. The inbox's mutex guards it.
type delivery struct {
	message carrier.Message
	id      pulsarclient.MessageID
	size    int
	settled bool // or no longer valid
}

func newInbox() *inbox {
	return &inbox{held: make(map[pulsarclient.MessageID]*delivery), changed: make(chan struct{})}
}

// signal wakes receivers. The caller holds mu.
func (b *inbox) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Take makes a message ready. After a lost connection, a message that is
// already held comes again; receivers do not get it twice.
//
// A poison message has neither body nor signature, and is rejected like any
// unsigned message.
func (b *inbox) Take(m *pulsarclient.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isEnded {
		return true // all messages come again
	}
	if d := b.held[m.ID]; d != nil {
		if d.message.Key == m.Key && bytes.Equal(d.message.Body, m.Body) {
			return true
		}
		// The broker has lost its data, so the earlier message no longer
		// exists.
		b.drop(d)
		if i := slices.Index(b.ready, d); i >= 0 {
			b.ready = slices.Delete(b.ready, i, i+1)
		}
	}
	if len(b.held) >= overHeld || b.bytes+m.Size > heldBytes+overBytes {
		return false
	}
	d := &delivery{
		message: carrier.Message{Key: m.Key, Body: m.Body, Signature: m.Property(carrier.SignatureHeader)},
		id:      m.ID, size: m.Size,
	}
	b.held[m.ID] = d
	b.bytes += d.size
	b.ready = append(b.ready, d)
	b.signal()
	return true
}

// HasRoom reports whether more messages may be requested.
func (b *inbox) HasRoom() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ready) < maxReady && len(b.held) < maxHeld && b.bytes < heldBytes
}

// take returns ready messages. If there are none, the channel closes when that
// may have changed.
func (b *inbox) take(most int) ([]carrier.Delivery, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isEnded {
		return nil, nil, errClosed
	}
	var got []carrier.Delivery
	n := 0
	for ; n < len(b.ready) && len(got) < most; n++ {
		if d := b.ready[n]; !d.settled { // a message that was given back may be settled meanwhile
			got = append(got, carrier.Delivery{Message: d.message, Handle: d})
		}
	}
	clear(b.ready[:n])
	b.ready = b.ready[n:]
	return got, b.changed, nil
}

// drop ends a delivery. The caller holds mu.
func (b *inbox) drop(d *delivery) {
	if !d.settled {
		d.settled = true
		delete(b.held, d.id)
		b.bytes -= d.size
	}
}

// open returns the unsettled deliveries.
func (b *inbox) open(deliveries []carrier.Delivery) []*delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	var open []*delivery
	for i := range deliveries {
		if d, ok := deliveries[i].Handle.(*delivery); ok && !d.settled {
			open = append(open, d)
		}
	}
	return open
}

// settle ends deliveries.
func (b *inbox) settle(deliveries []*delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range deliveries {
		b.drop(d)
	}
}

// again makes deliveries ready after some seconds. They stay in this process,
// so other messages do not wait for them.
func (b *inbox) again(deliveries []*delivery) {
	time.AfterFunc(againAfter, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, d := range deliveries {
			if !d.settled {
				b.ready = append(b.ready, d)
			}
		}
		b.signal()
	})
}

// Reset forgets all messages.
func (b *inbox) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.held {
		d.settled = true
	}
	clear(b.held)
	b.ready, b.bytes = nil, 0
}

// end forgets all messages, and accepts no more.
func (b *inbox) end() {
	b.Reset()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isEnded = true
	b.signal()
}

func idsOf(deliveries []*delivery) []pulsarclient.MessageID {
	ids := make([]pulsarclient.MessageID, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.id
	}
	return ids
}
