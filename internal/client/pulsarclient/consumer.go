package pulsarclient

import (
	"context"
	"fmt"
	"sync"
)

// consumer receives from one partition over one connection. After its end
// another one replaces it, and unacknowledged messages come again.
type consumer struct {
	part *part
	conn *conn
	id   uint64
	done chan struct{}

	mu  sync.Mutex
	err error // why it ended
	// owed is the number of permits that the broker has used and may get again.
	owed int64
	// isClosed means that the broker has removed the consumer.
	isClosed bool
}

// openConsumer finds the partition's broker and subscribes there. The consumer
// gets no messages before it grants permits.
func openConsumer(ctx context.Context, p *part) (*consumer, error) {
	client := p.of.topic.client
	n, err := client.owner(ctx, p.name)
	if err != nil {
		return nil, err
	}
	c := &consumer{part: p, conn: n, id: client.nextID(), done: make(chan struct{}), owed: int64(p.permits)}
	if !n.add(c.id, c) {
		return nil, errLost
	}
	request := client.nextID()
	if _, err := n.request(ctx, request, encodeSubscribe(p.name, p.of.opt.Name, c.id, request)); err != nil {
		// The consumer may exist, if the answer is only late. Without permits
		// it would keep messages from other consumers.
		c.conn.forget(c.id)
		n.send(encodeCloseConsumer(c.id, client.nextID()))
		return nil, fmt.Errorf("subscribe to %s as %s: %w", p.name, p.of.opt.Name, err)
	}
	return c, nil
}

func (c *consumer) handleCommand(a *answer, f frame) {
	switch a.kind {
	case kindMessage:
		c.message(readMessage(a.id, f.payload, f.whole))
	case kindCloseConsumer:
		c.closedByBroker()
	}
}

// message passes a message to the inbox.
func (c *consumer) message(m *Message) {
	m.ID.Partition = c.part.index
	if m.Poison != "" {
		c.conn.client.log.Debug("pulsar: message is poison", "topic", c.part.name, "why", m.Poison)
	}
	if m.permitsUnknown {
		// The number of remaining permits is unknown. Another consumer starts
		// with a known number. Acknowledge the message first, so that the other
		// one does not get it too.
		c.conn.send(encodeAck(c.id, 0, []MessageID{m.ID}))
		c.end(errPermitsUnknown)
	} else {
		c.mu.Lock()
		c.owed += m.permits
		c.mu.Unlock()
	}
	inbox := c.part.of.opt.Inbox
	if !inbox.Take(m) {
		c.end(errNoRoom)
	}
	if inbox.HasRoom() {
		c.refill()
	}
}

// refill grants permits to the broker when half of them are used.
func (c *consumer) refill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.owed >= int64(c.part.permits+1)/2 {
		c.conn.send(encodeFlow(c.id, uint32(c.owed)))
		c.owed = 0
	}
}

// acknowledge returns when the broker has accepted the acknowledgements.
func (c *consumer) acknowledge(ctx context.Context, ids []MessageID) error {
	request := c.conn.client.nextID()
	if _, err := c.conn.request(ctx, request, encodeAck(c.id, request, ids)); err != nil {
		return fmt.Errorf("acknowledge messages: %w", err)
	}
	return nil
}

func (c *consumer) ended() <-chan struct{} { return c.done }

// begin grants the first permits.
func (c *consumer) begin() {
	if c.part.of.opt.Inbox.HasRoom() {
		c.refill()
	}
}

func (c *consumer) closedByBroker() {
	c.conn.forget(c.id)
	c.mu.Lock()
	c.isClosed = true
	c.mu.Unlock()
	c.end(errClosedByBroker)
}

// leave closes the consumer, if the broker still has it.
func (c *consumer) leave() error {
	c.end(errClosed)
	c.mu.Lock()
	why, isClosed := c.err, c.isClosed
	c.mu.Unlock()
	c.conn.client.log.Debug("pulsar: consumer ended", "topic", c.part.name, "error", why)
	if isClosed || c.conn.isDone() {
		return why
	}
	defer c.conn.forget(c.id)
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	request := c.conn.client.nextID()
	if _, err := c.conn.request(ctx, request, encodeCloseConsumer(c.id, request)); err != nil {
		c.conn.client.log.Debug("pulsar: close a consumer", "topic", c.part.name, "error", err)
	}
	return why
}

// end ends the consumer, so that another one replaces it.
func (c *consumer) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}
