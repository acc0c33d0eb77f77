package carrierkafka

import (
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

// skip passes batches that are not read. Each counts as one message without a
// body, so that its receiver rejects and settles it. It is called while a
// rebalance is blocked.
func (c *consumer) skip(fetches kgo.Fetches) {
	behind := make(map[int32]kgo.EpochOffset)
	fetches.EachError(func(_ string, number int32, err error) {
		batch, ok := errors.AsType[*kgo.ErrDecompressTooLarge](err)
		if !ok {
			return
		}
		behind[number] = kgo.EpochOffset{Epoch: batch.Epoch, Offset: batch.NextOffset}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.addMessage(number, batch.Offset, batch.NextOffset, carrier.Message{})
		c.signal()
	})
	if len(behind) > 0 {
		c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{c.topic.Name(): behind})
	}
}
