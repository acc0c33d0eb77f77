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
	// heartbeatsPerSilence is the number of heartbeats that a live consumer sends within the
	// silence timeout. It may miss some.
	heartbeatsPerSilence = 5
	// heartbeatTimeout bounds one heartbeat.
	heartbeatTimeout = time.Second
	// countedFor is how long after its last heartbeat a consumer counts as alive, by the
	// server's clock. Only figures depend on it.
	countedFor = 5 * time.Second
	// forgetAfter is when an idle consumer is removed, by the server's clock. If it is alive,
	// its next heartbeat or read adds it again.
	forgetAfter = time.Minute
	// loggedFor is how long a consumer that was logged as dead is remembered. Names are not
	// reused.
	loggedFor = time.Minute
)

// sendHeartbeat sends the consumer's heartbeat, and reads those of all consumers.
func (c *consumer) sendHeartbeat(ctx context.Context) (signs map[string]string, err error) {
	set := "1"
	if c.relay {
		set = "2"
	}
	call := queueCall{
		keys: []string{c.queue.keys.workers(), c.queue.keys.relays()},
		args: []string{set, c.name, strconv.FormatInt(forgetAfter.Milliseconds(), 10)},
	}
	signs, err = c.queue.runOnce(ctx, heartbeatScript, call)[0].AsStrMap()
	if err != nil {
		return nil, fmt.Errorf("send a heartbeat: %w", err)
	}
	return signs, nil
}

// removeHeartbeat removes the consumer's heartbeat. If that fails, the others will consider it
// dead.
func (c *consumer) removeHeartbeat(ctx context.Context) {
	var commands []rueidis.Completed
	for _, set := range []string{c.queue.keys.workers(), c.queue.keys.relays()} {
		commands = append(commands, c.queue.client.B().Zrem().Key(set).Member(c.name).Build())
	}
	_ = c.queue.sendOnce(ctx, commands)
}

// sendHeartbeats sends heartbeats until the consumer is closed or its ledger is, also while it
// is not called. A worker that waits for its store is not dead, and taking over its entries
// would help nothing.
func (c *consumer) sendHeartbeats() {
	ticker := time.NewTicker(c.queue.silence / heartbeatsPerSilence)
	defer ticker.Stop()
	for {
		c.heartbeat()
		select {
		case <-ticker.C:
		case <-c.closing:
			return
		case <-c.queue.stop.Done():
			return
		}
	}
}

// heartbeat sends one heartbeat, and evaluates those of the others.
func (c *consumer) heartbeat() {
	ctx, cancel := context.WithTimeout(c.queue.stop, heartbeatTimeout)
	signs, err := c.sendHeartbeat(ctx)
	cancel()
	c.mu.Lock()
	silent := c.others.look(signs, err, time.Now())
	if len(silent) > 0 {
		c.died, c.tendAt = true, time.Time{}
		c.deaths++
	}
	c.mu.Unlock()
	silent = slices.DeleteFunc(silent, c.queue.loggedLately)
	if len(silent) > 0 {
		slices.Sort(silent)
		c.queue.logger.Warn("queue: workers or relays are silent, others take over their entries", "silent", silent, "seen_by", c.name)
	}
	c.tendInBackground()
}

// loggedLately reports whether the log has named a dead consumer lately, and remembers it. All
// consumers of a process find the same dead ones.
func (q *outboxQueue) loggedLately(name string) bool {
	now := time.Now()
	q.silent.Range(func(other, at any) bool {
		if now.Sub(at.(time.Time)) > loggedFor {
			q.silent.Delete(other)
		}
		return true
	})
	_, told := q.silent.LoadOrStore(name, now)
	return told
}

func (c *consumer) Deaths() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deaths
}

// living counts the live consumers of all instances.
func (q *outboxQueue) living(ctx context.Context) (workers, relays int, err error) {
	within := []string{strconv.FormatInt(countedFor.Milliseconds(), 10)}
	results := q.runBriefly(ctx, workersScript,
		queueCall{keys: []string{q.keys.workers()}, args: within}, queueCall{keys: []string{q.keys.relays()}, args: within})
	var counts [2]int64
	for i, result := range results {
		if counts[i], err = result.AsInt64(); err != nil {
			return 0, 0, fmt.Errorf("count the workers: %w", err)
		}
	}
	return int(counts[0]), int(counts[1]), nil
}
