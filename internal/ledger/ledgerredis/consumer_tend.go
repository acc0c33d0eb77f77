package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/queue"
)

const (
	// signsPerSilence is how many signs of life a living consumer gives before
	// it would count as silent: it may miss some.
	signsPerSilence = 4
	// forgetAfter is after how many silences a consumer that holds nothing is
	// forgotten. If it lives, its next read makes it known again.
	forgetAfter = 4
	// trimSteps is how many steps of trimming a bucket gets at one tending.
	trimSteps = 8
	// tendAgain is when to go on with what one tending did not finish,
	// tendRetry with what it could not do.
	tendAgain = 10 * time.Millisecond
	tendRetry = 500 * time.Millisecond
)

// live gives signs of life from the consumer's making until it leaves or its
// ledger does, also while nobody calls it: a worker that waits for its store
// is not dead, and taking over what it holds would help nobody.
func (c *consumer) live() {
	for {
		c.mu.Lock()
		due := time.Until(c.tendAt)
		c.mu.Unlock()
		timer := time.NewTimer(min(max(due, tendRetry), c.queue.silence/signsPerSilence))
		select {
		case <-timer.C:
		case <-c.closing:
			timer.Stop()
			return
		case <-c.queue.stop.Done():
			timer.Stop()
			return
		}
		c.signal()
	}
}

func (c *consumer) tendDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !time.Now().Before(c.tendAt)
}

// tended is what the server says of one bucket.
type tended struct {
	bucket                        int
	mine, returned, spare, beyond int64
}

// tend gives the sign of life in every bucket, takes over from the silent,
// trims what acknowledgements left, and finds what this consumer holds without
// knowing.
func (c *consumer) tend(ctx context.Context) error {
	next := time.Now().Add(c.queue.silence / signsPerSilence)
	all, err := c.sign(ctx)
	for _, b := range all {
		more, failure := c.tidy(ctx, b)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("tidy %s: %w", streamName(b.bucket), failure))
		}
		if more {
			next = time.Now().Add(tendAgain)
		}
	}
	err = errors.Join(err, c.present(ctx))
	if err != nil {
		next = time.Now().Add(tendRetry)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tendAt = next
	return err
}

func (c *consumer) sign(ctx context.Context) ([]tended, error) {
	silence := c.queue.silence.Milliseconds()
	calls := make([]queueCall, buckets)
	for bucket := range calls {
		calls[bucket] = c.call(bucket, strconv.FormatInt(silence, 10), strconv.FormatInt(forgetAfter*silence, 10), strconv.Itoa(moveMost))
	}
	all := make([]tended, 0, buckets)
	var failures []error
	for bucket, result := range c.queue.runOnce(ctx, tendScript, calls...) {
		says, err := result.AsIntSlice()
		if err == nil && len(says) != 4 {
			err = fmt.Errorf("%d figures", len(says))
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("tend %s: %w", streamName(bucket), asLost(bucket, err)))
			continue
		}
		all = append(all, tended{bucket: bucket, mine: says[0], returned: says[1], spare: says[2], beyond: says[3]})
	}
	return all, several(failures)
}

// tidy acts on what tending has found in a bucket, and reports whether there
// is more to do.
func (c *consumer) tidy(ctx context.Context, b tended) (more bool, err error) {
	c.mu.Lock()
	known := int64(len(c.held[b.bucket]))
	if b.returned > 0 {
		c.schedule[b.bucket].due = time.Time{}
	}
	c.mu.Unlock()
	if b.mine != known {
		if err := c.recall(ctx, b.bucket); err != nil {
			return false, err
		}
	}
	more = b.beyond > 0
	if b.spare > trimSlack {
		left, err := c.queue.trim(ctx, b.bucket)
		if err != nil {
			return false, err
		}
		more = more || left
	}
	return more, nil
}

// recall lists what this consumer holds in a bucket, and hands back what it
// does not know of: the reply that brought it was lost.
func (c *consumer) recall(ctx context.Context, bucket int) error {
	var all []queue.ID
	for from := "-"; from != ""; {
		page, err := c.page(ctx, bucket, from)
		if err != nil {
			return fmt.Errorf("list what is held: %w", err)
		}
		all = append(all, page...)
		from = ""
		if len(page) == recallPage {
			from = "(" + entryID(page[len(page)-1])
		}
	}
	c.mu.Lock()
	strange := c.held.correct(bucket, all)
	c.mu.Unlock()
	return c.handBack(ctx, bucket, strange, false)
}

func (c *consumer) page(ctx context.Context, bucket int, from string) ([]queue.ID, error) {
	command := c.queue.client.B().Xpending().Key(c.queue.keys.out(bucket)).Group(workerGroup).
		Start(from).End("+").Count(recallPage).Consumer(c.name).Build()
	rows, err := c.queue.send(ctx, rueidis.Commands{command})[0].ToArray()
	if refusal, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(refusal.Error(), "NOGROUP") {
		return nil, nil // nobody holds anything
	}
	if err != nil {
		return nil, err
	}
	ids := make([]queue.ID, len(rows))
	for i := range rows {
		row, err := rows[i].ToArray()
		if err != nil || len(row) == 0 {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		text, err := row[0].ToString()
		if err != nil {
			return nil, fmt.Errorf("read an id: %w", err)
		}
		if ids[i], err = parseEntryID(bucket, text); err != nil {
			return nil, err
		}
	}
	return ids, nil
}
