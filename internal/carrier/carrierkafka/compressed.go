package carrierkafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/internal/carrier"
)

// refuseCompressed refuses compressed batches. The engine sends none. A few
// kilobytes from another sender could be gigabytes in memory: a batch of zeros
// shrinks by a factor of ten thousand.
type refuseCompressed struct{}

// Decompress makes the client stop before the batch. Then skip moves past it.
func (refuseCompressed) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecNone {
		return src, nil
	}
	return nil, kgo.ErrMaxDecompress
}

// begin records where reading begins. If the offset is unknown, it looks up the
// beginning of the log: skip can only set offsets of partitions with a known
// one.
func (c *consumer) begin(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	of := offsets[c.topic.Name()]
	var unknown []int32
	for number, offset := range of {
		if offset.EpochOffset().Offset < 0 {
			unknown = append(unknown, number)
		}
	}
	if len(unknown) > 0 {
		starts, err := c.topic.Starts(ctx)
		if err != nil {
			c.log.Debug("kafka: find the beginning of partitions", "topic", c.topic.Name(), "error", err)
		}
		for _, number := range unknown {
			if start, ok := starts[number]; ok {
				of[number] = kgo.NewOffset().At(start)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, offset := range of {
		if p := c.owned[number]; p != nil {
			p.first = max(-1, offset.EpochOffset().Offset)
		}
	}
	return offsets, nil
}

// skip moves past batches that are not read. Each counts as one message without
// a body, which its receiver rejects and settles. Call it while a rebalance is
// blocked.
func (c *consumer) skip(fetches kgo.Fetches) {
	c.mu.Lock()
	skipped := false
	fetches.EachError(func(_ string, number int32, err error) {
		if batch, ok := errors.AsType[*kgo.ErrDecompressTooLarge](err); ok {
			c.addMessage(number, batch.Offset, batch.NextOffset, carrier.Message{})
			skipped = true
		}
	})
	next, other := make(map[int32]kgo.EpochOffset), make(map[int32]kgo.EpochOffset)
	for number, p := range c.owned {
		if offset := p.next(); offset >= 0 {
			next[number] = kgo.EpochOffset{Epoch: -1, Offset: offset}
			other[number] = kgo.EpochOffset{Epoch: -1, Offset: offset + 1}
		}
	}
	if skipped {
		c.signal()
	}
	c.mu.Unlock()
	if !skipped {
		return
	}
	// SetOffsets drops messages that the client has fetched and not returned.
	// They may include the same error of another partition, which would then
	// stay stopped. So the offsets of all partitions are set. The client
	// ignores an offset that it already has, so another one is set first. No
	// message is read from that one.
	c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{c.topic.Name(): other})
	c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{c.topic.Name(): next})
}

// wakeFetching starts fetch loops of the client that have stopped by mistake.
// SetOffsets ends a session of fetches and begins the next one. A loop of the
// old session that starts late finds its session ended, and forgets the request
// to run again (kgo: loopFetch, hardFinish). Nothing is paused here, so this
// only starts the loops.
func (c *consumer) wakeFetching() { c.client.ResumeFetchPartitions(nil) }
