package ledgerredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
	"seckill/internal/queue"
)

const (
	// trimSteps is the number of trimming steps per bucket and tending.
	trimSteps = 8
	// tendAgain is the pause before unfinished tending continues, tendRetry the pause after a
	// failure.
	tendAgain = 10 * time.Millisecond
	tendRetry = 500 * time.Millisecond
)

func (c *consumer) tendDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !time.Now().Before(c.tendAt)
}

// tended is the server's report on one bucket.
type tended struct {
	bucket                        int
	mine, returned, spare, beyond int64
	holders                       []string
}

// tend does three things in every bucket: it takes over entries of dead consumers, trims
// acknowledged entries, and finds entries that this consumer holds without knowing.
func (c *consumer) tend(ctx context.Context) error {
	next := time.Now().Add(c.queue.silence)
	all, err := c.takeOver(ctx)
	for _, b := range all {
		more, failure := c.tidy(ctx, b)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("tidy %s: %w", streamName(b.bucket), failure))
		}
		if more {
			next = time.Now().Add(tendAgain)
		}
	}
	if err != nil {
		next = time.Now().Add(tendRetry)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tendAt = next
	if c.died {
		c.tendAt = time.Time{}
	}
	return err
}

// takeOver returns entries of dead consumers to the queue, and reads which consumers hold
// entries.
func (c *consumer) takeOver(ctx context.Context) ([]tended, error) {
	c.mu.Lock()
	dead := c.others.dead(time.Now())
	c.died = false
	c.mu.Unlock()
	args := []string{strconv.FormatInt(forgetAfter.Milliseconds(), 10), strconv.Itoa(moveMost), strconv.Itoa(ledger.EntryVersion), strconv.Itoa(len(dead))}
	args = append(args, dead...)
	calls := make([]queueCall, buckets)
	for bucket := range calls {
		calls[bucket] = c.call(bucket, args...)
	}
	all := make([]tended, 0, buckets)
	holders := make(map[string]bool)
	var failures []error
	for bucket, result := range c.queue.runOnce(ctx, tendScript, calls...) {
		b, err := readTended(bucket, result)
		if err != nil {
			failures = append(failures, fmt.Errorf("tend %s: %w", streamName(bucket), err))
			continue
		}
		all = append(all, b)
		for _, name := range b.holders {
			holders[name] = true
		}
	}
	for _, name := range dead { // they may have more, or hold entries in a bucket that did not answer
		holders[name] = len(failures) > 0 || slices.ContainsFunc(all, func(b tended) bool { return b.beyond > 0 })
	}
	maps.DeleteFunc(holders, func(_ string, holds bool) bool { return !holds })
	c.mu.Lock()
	c.others.holders(holders, time.Now())
	c.mu.Unlock()
	return all, cmp.Or(failures...)
}

func readTended(bucket int, result rueidis.RedisResult) (tended, error) {
	parts, err := result.ToArray()
	if err != nil {
		return tended{}, err
	}
	if len(parts) < 4 {
		return tended{}, fmt.Errorf("%d figures", len(parts))
	}
	b := tended{bucket: bucket}
	for i, figure := range []*int64{&b.mine, &b.returned, &b.spare, &b.beyond} {
		if *figure, err = parts[i].AsInt64(); err != nil {
			return tended{}, err
		}
	}
	for i := range parts[4:] {
		name, err := parts[4+i].ToString()
		if err != nil {
			return tended{}, err
		}
		b.holders = append(b.holders, name)
	}
	return b, nil
}

// tidy processes the report on a bucket, and reports whether more must be done.
func (c *consumer) tidy(ctx context.Context, b tended) (more bool, err error) {
	c.mu.Lock()
	known := int64(len(c.held[b.bucket]))
	if b.returned > 0 {
		c.schedule[b.bucket].due = time.Time{}
	}
	c.mu.Unlock()
	if b.mine != known {
		if err := c.returnUnknown(ctx, b.bucket); err != nil {
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

// returnUnknown lists the entries that this consumer holds in a bucket, and returns unknown
// ones to the queue: the reply that brought them was lost.
func (c *consumer) returnUnknown(ctx context.Context, bucket int) error {
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
	return c.returnEntries(ctx, bucket, strange)
}

func (c *consumer) page(ctx context.Context, bucket int, from string) ([]queue.ID, error) {
	command := c.queue.client.B().Xpending().Key(c.queue.keys.out(bucket)).Group(workerGroup).
		Start(from).End("+").Count(recallPage).Consumer(c.name).Build()
	rows, err := c.queue.send(ctx, rueidis.Commands{command})[0].ToArray()
	if refusal, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(refusal.Error(), "NOGROUP") {
		return nil, nil // no consumer holds entries
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
