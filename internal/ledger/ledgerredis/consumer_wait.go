package ledgerredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/queue"
)

const (
	// waitsMost bounds the entries of one command.
	waitsMost = 500
	// waitsFor is how long a bucket that does not answer delays the others. It is not asked
	// again for lateFor.
	waitsFor = 500 * time.Millisecond
	lateFor  = 2 * time.Second
)

var errLate = errors.New("no answer lately")

// Waits looks up entries in the sets of unacknowledged entries, whose members are SEQ-TAG. Each
// bucket is asked separately. A bucket without an answer within waitsFor is late, and calls do
// not wait for it until it is asked again.
func (c *consumer) Waits(ctx context.Context, of []queue.Delivery) ([]queue.State, error) {
	within, cancel := context.WithTimeout(ctx, waitsFor)
	defer cancel()
	states := make([]queue.State, len(of))
	var errs [buckets]error
	var asking sync.WaitGroup
	for bucket, all := range inBuckets(of, states) {
		if len(all) == 0 {
			continue
		}
		if time.Now().Before(c.lateTo[bucket]) {
			errs[bucket] = fmt.Errorf("look for waiting entries in %s: %w", streamName(bucket), errLate)
			continue
		}
		asking.Go(func() {
			if err := c.askBucket(within, bucket, all, of, states); err != nil {
				errs[bucket] = fmt.Errorf("look for waiting entries in %s: %w", streamName(bucket), err)
				if ctx.Err() == nil {
					c.lateTo[bucket] = time.Now().Add(lateFor)
				}
			}
		})
	}
	asking.Wait()
	c.forget(of, states)
	c.tendInBackground()
	return states, cmp.Or(errs[:]...)
}

func (c *consumer) askBucket(ctx context.Context, bucket int, all []int, of []queue.Delivery, states []queue.State) error {
	var commands rueidis.Commands
	var asked [][]int // per command, the indexes of its deliveries
	places := make(map[uint32][]int)
	for _, at := range all {
		places[of[at].Entry.ProductID] = append(places[of[at].Entry.ProductID], at)
	}
	for product, all := range places {
		for some := range slices.Chunk(all, waitsMost) {
			members := make([]string, len(some))
			for i, at := range some {
				members[i] = entryID(of[at].ID)
			}
			commands = append(commands, c.queue.client.B().Zmscore().Key(c.queue.keys.open(bucket, product)).Member(members...).Build())
			asked = append(asked, some)
		}
	}
	var failures []error
	for i, result := range c.queue.send(ctx, commands) {
		scores, err := result.ToArray()
		if err == nil && len(scores) != len(asked[i]) {
			err = fmt.Errorf("%w: %d of %d scores", errReply, len(scores), len(asked[i]))
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for j, at := range asked[i] {
			if states[at] = queue.Waiting; scores[j].IsNil() {
				states[at] = queue.Gone
			}
		}
	}
	return cmp.Or(failures...)
}

// inBuckets groups deliveries by bucket. Deliveries of another queue do not wait.
func inBuckets(of []queue.Delivery, states []queue.State) (all [buckets][]int) {
	for i := range of {
		if bucket, ok := bucketNamed(of[i].ID.Stream); ok {
			all[bucket] = append(all[bucket], i)
		} else {
			states[i] = queue.Gone
		}
	}
	return all
}

// forget drops this consumer's entries that others have acknowledged.
func (c *consumer) forget(of []queue.Delivery, states []queue.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range of {
		if bucket, ok := bucketNamed(of[i].ID.Stream); ok && states[i] == queue.Gone {
			c.held.settle(bucket, of[i].ID)
		}
	}
}
