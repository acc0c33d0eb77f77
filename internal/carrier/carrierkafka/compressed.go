package carrierkafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/internal/carrier"
)

// refuseCompressed reads no compressed batch. The engine sends none, and a few
// kilobytes of somebody else's can be gigabytes in memory. A batch of zeros
// shrinks by a factor of ten thousand.
type refuseCompressed struct{}

// Decompress has the client stop before the batch. Then skip passes it.
func (refuseCompressed) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecNone {
		return src, nil
	}
	return nil, kgo.ErrMaxDecompress
}

// begin notes where reading begins, and finds out where that is the log's
// beginning: the client sets no offset of a partition of which it does not know
// one (skip).
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

// skip passes batches that are not read. Each counts as one message without a
// body, so that its receiver rejects and settles it. It is called while a
// rebalance is blocked.
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
	// Setting offsets drops what the client has fetched and not returned. An error
	// like this one of another partition may be among that, and such a partition
	// stays stopped. So all partitions are set. The client ignores an offset that
	// it has already, hence another one first, from which nothing is returned.
	c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{c.topic.Name(): other})
	c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{c.topic.Name(): next})
}

// wakeFetching starts the client's fetch loops that have stopped although they
// should run. Setting offsets ends a session of fetches and begins the next one.
// A loop of the first session that starts late finds its session ended, and then
// forgets that it was asked to run again (kgo: loopFetch, hardFinish). Nothing
// is paused here, so resuming nothing only starts the loops.
func (c *consumer) wakeFetching() { c.client.ResumeFetchPartitions(nil) }
