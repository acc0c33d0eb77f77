package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"seckill/internal/queue"
)

var errConsumerClosed = errors.New("the consumer is closed")

const (
	// roundTimeout bounds one round trip to the server. It does not depend on the caller's
	// deadline: a read that was sent takes entries even if nothing waits for its reply.
	roundTimeout = 2 * time.Second
	// patience is how long rounds may fail before a Receive without other results returns an
	// error. A failover takes about as long.
	patience = 2 * time.Second
)

// consumer is one worker's end of the queue.
//
// It talks to the server in rounds, one at a time, in the background. If the context of a
// Receive ends, the round goes on, and the next Receive finds its entries in the buffer. If a
// reply is lost, the consumer holds entries that it does not know. tend notices the difference
// in number and returns them to the queue.
type consumer struct {
	queue *outboxQueue
	name  string // its name at the server
	relay bool   // counted separately from the workers

	closing chan struct{} // closed by Close
	closed  sync.Once
	slot    chan struct{} // has one token; its holder may run a round

	lateTo [buckets]time.Time // by Waits: a bucket that did not answer is not asked until then

	mu        sync.Mutex
	schedule  schedule
	held      held
	buffer    []arrival   // held, but not delivered to the caller yet; oldest first per bucket
	receiving bool        // a Receive is running
	linger    *time.Timer // until the buffer is returned to the queue
	unread    []error     // of entries that cannot be decoded, each reported once
	tendAt    time.Time   // when the next tending is due
	others    watch
	died      bool      // another consumer was found dead since the last tending began
	deaths    int       // number of consumers that were found dead
	failing   time.Time // since when rounds fail; zero if they succeed
}

func newConsumer(q *outboxQueue, name string, relay bool) *consumer {
	c := &consumer{queue: q, name: name, relay: relay, closing: make(chan struct{}), slot: make(chan struct{}, 1), others: watch{me: name, silence: q.silence}}
	c.slot <- struct{}{}
	return c
}

func (c *consumer) Receive(ctx context.Context, max int) ([]queue.Delivery, error) {
	c.setReceiving(true)
	defer c.setReceiving(false)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch, err := c.take(max)
		if err != nil || len(batch) > 0 {
			return batch, err
		}
		if err := c.wait(ctx, max); err != nil {
			return nil, err
		}
	}
}

// take returns entries of the buffer with at most max claims.
func (c *consumer) take(max int) ([]queue.Delivery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosing() {
		return nil, fmt.Errorf("receive: %w", errConsumerClosed)
	}
	var batch []queue.Delivery
	for claims := 0; len(c.buffer) > 0; c.buffer = c.buffer[1:] {
		next := &c.buffer[0]
		claims += len(next.Entry.Claims)
		if len(batch) > 0 && claims > max {
			break
		}
		batch = append(batch, next.Delivery)
	}
	if len(batch) == 0 && len(c.unread) > 0 {
		err := c.unread[0]
		c.unread = c.unread[1:]
		return nil, fmt.Errorf("receive: %w", err)
	}
	return batch, nil
}

func (c *consumer) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// wait starts a round if one is due. It returns nil after a round has ended, when the buffer
// may have entries.
func (c *consumer) wait(ctx context.Context, max int) error {
	c.mu.Lock()
	due := time.Until(c.nextRound())
	c.mu.Unlock()
	if due > 0 {
		timer := time.NewTimer(due)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.closing:
			return nil
		}
	}
	select {
	case <-c.slot:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closing:
		return nil
	}
	if c.hasBuffered() { // a round that was still running brought some
		c.slot <- struct{}{}
		return nil
	}
	ended := c.begin(func(ctx context.Context) error { return c.round(ctx, max) })
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closing:
		return nil
	}
}

func (c *consumer) hasBuffered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.buffer) > 0
}

func (c *consumer) nextRound() time.Time {
	if next := c.schedule.next(); next.Before(c.tendAt) {
		return next
	}
	return c.tendAt
}

// begin runs a round in the background, and returns the slot after it. The caller holds the
// slot.
func (c *consumer) begin(round func(context.Context) error) <-chan error {
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), roundTimeout)
		defer cancel()
		err := round(ctx)
		c.mu.Lock()
		c.lingerLocked()
		c.mu.Unlock()
		c.slot <- struct{}{}
		ended <- err
	}()
	return ended
}

// round first tends if that is due, and then reads. An unavailable part of the server does not
// stop the others.
func (c *consumer) round(ctx context.Context, max int) error {
	var err error
	if c.tendDue() {
		err = c.tend(ctx)
	}
	return c.hideBriefFailure(errors.Join(err, c.read(ctx, max)))
}

// hideBriefFailure hides a failure for the time of patience, because the schedule retries.
func (c *consumer) hideBriefFailure(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		if !c.schedule.anyAway() {
			c.failing = time.Time{}
		}
	case c.failing.IsZero():
		c.failing = now
	case len(c.buffer) == 0 && now.Sub(c.failing) > patience:
		c.failing = now
		return err
	}
	return nil
}

// tendInBackground starts tending in the background if it is due. A running round would do it
// itself.
func (c *consumer) tendInBackground() {
	if !c.tendDue() {
		return
	}
	select {
	case <-c.slot:
		c.begin(c.tend)
	default:
	}
}

func (c *consumer) Close(ctx context.Context) error {
	c.closed.Do(func() { close(c.closing) })
	// A running round may still take entries.
	select {
	case <-c.slot:
		defer func() { c.slot <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("leave queue: %w", ctx.Err())
	}
	left := make([]int, buckets)
	for bucket := range left {
		left[bucket] = bucket
	}
	for len(left) > 0 {
		more, err := c.leave(ctx, left)
		if err != nil {
			return fmt.Errorf("leave queue: %w", err)
		}
		left = more
	}
	c.removeHeartbeat(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffer, c.held = nil, held{}
	c.lingerLocked()
	return nil
}

// leave runs one step in some buckets, and returns the buckets that need another.
func (c *consumer) leave(ctx context.Context, from []int) (more []int, err error) {
	calls := make([]queueCall, len(from))
	for i, bucket := range from {
		calls[i] = c.call(bucket, strconv.Itoa(moveMost))
	}
	for i, result := range c.queue.run(ctx, leaveScript, calls...) {
		left, failure := result.AsInt64()
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", streamName(from[i]), failure))
		}
		if left > 0 {
			more = append(more, from[i])
		}
	}
	return more, err
}

// call returns a call of a script on a bucket's stream, as this consumer.
func (c *consumer) call(bucket int, args ...string) queueCall {
	return queueCall{
		keys: []string{c.queue.keys.out(bucket)},
		args: append([]string{workerGroup, c.name, returnedName}, args...),
	}
}
