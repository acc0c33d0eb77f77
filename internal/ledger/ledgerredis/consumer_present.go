package ledgerredis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// present tells that this consumer lives, for those who count workers: one that
// holds nothing leaves no trace in any stream.
func (c *consumer) present(ctx context.Context) error {
	call := queueCall{
		keys: []string{c.queue.keys.workers()},
		args: []string{c.name, strconv.FormatInt(c.queue.silence.Milliseconds(), 10)},
	}
	if err := c.queue.runOnce(ctx, presentScript, call)[0].Error(); err != nil {
		return fmt.Errorf("sign in among the workers: %w", err)
	}
	return nil
}

// absent signs out. One that cannot is forgotten after its silence.
func (c *consumer) absent(ctx context.Context) {
	command := c.queue.client.B().Zrem().Key(c.queue.keys.workers()).Member(c.name).Build()
	_ = c.queue.sendOnce(ctx, []rueidis.Completed{command})
}

// workers counts the consumers that are alive, of all instances.
func (q *outboxQueue) workers(ctx context.Context) (int, error) {
	call := queueCall{keys: []string{q.keys.workers()}, args: []string{strconv.FormatInt(q.silence.Milliseconds(), 10)}}
	live, err := q.glance(ctx, workersScript, call)[0].AsInt64()
	if err != nil {
		return 0, fmt.Errorf("count the workers: %w", err)
	}
	return int(live), nil
}
