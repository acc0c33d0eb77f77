package pulsarclient

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// producer writes one partition over one connection. At its end it reports the
// result of every message, and another one replaces it.
type producer struct {
	conn *conn
	id   uint64
	name string // chosen by the broker
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

// sending waits for the results of several messages.
type sending struct {
	done chan struct{} // closed when all have a result
	free func()        // called when all have a result

	mu   sync.Mutex
	left int
	err  error // the first error
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

// openProducer finds the partition's broker and creates a producer there.
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
	a, err := n.request(ctx, request, encodeProducer(partition, p.id, request))
	if err != nil {
		p.close(err) // the producer may exist, if the answer is only late
		return nil, fmt.Errorf("write to %s: %w", partition, err)
	}
	p.name = a.name
	return p, nil
}

func (p *producer) handleCommand(a *answer, _ frame) {
	switch a.kind {
	case kindSendReceipt, kindSendError:
		p.receipt(a)
	case kindCloseProducer:
		p.closedByBroker()
	}
}

// write sends a message and does not wait.
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
	p.conn.send(encodeSend(o, p.id, p.next, p.name, now))
	p.next++
}

// receipt records the result of a message. After an error the producer is
// unusable: Pulsar's own clients reopen it too.
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
	if i == 0 { // the usual case: nothing is moved
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

// isStuck reports whether a message has waited too long for its receipt.
func (p *producer) isStuck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent) > 0 && time.Since(p.sent[0].at) > sendTimeout
}

func (p *producer) closedByBroker() {
	p.conn.forget(p.id)
	p.end(errClosedByBroker)
}

// close ends the producer and informs the broker.
func (p *producer) close(err error) {
	p.conn.forget(p.id)
	p.conn.send(encodeCloseProducer(p.id, p.conn.client.nextID()))
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
