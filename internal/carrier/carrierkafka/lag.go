package carrierkafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"seckill/internal/kafkalink"
)

// Timestamps that ask for the ends of a partition's log.
const (
	logEnd   = -1
	logStart = -2
)

// Lag is the sum over all partitions of the log's end minus the group's
// committed offset. Messages that were settled in the last second may be
// counted.
func (c *Carrier) Lag(ctx context.Context) (int64, error) {
	partitions, err := c.topic.Partitions(ctx)
	if err != nil {
		return 0, err
	}
	ends, err := listOffsets(ctx, c.topic, partitions, logEnd)
	if err != nil {
		return 0, err
	}
	starts, err := listOffsets(ctx, c.topic, partitions, logStart)
	if err != nil {
		return 0, err
	}
	committed, err := c.committedOffsets(ctx, partitions)
	if err != nil {
		return 0, err
	}
	lag := int64(0)
	for _, p := range partitions {
		lag += lagOf(starts[p], ends[p], committed[p])
	}
	return lag, nil
}

// lagOf is the lag of one partition. Committed is -1 if there is none. One that
// is above the end belongs to a log that was lost: all of the new one is unread.
func lagOf(start, end, committed int64) int64 {
	if committed < start || committed > end {
		committed = start
	}
	return end - committed
}

// listOffsets are the beginnings or the ends of partitions' logs.
func listOffsets(ctx context.Context, of *kafkalink.Topic, partitions []int32, at int64) (map[int32]int64, error) {
	ask := kmsg.NewPtrListOffsetsRequest()
	ask.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = of.Name()
	for _, number := range partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = number, at
		topic.Partitions = append(topic.Partitions, p)
	}
	ask.Topics = append(ask.Topics, topic)
	answer, err := ask.RequestWith(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("list offsets of topic %s: %w", of.Name(), kafkalink.Explain(err))
	}
	offsets := make(map[int32]int64)
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("list offsets of topic %s, partition %d: %w", of.Name(), p.Partition, kafkalink.Explain(err))
			}
			offsets[p.Partition] = p.Offset
		}
	}
	if len(offsets) != len(partitions) {
		return nil, fmt.Errorf("list offsets of topic %s: kafka: %d of %d partitions answered", of.Name(), len(offsets), len(partitions))
	}
	return offsets, nil
}

// committedOffsets are those of the group; -1 for a partition that has none.
func (c *Carrier) committedOffsets(ctx context.Context, partitions []int32) (map[int32]int64, error) {
	ask := kmsg.NewPtrOffsetFetchRequest()
	ask.Group = c.opt.Group
	topic := kmsg.NewOffsetFetchRequestTopic()
	topic.Topic, topic.Partitions = c.opt.Topic, partitions
	ask.Topics = append(ask.Topics, topic)
	answer, err := ask.RequestWith(ctx, c.topic)
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		return nil, fmt.Errorf("read offsets of group %s: %w", c.opt.Group, kafkalink.Explain(err))
	}
	offsets := make(map[int32]int64)
	for _, number := range partitions {
		offsets[number] = -1
	}
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("read offsets of group %s, partition %d: %w", c.opt.Group, p.Partition, kafkalink.Explain(err))
			}
			offsets[p.Partition] = p.Offset
		}
	}
	return offsets, nil
}

// checkGroup returns an error if the user has no rights on the group. Other
// errors are those of an outage, which a carrier outlives.
func (c *Carrier) checkGroup(ctx context.Context) error {
	_, err := c.committedOffsets(ctx, nil)
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return err
	}
	return nil
}
