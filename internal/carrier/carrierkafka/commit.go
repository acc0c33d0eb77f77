package carrierkafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"seckill/internal/client/kafkaclient"
)

const (
	commitEvery   = 200 * time.Millisecond
	commitTimeout = 5 * time.Second
)

// commitLoop commits the settled offsets regularly.
func (c *consumer) commitLoop(ctx context.Context) {
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.wakeFetching()
		c.endIfOutdated()
		try, cancel := context.WithTimeout(ctx, commitTimeout)
		if err := c.commit(try, nil); err != nil {
			c.log.Debug("kafka: commit", "topic", c.topic.Name(), "error", err)
		}
		cancel()
	}
}

// endIfOutdated ends the consumer if the topic was deleted and created again,
// which franz-go does not follow. Receivers then make another one.
func (c *consumer) endIfOutdated() {
	if c.topic.ID() == c.id {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.signal()
}

// commit commits the positions of partitions; nil means all owned ones. A later
// commit repeats failed ones.
func (c *consumer) commit(ctx context.Context, numbers []int32) error {
	c.committing.Lock()
	defer c.committing.Unlock()
	offsets := c.positions(numbers)
	if len(offsets) == 0 {
		return nil
	}
	var failed error
	topic := c.topic.Name()
	c.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			failed = err
			if err == nil {
				failed = c.committed(answer, offsets)
			}
		})
	return kafkaclient.Explain(failed)
}

// positions returns the offsets that are not committed yet.
func (c *consumer) positions(numbers []int32) map[int32]kgo.EpochOffset {
	c.mu.Lock()
	defer c.mu.Unlock()
	offsets := make(map[int32]kgo.EpochOffset)
	for number, p := range c.owned {
		if numbers != nil && !slices.Contains(numbers, number) {
			continue
		}
		// Without an epoch, an offset above the end of the log is out of range,
		// and the log is read from its beginning. With an epoch, it would be
		// read from its end.
		if offset, ok := p.position(); ok && offset != p.committed {
			offsets[number] = kgo.EpochOffset{Epoch: -1, Offset: offset}
		}
	}
	return offsets
}

// committed records the offsets that the broker has accepted.
func (c *consumer) committed(answer *kmsg.OffsetCommitResponse, offsets map[int32]kgo.EpochOffset) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for i := range answer.Topics {
		for _, result := range answer.Topics[i].Partitions {
			if err := kerr.ErrorForCode(result.ErrorCode); err != nil {
				errs = append(errs, fmt.Errorf("partition %d: %w", result.Partition, err))
			} else if p := c.owned[result.Partition]; p != nil {
				p.committed = offsets[result.Partition].Offset
			}
		}
	}
	return errors.Join(errs...)
}
