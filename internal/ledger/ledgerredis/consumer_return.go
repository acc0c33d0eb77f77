package ledgerredis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"seckill/internal/queue"
)

// lingerFor is how long prefetched entries wait for the next Receive. By then a worker has
// returned from its store. Otherwise other workers get them.
const lingerFor = 100 * time.Millisecond

// Nack returns entries of this consumer to the queue. It also returns the undelivered entries
// of their streams, because younger entries must not come first.
func (c *consumer) Nack(ctx context.Context, ids []queue.ID) error {
	byBucket := make(map[int][]queue.ID)
	for _, id := range ids {
		if bucket, ok := bucketNamed(id.Stream); ok { // others belong to other queues
			byBucket[bucket] = append(byBucket[bucket], id)
		}
	}
	for bucket, ids := range byBucket {
		ahead := c.takeFromBuffer(func(b int) bool { return b == bucket })
		if err := c.returnEntries(ctx, bucket, append(ids, ahead[bucket]...)); err != nil {
			return fmt.Errorf("hand back: %w", err)
		}
	}
	c.tendInBackground()
	return nil
}

// takeFromBuffer removes the entries of some buckets from the buffer, to return them to the
// queue. If returning them fails, tending finds them.
func (c *consumer) takeFromBuffer(which func(bucket int) bool) map[int][]queue.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := make(map[int][]queue.ID)
	c.buffer = slices.DeleteFunc(c.buffer, func(a arrival) bool {
		if !which(a.bucket) {
			return false
		}
		taken[a.bucket] = append(taken[a.bucket], a.ID)
		c.held.settle(a.bucket, a.ID)
		return true
	})
	return taken
}

// returnEntries makes entries of one bucket available to any consumer.
func (c *consumer) returnEntries(ctx context.Context, bucket int, ids []queue.ID) error {
	for len(ids) > 0 {
		step := ids[:min(len(ids), moveMost)]
		ids = ids[len(step):]
		args := make([]string, 0, len(step))
		for _, id := range step {
			args = append(args, entryID(id))
		}
		if _, err := c.queue.run(ctx, nackScript, c.call(bucket, args...))[0].AsInt64(); err != nil {
			return fmt.Errorf("%s: %w", streamName(bucket), err)
		}
		c.mu.Lock()
		for _, id := range step {
			c.held.settle(bucket, id)
		}
		c.schedule[bucket].due = time.Time{}
		c.mu.Unlock()
	}
	return nil
}

// setReceiving records that a Receive begins or ends. After it ended, the buffer is returned to
// the queue unless the next Receive comes soon.
func (c *consumer) setReceiving(receiving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receiving = receiving
	c.lingerLocked()
}

func (c *consumer) lingerLocked() {
	if c.linger != nil {
		c.linger.Stop()
	}
	if !c.receiving && len(c.buffer) > 0 {
		c.linger = time.AfterFunc(lingerFor, c.returnIdleBuffer)
	}
}

// returnIdleBuffer returns the buffer to the queue after no Receive came.
func (c *consumer) returnIdleBuffer() {
	select {
	case <-c.slot:
	case <-c.closing:
		return // Close returns everything
	}
	c.mu.Lock()
	receiving := c.receiving
	c.mu.Unlock()
	if receiving {
		c.slot <- struct{}{}
		return
	}
	ahead := c.takeFromBuffer(func(int) bool { return true })
	c.begin(func(ctx context.Context) error {
		var failures []error
		for bucket, ids := range ahead {
			failures = append(failures, c.returnEntries(ctx, bucket, ids))
		}
		return cmp.Or(failures...)
	})
}
