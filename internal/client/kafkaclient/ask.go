package kafkaclient

import (
	"cmp"
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"seckill/internal/background"
)

// ask makes a request to the cluster. It returns when the context ends, while
// franz-go would wait for a frozen broker up to answerTimeout.
func ask[T any](ctx context.Context, question func() (T, error)) (answer T, err error) {
	answers := make(chan T, 1)
	err = background.CallWithin(ctx, func() error {
		answer, err := question()
		answers <- answer
		return err
	})
	if err != nil {
		return answer, Explain(err)
	}
	return <-answers, nil
}

// Starts returns the first offset of each partition.
func (t *Topic) Starts(ctx context.Context) (map[int32]int64, error) {
	listed, err := ask(ctx, func() (kadm.ListedOffsets, error) {
		listed, err := t.admin.ListStartOffsets(ctx, t.opt.Name)
		return listed, cmp.Or(err, listed.Error())
	})
	if err != nil {
		return nil, fmt.Errorf("list offsets of topic %s: %w", t.opt.Name, err)
	}
	offsets := make(map[int32]int64)
	listed.Each(func(o kadm.ListedOffset) { offsets[o.Partition] = o.Offset })
	return offsets, nil
}

// Committed returns the committed offsets of a group. Partitions without one
// are missing.
func (t *Topic) Committed(ctx context.Context, group string) (map[int32]int64, error) {
	found, err := ask(ctx, func() (kadm.OffsetResponses, error) {
		found, err := t.admin.FetchOffsets(ctx, group)
		return found, cmp.Or(err, found.Error())
	})
	if err != nil {
		return nil, fmt.Errorf("read offsets of group %s: %w", group, err)
	}
	offsets := make(map[int32]int64)
	for number, o := range found[t.opt.Name] {
		offsets[number] = o.At
	}
	return offsets, nil
}
