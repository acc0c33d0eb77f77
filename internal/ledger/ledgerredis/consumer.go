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
	// roundTimeout bounds one exchange with the server. It is not the caller's
	// deadline: a read that was sent takes entries whether or not anybody waits
	// for its reply.
	roundTimeout = 2 * time.Second
	// patience is how long rounds may fail before a Receive that has nothing
	// else to return says so. A failover takes about as long.
	patience = 2 * time.Second
)

// consumer is one worker's end of the queue.
//
// It asks the server in rounds, one at a time and in the background: a Receive
// whose context ends does not abandon the round, whose entries the next
// Receive finds in the buffer. If a reply is lost all the same, the consumer
// holds entries without knowing; tend notices by their number and hands them
// back.
type consumer struct {
	queue *outboxQueue
	name  string // as the server knows it
	relay bool   // counted apart from the workers

	closing chan struct{} // closed by Close
	closed  sync.Once
	slot    chan struct{} // has one token: who takes it may run a round

	lateTo [buckets]time.Time // by Waits: a bucket did not answer, and is not asked until then

	mu        sync.Mutex
	schedule  schedule
	held      held
	buffer    []arrival   // held, not given to the caller yet, oldest first per bucket
	receiving bool        // a Receive is under way
	linger    *time.Timer // until the buffer is handed back
	unread    []error     // of entries that cannot be decoded, each to be told once
	tendAt    time.Time   // when the next tending is due
	others    watch
	died      bool      // another consumer was found dead since the last tending began
	deaths    int       // how often one was
	failing   time.Time // since when rounds fail; zero when they do not
}

func newConsumer(q *outboxQueue, name string, relay bool) *consumer {
	c := &consumer{queue: q, name: name, relay: relay, closing: make(chan struct{}), slot: make(chan struct{}, 1), others: watch{me: name, silence: q.silence}}
	c.slot <- struct{}{}
	return c
}

// Receive waits for entries.
func (c *consumer) Receive(ctx context.Context, max int) ([]queue.Delivery, error) {
	c.attend(true)
	defer c.attend(false)
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

// take gives the caller what is in the buffer, up to max claims.
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

// wait returns nil when it is worth looking into the buffer again: a round has
// ended. It starts one when one is due.
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
	if c.hasBuffered() { // by a round that was still under way
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

// begin runs a round in the background, for which the slot was taken, and
// gives the slot back after it.
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

// round does what is due: tending first, then reading. A part of the
// server that is away does not keep the rest from being read.
func (c *consumer) round(ctx context.Context, max int) error {
	var err error
	if c.tendDue() {
		err = c.tend(ctx)
	}
	return c.bear(errors.Join(err, c.read(ctx, max)))
}

// bear keeps a failure to itself for a while: the schedule tries again.
func (c *consumer) bear(err error) error {
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

// signal tends in the background, if that is due and no round is under way,
// which would do it.
func (c *consumer) signal() {
	if !c.tendDue() {
		return
	}
	select {
	case <-c.slot:
		c.begin(c.tend)
	default:
	}
}

// Close leaves, and hands back what is not acknowledged.
func (c *consumer) Close(ctx context.Context) error {
	c.closed.Do(func() { close(c.closing) })
	// A round that is under way may still take entries.
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
	c.absent(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffer, c.held = nil, held{}
	c.lingerLocked()
	return nil
}

// leave is one step in some buckets, and returns those that need another.
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

// call is a run of a script on a bucket's stream, as this consumer.
func (c *consumer) call(bucket int, args ...string) queueCall {
	return queueCall{
		keys: []string{c.queue.keys.out(bucket)},
		args: append([]string{workerGroup, c.name, returnedName}, args...),
	}
}
