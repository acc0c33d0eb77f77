package ledgerredis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// register is where the consumer signs in: among the workers or the relays.
func (c *consumer) register() string {
	if c.relay {
		return c.queue.keys.relays()
	}
	return c.queue.keys.workers()
}

// present signs the consumer in, for those who count workers and relays: one
// that holds nothing leaves no trace in any stream.
func (c *consumer) present(ctx context.Context) error {
	call := queueCall{
		keys: []string{c.register()},
		args: []string{c.name, strconv.FormatInt(c.queue.silence.Milliseconds(), 10)},
	}
	if err := c.queue.runOnce(ctx, presentScript, call)[0].Error(); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	return nil
}

// absent signs out. One that cannot is forgotten after its silence.
func (c *consumer) absent(ctx context.Context) {
	command := c.queue.client.B().Zrem().Key(c.register()).Member(c.name).Build()
	_ = c.queue.sendOnce(ctx, []rueidis.Completed{command})
}

// living counts the consumers of all instances that are signed in and alive.
func (q *outboxQueue) living(ctx context.Context) (workers, relays int, err error) {
	silence := []string{strconv.FormatInt(q.silence.Milliseconds(), 10)}
	results := q.glance(ctx, workersScript,
		queueCall{keys: []string{q.keys.workers()}, args: silence}, queueCall{keys: []string{q.keys.relays()}, args: silence})
	var counts [2]int64
	for i, result := range results {
		if counts[i], err = result.AsInt64(); err != nil {
			return 0, 0, fmt.Errorf("count the workers: %w", err)
		}
	}
	return int(counts[0]), int(counts[1]), nil
}
