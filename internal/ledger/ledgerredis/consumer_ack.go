package ledgerredis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"seckill/internal/entryformat"
	"seckill/internal/queue"
)

// Ack acknowledges entries, whoever holds them. The witness's bucket goes
// first and alone: if the witness is lost, nothing else may change.
func (c *consumer) Ack(ctx context.Context, ids []queue.ID, witness queue.ID) error {
	if err := c.ack(ctx, ids, witness); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	c.signal()
	return nil
}

func (c *consumer) ack(ctx context.Context, ids []queue.ID, witness queue.ID) error {
	byBucket := groupByBucket(ids)
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
	for bucket, ids := range byBucket {
		if len(ids) > 0 {
			failures = append(failures, c.ackBucket(ctx, bucket, ids, queue.ID{}))
		}
	}
	return cmp.Or(failures...)
}

// groupByBucket leaves out ids of other queues.
func groupByBucket(ids []queue.ID) (of [buckets][]queue.ID) {
	for _, id := range ids {
		if bucket, ok := bucketNamed(id.Stream); ok {
			of[bucket] = append(of[bucket], id)
		}
	}
	return of
}

// ackBucket acknowledges entries of one bucket; with a witness also none.
func (c *consumer) ackBucket(ctx context.Context, bucket int, ids []queue.ID, witness queue.ID) error {
	for first := true; first || len(ids) > 0; first = false {
		step := ids[:min(len(ids), ackMost)]
		ids = ids[len(step):]
		tallies, err := c.tallies(ctx, bucket, step)
		if err != nil {
			return err
		}
		if _, err := c.queue.settle(ctx, bucket, tallies, witness); err != nil {
			return err
		}
		c.mu.Lock()
		c.held.settle(bucket, step)
		c.copies.forget(step)
		c.mu.Unlock()
	}
	return nil
}

// tallied is an entry to acknowledge.
type tallied struct {
	id queue.ID
	tally
}

// tallies finds what the sum has to lose. Entries that this consumer did not
// receive are read from the stream; those that are not there, or not to be
// read, are left out.
func (c *consumer) tallies(ctx context.Context, bucket int, ids []queue.ID) ([]tallied, error) {
	known := make([]tallied, 0, len(ids))
	var commands rueidis.Commands
	var asked []queue.ID
	c.mu.Lock()
	for _, id := range ids {
		t, ok := c.held.find(bucket, id)
		if !ok {
			t, ok = c.copies[id]
		}
		if ok {
			known = append(known, tallied{id, t})
			continue
		}
		text := entryID(id)
		commands = append(commands, c.queue.client.B().Xrange().Key(c.queue.keys.out(bucket)).Start(text).End(text).Build())
		asked = append(asked, id)
	}
	c.mu.Unlock()
	if len(commands) == 0 {
		return known, nil
	}
	for i, result := range c.queue.send(ctx, commands) {
		entries, err := result.AsXRange()
		if err != nil && !rueidis.IsRedisNil(err) {
			return nil, fmt.Errorf("read entry %s of %s: %w", entryID(asked[i]), streamName(bucket), err)
		}
		for _, e := range entries {
			if head, err := entryformat.DecodeHead(e.FieldValues["h"]); err == nil {
				known = append(known, tallied{asked[i], tallyOf(asked[i], head.ProductID, e.FieldValues)})
			}
		}
	}
	return known, nil
}

// settle runs the acknowledgement of one bucket, and reports whether there may
// be more to trim.
func (q *outboxQueue) settle(ctx context.Context, bucket int, entries []tallied, witness queue.ID) (more bool, err error) {
	call := q.settlement(bucket, witness)
	slices.SortStableFunc(entries, func(a, b tallied) int { return cmp.Compare(a.product, b.product) })
	for len(entries) > 0 {
		product, n := entries[0].product, 1
		for n < len(entries) && entries[n].product == product {
			n++
		}
		call.keys = append(call.keys, q.keys.open(bucket, product))
		call.args = append(call.args, strconv.FormatUint(uint64(product), 10), strconv.Itoa(n))
		for _, e := range entries[:n] {
			call.args = append(call.args, entryID(e.id), strconv.FormatInt(e.claims, 10))
		}
		entries = entries[n:]
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

// witnessLost is the script's reply to a witness that it does not find.
const witnessLost = -1

// settlement is an acknowledgement of nothing.
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

// Lost asks for witnesses by acknowledgements of nothing, all at once. One of
// another queue is lost here.
func (q *outboxQueue) Lost(ctx context.Context, witnesses []queue.ID) (lost []queue.ID, err error) {
	var calls []queueCall
	var asked []queue.ID
	for _, id := range witnesses {
		bucket, ok := bucketNamed(id.Stream)
		switch {
		case ok:
			calls, asked = append(calls, q.settlement(bucket, id)), append(asked, id)
		case !id.IsZero(): // an empty witness says nothing
			lost = append(lost, id)
		}
	}
	var failures []error
	for i, result := range q.glance(ctx, ackScript, calls...) {
		verdict, err := result.AsInt64()
		if err != nil {
			failures = append(failures, fmt.Errorf("ask for the witness of %s: %w", asked[i].Stream, err))
		} else if verdict == witnessLost {
			lost = append(lost, asked[i])
		}
	}
	return lost, cmp.Or(failures...)
}

// trim shortens a stream by some steps, and reports whether there is more.
func (q *outboxQueue) trim(ctx context.Context, bucket int) (more bool, err error) {
	for range trimSteps {
		if more, err = q.settle(ctx, bucket, nil, queue.ID{}); err != nil || !more {
			break
		}
	}
	return more, err
}
