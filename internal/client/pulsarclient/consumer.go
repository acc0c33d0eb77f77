package pulsarclient

import (
	"context"
	"fmt"
	"sync"
)

// consumer receives from one partition over one connection. When it has ended,
// another one takes its place, and messages that were not acknowledged come
// again.
type consumer struct {
	part *part
	conn *conn
	id   uint64
	done chan struct{}

	mu  sync.Mutex
	err error // why it ended
	// owed is how many permits the broker has used and may have again.
	owed int64
	// isClosed says that the broker has forgotten the consumer.
	isClosed bool
}

// openConsumer finds the partition's broker and subscribes there. It gets no
// message before it has permits.
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
	if _, err := n.request(ctx, request, saySubscribe(p.name, p.of.opt.Name, c.id, request)); err != nil {
		// It may be there, and the answer late. A consumer without permits would keep
		// messages from others.
		c.conn.forget(c.id)
		n.send(sayCloseConsumer(c.id, client.nextID()))
		return nil, fmt.Errorf("subscribe to %s as %s: %w", p.name, p.of.opt.Name, err)
	}
	return c, nil
}

func (c *consumer) hear(a *answer, f frame) {
	switch a.kind {
	case kindMessage:
		c.message(readMessage(a.id, f.payload, f.whole))
	case kindCloseConsumer:
		c.closedByBroker()
	}
}

// message hands a message to the inbox.
func (c *consumer) message(m *Message) {
	m.ID.Partition = c.part.index
	if m.Poison != "" {
		c.conn.client.log.Debug("pulsar: message is poison", "topic", c.part.name, "why", m.Poison)
	}
	if m.isOdd {
		// Nobody knows how many permits are left. Another consumer begins with known
		// ones. The message is acknowledged first, or it would come to that one too.
		c.conn.send(sayAck(c.id, 0, []MessageID{m.ID}))
		c.end(errOdd)
	} else {
		c.mu.Lock()
		c.owed += m.permits
		c.mu.Unlock()
	}
	inbox := c.part.of.opt.Inbox
	if !inbox.Take(m) {
		c.end(errFlood)
	}
	if inbox.HasRoom() {
		c.refill()
	}
}

// refill gives the broker permits back when half of them are used.
func (c *consumer) refill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.owed >= int64(c.part.permits+1)/2 {
		c.conn.send(sayFlow(c.id, uint32(c.owed)))
		c.owed = 0
	}
}

// acknowledge returns when the broker has taken the acknowledgements.
func (c *consumer) acknowledge(ctx context.Context, ids []MessageID) error {
	request := c.conn.client.nextID()
	if _, err := c.conn.request(ctx, request, sayAck(c.id, request, ids)); err != nil {
		return fmt.Errorf("acknowledge messages: %w", err)
	}
	return nil
}

func (c *consumer) ended() <-chan struct{} { return c.done }

// begin gives the broker the first permits.
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
	c.end(errOwner)
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
	if _, err := c.conn.request(ctx, request, sayCloseConsumer(c.id, request)); err != nil {
		c.conn.client.log.Debug("pulsar: close a consumer", "topic", c.part.name, "error", err)
	}
	return why
}

// end has another consumer take the place of this one.
func (c *consumer) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}
