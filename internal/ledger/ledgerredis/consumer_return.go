package ledgerredis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"seckill/internal/queue"
)

// Nack hands entries back that this consumer holds, and with them what it has
// of their streams and has not given to its caller: younger entries must not
// come first.
func (c *consumer) Nack(ctx context.Context, ids []queue.ID) error {
	byBucket := make(map[int][]queue.ID)
	for _, id := range ids {
		if bucket, ok := bucketNamed(id.Stream); ok { // others are of other queues
			byBucket[bucket] = append(byBucket[bucket], id)
		}
	}
	for bucket, ids := range byBucket {
		if err := c.handBack(ctx, bucket, append(ids, c.unbuffer(bucket)...)); err != nil {
			return fmt.Errorf("hand back: %w", err)
		}
	}
	c.signal()
	return nil
}

// unbuffer takes the entries of one bucket out of the buffer, to be handed back.
// If that fails, tending will find that nobody knows of them.
func (c *consumer) unbuffer(bucket int) (taken []queue.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffer = slices.DeleteFunc(c.buffer, func(a arrival) bool {
		if a.bucket != bucket {
			return false
		}
		taken = append(taken, a.ID)
		c.held.settle(bucket, a.ID)
		return true
	})
	return taken
}

// handBack makes entries of one bucket free for anyone.
func (c *consumer) handBack(ctx context.Context, bucket int, ids []queue.ID) error {
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
