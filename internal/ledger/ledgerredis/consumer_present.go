package ledgerredis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

const (
	// signsPerSilence is how many signs of life a living consumer gives within a
	// silence: it may miss some.
	signsPerSilence = 5
	// signTimeout bounds one sign of life.
	signTimeout = time.Second
	// countedFor is how long after its last sign a consumer is counted as alive,
	// by the server's clock. Nothing but figures depends on it.
	countedFor = 5 * time.Second
	// forgetAfter is when an idle consumer is forgotten, by the server's clock. If
	// it lives, its next sign or read makes it known again.
	forgetAfter = time.Minute
	// toldFor is how long a consumer of which the log told that it is dead is
	// remembered. Names do not come again.
	toldFor = time.Minute
)

// present gives the consumer's sign of life, and reads those of all.
func (c *consumer) present(ctx context.Context) (signs map[string]string, err error) {
	set := "1"
	if c.relay {
		set = "2"
	}
	call := queueCall{
		keys: []string{c.queue.keys.workers(), c.queue.keys.relays()},
		args: []string{set, c.name, strconv.FormatInt(forgetAfter.Milliseconds(), 10)},
	}
	signs, err = c.queue.runOnce(ctx, presentScript, call)[0].AsStrMap()
	if err != nil {
		return nil, fmt.Errorf("give a sign of life: %w", err)
	}
	return signs, nil
}

// absent signs out. One that cannot is taken for dead by the others.
func (c *consumer) absent(ctx context.Context) {
	var commands []rueidis.Completed
	for _, set := range []string{c.queue.keys.workers(), c.queue.keys.relays()} {
		commands = append(commands, c.queue.client.B().Zrem().Key(set).Member(c.name).Build())
	}
	_ = c.queue.sendOnce(ctx, commands)
}

// live gives signs of life from the consumer's making until it leaves or its
// ledger does, also while nobody calls it: a worker that waits for its store is
// not dead, and taking over what it holds would help nobody.
func (c *consumer) live() {
	ticker := time.NewTicker(c.queue.silence / signsPerSilence)
	defer ticker.Stop()
	for {
		c.sign()
		select {
		case <-ticker.C:
		case <-c.closing:
			return
		case <-c.queue.stop.Done():
			return
		}
	}
}

// sign gives one sign of life, and looks at those of the others.
func (c *consumer) sign() {
	ctx, cancel := context.WithTimeout(c.queue.stop, signTimeout)
	signs, err := c.present(ctx)
	cancel()
	c.mu.Lock()
	silent := c.others.look(signs, err, time.Now())
	if len(silent) > 0 {
		c.died, c.tendAt = true, time.Time{}
		c.deaths++
	}
	c.mu.Unlock()
	silent = slices.DeleteFunc(silent, c.queue.toldLately)
	if len(silent) > 0 {
		slices.Sort(silent)
		c.queue.logger.Warn("queue: workers or relays give no sign of life, others get what they hold", "silent", silent, "seen_by", c.name)
	}
	c.signal()
}

// toldLately reports whether the log has told of a dead consumer: all workers and
// relays of a process find the same ones.
func (q *outboxQueue) toldLately(name string) bool {
	now := time.Now()
	q.silent.Range(func(other, at any) bool {
		if now.Sub(at.(time.Time)) > toldFor {
			q.silent.Delete(other)
		}
		return true
	})
	_, told := q.silent.LoadOrStore(name, now)
	return told
}

// Deaths counts the others that were found dead.
func (c *consumer) Deaths() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deaths
}

// living counts the consumers of all instances that are signed in and alive.
func (q *outboxQueue) living(ctx context.Context) (workers, relays int, err error) {
	within := []string{strconv.FormatInt(countedFor.Milliseconds(), 10)}
	results := q.glance(ctx, workersScript,
		queueCall{keys: []string{q.keys.workers()}, args: within}, queueCall{keys: []string{q.keys.relays()}, args: within})
	var counts [2]int64
	for i, result := range results {
		if counts[i], err = result.AsInt64(); err != nil {
			return 0, 0, fmt.Errorf("count the workers: %w", err)
		}
	}
	return int(counts[0]), int(counts[1]), nil
}
