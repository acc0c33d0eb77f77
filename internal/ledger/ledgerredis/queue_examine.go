package ledgerredis

import (
	"context"
	"fmt"
	"strconv"

	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// examineMost bounds the entries of one bucket that one step looks at.
const examineMost = 256

var _ queue.Examining = (*outboxQueue)(nil)

// Examine looks for entries that will never be delivered, in every bucket, and
// mends keys in whose place is something else: what they held is lost.
// What a step mends the next does not see, so that mending comes to an end; of a
// stream that is lost whole, and not to be mended, it does not come to one.
func (q *outboxQueue) Examine(ctx context.Context, product uint32, mend bool) (queue.Strays, error) {
	var all queue.Strays
	for {
		found, err := q.examine(ctx, product, mend)
		all.Gone += found.Gone
		all.Alone += found.Alone
		if err != nil || !mend || found == (queue.Strays{}) {
			return all, err
		}
	}
}

func (q *outboxQueue) examine(ctx context.Context, product uint32, mend bool) (queue.Strays, error) {
	id, how := strconv.FormatUint(uint64(product), 10), "0"
	if mend {
		how = "1"
	}
	calls := make([]queueCall, buckets)
	for bucket := range calls {
		calls[bucket] = queueCall{
			keys: []string{q.keys.out(bucket), q.keys.queue(bucket), q.keys.open(bucket, product)},
			args: []string{workerGroup, returnedName, id, strconv.Itoa(examineMost), how},
		}
	}
	var found queue.Strays
	var lost error
	for bucket, result := range q.run(ctx, examineScript, calls...) {
		says, err := result.AsIntSlice()
		if err == nil && len(says) != 3 {
			err = fmt.Errorf("%d figures", len(says))
		}
		if err != nil {
			return found, fmt.Errorf("examine %s: %w", streamName(bucket), err)
		}
		found.Gone += says[0]
		found.Alone += says[1]
		if says[2] == 1 {
			lost = &queue.LostError{Stream: streamName(bucket), Cause: ledger.ErrDamaged}
		}
	}
	return found, lost
}
