package pulsarclient

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// producer writes one partition over one connection. When it has ended, it has
// told the end of every message, and another one takes its place.
type producer struct {
	conn *conn
	id   uint64
	name string // by the broker
	done chan struct{}

	mu   sync.Mutex
	err  error // why it ended
	next uint64
	sent []sentMessage // not stored yet, by sequence
}

type sentMessage struct {
	sequence uint64
	at       time.Time
	of       *sending
}

// sending waits for the end of several messages.
type sending struct {
	done chan struct{} // closed when all ended
	free func()        // called when all ended

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
		s.free()
		close(s.done)
	}
}

// openProducer finds the partition's broker and makes a producer there.
func openProducer(ctx context.Context, c *Client, partition string) (*producer, error) {
	n, err := c.owner(ctx, partition)
	if err != nil {
		return nil, err
	}
	p := &producer{conn: n, id: c.nextID(), done: make(chan struct{})}
	if !n.add(p.id, p) {
		return nil, errLost
	}
	request := c.nextID()
	a, err := n.request(ctx, request, sayProducer(partition, p.id, request))
	if err != nil {
		p.close(err) // it may be there, and the answer late
		return nil, fmt.Errorf("write to %s: %w", partition, err)
	}
	p.name = a.name
	return p, nil
}

func (p *producer) hear(a *answer, _ frame) {
	switch a.kind {
	case kindSendReceipt, kindSendError:
		p.receipt(a)
	case kindCloseProducer:
		p.closedByBroker()
	}
}

// write sends a message without waiting.
func (p *producer) write(o *Outgoing, of *sending) {
	p.mu.Lock()
	if p.err != nil {
		defer p.mu.Unlock()
		of.ended(1, p.err)
		return
	}
	defer p.mu.Unlock()
	now := time.Now()
	p.sent = append(p.sent, sentMessage{p.next, now, of})
	p.conn.send(saySend(o, p.id, p.next, p.name, now))
	p.next++
}

// receipt ends a message. After an error the producer is of no use: Pulsar's
// clients reopen it as well.
func (p *producer) receipt(a *answer) {
	if err := a.err(); err != nil {
		p.close(err)
		return
	}
	p.mu.Lock()
	i, found := slices.BinarySearchFunc(p.sent, a.sequence, func(m sentMessage, sequence uint64) int { return cmp.Compare(m.sequence, sequence) })
	if !found {
		p.mu.Unlock()
		return
	}
	of := p.sent[i].of
	if i == 0 { // as usual: nothing is moved
		p.sent[0] = sentMessage{}
		p.sent = p.sent[1:]
	} else {
		p.sent = slices.Delete(p.sent, i, i+1)
	}
	p.mu.Unlock()
	of.ended(1, nil)
}

func (p *producer) begin()                 {}
func (p *producer) ended() <-chan struct{} { return p.done }

func (p *producer) leave() error {
	if !isClosed(p.done) {
		p.close(errLost)
	}
	return p.err
}

// isStuck reports whether a message waits for its receipt for too long.
func (p *producer) isStuck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent) > 0 && time.Since(p.sent[0].at) > sendTimeout
}

func (p *producer) closedByBroker() {
	p.conn.forget(p.id)
	p.end(errOwner)
}

// close ends the producer and tells the broker.
func (p *producer) close(err error) {
	p.conn.forget(p.id)
	p.conn.send(sayCloseProducer(p.id, p.conn.client.nextID()))
	p.end(err)
}

// end fails all messages that are not stored.
func (p *producer) end(err error) {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return
	}
	p.err = err
	sent := p.sent
	p.sent = nil
	close(p.done)
	p.mu.Unlock()
	for _, m := range sent {
		m.of.ended(1, err)
	}
}
