package ledgerredis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"seckill/internal/queue"
)

// Ack acknowledges entries, whichever consumer holds them. The witness's bucket goes first and
// alone: if the witness is lost, nothing else may change.
func (c *consumer) Ack(ctx context.Context, done []queue.Delivery, witness queue.ID) error {
	if err := c.ack(ctx, done, witness); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	c.tendInBackground()
	return nil
}

func (c *consumer) ack(ctx context.Context, done []queue.Delivery, witness queue.ID) error {
	var byBucket [buckets][]*queue.Delivery // deliveries of other queues are left out
	for i := range done {
		if bucket, ok := bucketNamed(done[i].ID.Stream); ok {
			byBucket[bucket] = append(byBucket[bucket], &done[i])
		}
	}
	if !witness.IsZero() {
		bucket, ok := bucketNamed(witness.Stream)
		if !ok {
			return queue.ErrLost
		}
		if err := c.ackBucket(ctx, bucket, byBucket[bucket], witness); err != nil {
			return err
		}
		byBucket[bucket] = nil
	}
	var failures []error
	for bucket, some := range byBucket {
		if len(some) > 0 {
			failures = append(failures, c.ackBucket(ctx, bucket, some, queue.ID{}))
		}
	}
	return cmp.Or(failures...)
}

// ackBucket acknowledges entries of one bucket. With a witness the list may be empty.
func (c *consumer) ackBucket(ctx context.Context, bucket int, done []*queue.Delivery, witness queue.ID) error {
	for first := true; first || len(done) > 0; first = false {
		step := done[:min(len(done), ackMost)]
		done = done[len(step):]
		if _, err := c.queue.settle(ctx, bucket, step, witness); err != nil {
			return err
		}
		c.mu.Lock()
		for _, d := range step {
			c.held.settle(bucket, d.ID)
		}
		c.mu.Unlock()
	}
	return nil
}

// settle acknowledges entries in one bucket, and reports whether there may be more to trim.
func (q *outboxQueue) settle(ctx context.Context, bucket int, done []*queue.Delivery, witness queue.ID) (more bool, err error) {
	call := q.settlement(bucket, witness)
	product := func(d *queue.Delivery) uint32 { return d.Entry.ProductID }
	slices.SortStableFunc(done, func(a, b *queue.Delivery) int { return cmp.Compare(product(a), product(b)) })
	for len(done) > 0 {
		of, n := product(done[0]), 1
		for n < len(done) && product(done[n]) == of {
			n++
		}
		call.keys = append(call.keys, q.keys.open(bucket, of))
		call.args = append(call.args, strconv.FormatUint(uint64(of), 10), strconv.Itoa(n))
		for _, d := range done[:n] {
			call.args = append(call.args, entryID(d.ID), strconv.Itoa(len(d.Entry.Claims)))
		}
		done = done[n:]
	}
	verdict, err := q.run(ctx, ackScript, call)[0].AsInt64()
	if err != nil {
		return false, fmt.Errorf("settle %s: %w", streamName(bucket), err)
	}
	if verdict == witnessLost {
		return false, fmt.Errorf("%s: %w", streamName(bucket), queue.ErrLost)
	}
	return verdict > 0, nil
}

// witnessLost is the script's reply if it does not find the witness.
const witnessLost = -1

// settlement returns an acknowledgement of no entries.
func (q *outboxQueue) settlement(bucket int, witness queue.ID) queueCall {
	call := queueCall{
		keys: []string{q.keys.out(bucket), q.keys.queue(bucket)},
		args: []string{workerGroup, "", strconv.Itoa(trimSlack), strconv.Itoa(trimMost)},
	}
	if !witness.IsZero() {
		call.args[1] = entryID(witness)
	}
	return call
}

// Lost checks witnesses by acknowledgements of no entries, all at once. A witness of another
// queue is lost here.
func (q *outboxQueue) Lost(ctx context.Context, witnesses []queue.ID) (lost []queue.ID, err error) {
	var calls []queueCall
	var asked []queue.ID
	for _, id := range witnesses {
		bucket, ok := bucketNamed(id.Stream)
		switch {
		case ok:
			calls, asked = append(calls, q.settlement(bucket, id)), append(asked, id)
		case !id.IsZero(): // an empty witness claims nothing
			lost = append(lost, id)
		}
	}
	var failures []error
	for i, result := range q.runBriefly(ctx, ackScript, calls...) {
		verdict, err := result.AsInt64()
		if err != nil {
			failures = append(failures, fmt.Errorf("ask for the witness of %s: %w", asked[i].Stream, err))
		} else if verdict == witnessLost {
			lost = append(lost, asked[i])
		}
	}
	return lost, cmp.Or(failures...)
}

// trim shortens a stream in several steps, and reports whether there is more to trim.
func (q *outboxQueue) trim(ctx context.Context, bucket int) (more bool, err error) {
	for range trimSteps {
		if more, err = q.settle(ctx, bucket, nil, queue.ID{}); err != nil || !more {
			break
		}
	}
	return more, err
}
