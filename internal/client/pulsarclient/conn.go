package pulsarclient

import (
	"bufio"
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	readBuffer  = 64 << 10
	writeBuffer = 64 << 10
	// writeTimeout is how long a broker may take to read what is written at once.
	writeTimeout = silentAfter * keepAlive
)

// conn is a connection to a broker, shared by producers and consumers. It is of
// no use when done is closed.
type conn struct {
	client     *Client
	at         target
	wire       *heard
	maxMessage int

	done chan struct{}
	wake chan struct{} // of one place: there is something to write

	mu       sync.Mutex
	err      error // why it ended
	queue    [][]byte
	requests map[uint64]chan answer
	owners   map[uint64]owner
}

// owner is a producer or a consumer. Both have numbers of one series.
type owner interface {
	// hear takes a command. It never blocks.
	hear(a *answer, f frame)
	end(err error)
}

// newConn takes over a connection after sign-in.
func newConn(c *Client, at target, wire *heard, reader *bufio.Reader, maxMessage int) *conn {
	n := &conn{
		client: c, at: at, wire: wire, maxMessage: maxMessage, done: make(chan struct{}), wake: make(chan struct{}, 1),
		requests: make(map[uint64]chan answer), owners: make(map[uint64]owner),
	}
	c.tasks.Go(func() { n.end(n.readAll(reader)) })
	c.tasks.Go(func() { n.end(n.writeAll()) })
	return n
}

// end closes the connection once. Producers and consumers learn of it.
func (n *conn) end(err error) {
	n.mu.Lock()
	if n.err != nil {
		n.mu.Unlock()
		return
	}
	n.err = err
	owners := n.owners
	n.owners, n.queue = nil, nil
	close(n.done)
	n.mu.Unlock()
	_ = n.wire.Close() // it is of no use
	n.client.log.Debug("pulsar: connection ended", "broker", n.at.broker, "error", err)
	for _, o := range owners {
		o.end(fmt.Errorf("%w: %w", errLost, err))
	}
}

func (n *conn) isDone() bool { return isClosed(n.done) }

// send queues frames in their order. What cannot be sent is lost with the
// connection. Topics bound their messages, and a broker that does not read ends
// the connection after writeTimeout.
func (n *conn) send(frames ...[]byte) {
	n.mu.Lock()
	if n.err == nil {
		n.queue = append(n.queue, frames...)
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// writeAll writes what is queued, and pings.
func (n *conn) writeAll() error {
	writer := bufio.NewWriterSize(n.wire, writeBuffer)
	tick := time.NewTicker(n.client.keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-n.done:
			return errClosed
		case <-tick.C:
			if n.wire.silence() > silentAfter*n.client.keepAlive {
				return errSilent
			}
			n.send(sayPing())
		case <-n.wake:
		}
		n.mu.Lock()
		frames := n.queue
		n.queue = nil
		n.mu.Unlock()
		if len(frames) == 0 {
			continue
		}
		_ = n.wire.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails on a closed connection only
		for _, f := range frames {
			if _, err := writer.Write(f); err != nil {
				return fmt.Errorf("pulsar: write: %w", err)
			}
		}
		if err := writer.Flush(); err != nil {
			return fmt.Errorf("pulsar: write: %w", err)
		}
	}
}

// readAll reads until the connection breaks.
func (n *conn) readAll(reader *bufio.Reader) error {
	for {
		f, err := readFrame(reader, n.maxMessage+frameSlack)
		if err != nil {
			return fmt.Errorf("pulsar: read: %w", err)
		}
		a, err := readAnswer(f.command)
		if err != nil {
			return err
		}
		n.handle(&a, f)
	}
}

// handle never blocks: it would hold up all producers and consumers.
func (n *conn) handle(a *answer, f frame) {
	switch a.kind {
	case kindPing:
		n.send(sayPong())
	case kindAuthChallenge:
		n.send(sayToken(n.client.opt.Token))
	case kindMessage, kindCloseConsumer, kindSendReceipt, kindSendError, kindCloseProducer:
		n.mu.Lock()
		o := n.owners[a.owner]
		n.mu.Unlock()
		if o != nil {
			o.hear(a, f)
		}
	default:
		n.mu.Lock()
		waiting := n.requests[a.request]
		delete(n.requests, a.request)
		n.mu.Unlock()
		if waiting != nil {
			waiting <- *a // of one place, and answered once
		}
	}
}

// add is false when the connection has ended.
func (n *conn) add(id uint64, o owner) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return false
	}
	n.owners[id] = o
	return true
}

func (n *conn) forget(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.owners, id)
}

// request sends a frame and waits for the answer with its number. The answer may
// be a refusal, which is an error as well.
func (n *conn) request(ctx context.Context, id uint64, sent []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	waiting := make(chan answer, 1)
	n.mu.Lock()
	if n.err != nil {
		defer n.mu.Unlock()
		return answer{}, n.err
	}
	n.requests[id] = waiting
	n.mu.Unlock()
	n.send(sent)
	select {
	case a := <-waiting:
		return a, a.err()
	case <-n.done:
		n.mu.Lock()
		defer n.mu.Unlock()
		return answer{}, n.err
	case <-ctx.Done():
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.requests, id)
		return answer{}, fmt.Errorf("pulsar: the broker does not answer: %w", ctx.Err())
	}
}
