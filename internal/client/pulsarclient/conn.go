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
	// writeTimeout is how long a broker may take to read a batch of writes.
	writeTimeout = silentAfter * keepAlive
)

// conn is a connection to a broker, shared by producers and consumers. It is
// unusable when done is closed.
type conn struct {
	client     *Client
	at         target
	wire       *timedConn
	maxMessage int

	done chan struct{}
	wake chan struct{} // of size 1: there is something to write

	mu       sync.Mutex
	err      error // why it ended
	queue    [][]byte
	requests map[uint64]chan answer
	owners   map[uint64]owner
}

// owner is a producer or a consumer. Their ids come from one sequence.
type owner interface {
	// handleCommand handles a command. It never blocks.
	handleCommand(a *answer, f frame)
	end(err error)
}

// newConn takes over a connection after sign-in.
func newConn(c *Client, at target, wire *timedConn, reader *bufio.Reader, maxMessage int) *conn {
	n := &conn{
		client: c, at: at, wire: wire, maxMessage: maxMessage, done: make(chan struct{}), wake: make(chan struct{}, 1),
		requests: make(map[uint64]chan answer), owners: make(map[uint64]owner),
	}
	c.tasks.Go(func() { n.end(n.readAll(reader)) })
	c.tasks.Go(func() { n.end(n.writeAll()) })
	return n
}

// end closes the connection once, and ends its producers and consumers.
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
	_ = n.wire.Close() // it is unusable
	n.client.log.Debug("pulsar: connection ended", "broker", n.at.broker, "error", err)
	for _, o := range owners {
		o.end(fmt.Errorf("%w: %w", errLost, err))
	}
}

func (n *conn) isDone() bool { return isClosed(n.done) }

// send queues frames in order. If the connection ends, unsent frames are lost.
// Topics bound their messages. If a broker does not read, the connection ends
// after writeTimeout.
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

// writeAll writes queued frames, and pings.
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
			n.send(encodePing())
		case <-n.wake:
		}
		n.mu.Lock()
		frames := n.queue
		n.queue = nil
		n.mu.Unlock()
		if len(frames) == 0 {
			continue
		}
		_ = n.wire.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only on a closed connection
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

// handle must not block, because all producers and consumers would wait.
func (n *conn) handle(a *answer, f frame) {
	switch a.kind {
	case kindPing:
		n.send(encodePong())
	case kindAuthChallenge:
		n.send(encodeToken(n.client.opt.Token))
	case kindMessage, kindCloseConsumer, kindSendReceipt, kindSendError, kindCloseProducer:
		n.mu.Lock()
		o := n.owners[a.owner]
		n.mu.Unlock()
		if o != nil {
			o.handleCommand(a, f)
		}
	default:
		n.mu.Lock()
		waiting := n.requests[a.request]
		delete(n.requests, a.request)
		n.mu.Unlock()
		if waiting != nil {
			waiting <- *a // of size 1, and answered once
		}
	}
}

// add returns false if the connection has ended.
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

// request sends a frame and waits for the answer with its number. A refusal is
// returned as an error.
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
