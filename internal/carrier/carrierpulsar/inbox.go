package carrierpulsar

import (
	"bytes"
	"slices"
	"sync"

	"seckill/internal/carrier"
	"seckill/internal/pulsarlink"
)

// Bounds of memory. No more messages are asked for while one of them is reached:
// maxReady messages that nobody has taken, maxHeld messages or heldBytes that
// are not settled. Messages that are on the way meanwhile may take overBytes
// more. The rest comes again later.
const (
	maxReady  = 256
	maxHeld   = 16_384
	heldBytes = 64 << 20
	overBytes = 16 << 20
	overHeld  = 2 * maxHeld
)

// inbox has the messages of one membership.
type inbox struct {
	mu      sync.Mutex
	isEnded bool
	ready   []*delivery
	held    map[pulsarlink.MessageID]*delivery // ready or in hand
	bytes   int                                // of them
	changed chan struct{}                      // closed and replaced when ready grows
}

var _ pulsarlink.Inbox = (*inbox)(nil)

// delivery is the handle of a message. The inbox's mutex guards it.
type delivery struct {
	message carrier.Message
	id      pulsarlink.MessageID
	size    int
	of      *inbox
	settled bool // or given back, or of no use any more
}

func newInbox() *inbox {
	return &inbox{held: make(map[pulsarlink.MessageID]*delivery), changed: make(chan struct{})}
}

// Take makes a message ready. One that is held already comes again when the
// connection was lost. Receivers do not get it twice.
//
// Poison has neither body nor signature: it is refused as every message that
// nobody signed.
func (b *inbox) Take(m *pulsarlink.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isEnded {
		return true // all of them come again
	}
	if d := b.held[m.ID]; d != nil {
		if d.message.Key == m.Key && bytes.Equal(d.message.Body, m.Body) {
			return true
		}
		// The broker has lost its data: the earlier message is gone.
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
		id:      m.ID, size: m.Size, of: b,
	}
	b.held[m.ID] = d
	b.bytes += d.size
	b.ready = append(b.ready, d)
	close(b.changed)
	b.changed = make(chan struct{})
	return true
}

// HasRoom reports whether more messages may be asked for.
func (b *inbox) HasRoom() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ready) < maxReady && len(b.held) < maxHeld && b.bytes < heldBytes
}

// take returns messages that are ready. If there are none, the channel is closed
// when one arrives.
func (b *inbox) take(most int) ([]carrier.Delivery, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(most, len(b.ready))
	if n == 0 {
		return nil, b.changed
	}
	got := make([]carrier.Delivery, n)
	for i, d := range b.ready[:n] {
		got[i] = carrier.Delivery{Message: d.message, Handle: d}
	}
	clear(b.ready[:n])
	b.ready = b.ready[n:]
	return got, nil
}

// drop ends a delivery. The caller holds mu.
func (b *inbox) drop(d *delivery) {
	d.settled = true
	delete(b.held, d.id)
	b.bytes -= d.size
}

// open are the deliveries that are neither settled nor of an earlier inbox.
func (b *inbox) open(deliveries []carrier.Delivery) []*delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	var open []*delivery
	for i := range deliveries {
		if d, ok := deliveries[i].Handle.(*delivery); ok && d.of == b && !d.settled {
			open = append(open, d)
		}
	}
	return open
}

// forget ends deliveries, and returns those that had not ended yet.
func (b *inbox) forget(deliveries []*delivery) []*delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ended []*delivery
	for _, d := range deliveries {
		if !d.settled {
			b.drop(d)
			ended = append(ended, d)
		}
	}
	return ended
}

// end forgets all messages.
func (b *inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isEnded = true
	for _, d := range b.held {
		d.settled = true
	}
	clear(b.held)
	b.ready, b.bytes = nil, 0
}

func idsOf(deliveries []*delivery) []pulsarlink.MessageID {
	ids := make([]pulsarlink.MessageID, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.id
	}
	return ids
}
