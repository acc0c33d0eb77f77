package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"seckill"
)

const (
	// pageMost bounds the entries of one step. After pageBytes of claims it reads no more. The
	// largest step takes milliseconds.
	pageMost  = 64
	pageBytes = 1 << 20
	// pagesAtOnce bounds the buckets that are read together. More would need more memory for
	// pages; fewer would lose more time with an unavailable master.
	pagesAtOnce = 16
)

// Unacknowledged reads the product's unacknowledged entries, some buckets at a time.
func (q *outboxQueue) Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error {
	var unread []error
	for homes := range slices.Chunk(q.homes(product), pagesAtOnce) {
		for entry, err := range q.unacknowledged(ctx, homes, product) {
			if err != nil { // one master of a Cluster may be unavailable
				unread = append(unread, err)
				continue
			}
			if err := see(entry); err != nil {
				return err
			}
		}
	}
	return errors.Join(unread...)
}

func (q *outboxQueue) Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool, error) {
	for _, bucket := range q.homes(product) {
		looked := 0
		for entry, err := range q.unacknowledged(ctx, []int{bucket}, product) {
			if err != nil {
				return seckill.Entry{}, false, err
			}
			if looked++; looked > most {
				break
			}
			if entry = entryOf(entry, no); entry.ProductID != 0 {
				return entry, true, nil
			}
		}
	}
	return seckill.Entry{}, false, nil
}

// unacknowledged iterates over one product's unacknowledged entries in some buckets, oldest
// first within each. A bucket that cannot be read gives an error, and the others continue.
func (q *outboxQueue) unacknowledged(ctx context.Context, in []int, product uint32) iter.Seq2[seckill.Entry, error] {
	type place struct {
		bucket int
		above  string
	}
	return func(yield func(seckill.Entry, error) bool) {
		var left []place
		for _, bucket := range in {
			left = append(left, place{bucket, "0"})
		}
		for len(left) > 0 {
			now := left
			left = nil
			calls := make([]queueCall, len(now))
			for i, at := range now {
				calls[i] = queueCall{
					keys: []string{q.keys.out(at.bucket), q.keys.open(at.bucket, product)},
					args: []string{at.above, strconv.Itoa(pageMost), strconv.Itoa(pageBytes)},
				}
			}
			for i, result := range q.runBriefly(ctx, unacknowledgedScript, calls...) {
				entries, next, err := readEntries(result)
				for _, entry := range entries {
					if !yield(entry, nil) {
						return
					}
				}
				if err != nil && !yield(seckill.Entry{}, fmt.Errorf("read unacknowledged entries in %s: %w", streamName(now[i].bucket), err)) {
					return
				}
				if next != "" {
					left = append(left, place{now[i].bucket, next})
				}
			}
		}
	}
}

// readEntries decodes one step's reply. next is where the next step begins, or "" at the end.
// Entries that cannot be decoded give an error besides the others.
func readEntries(result rueidis.RedisResult) (entries []seckill.Entry, next string, err error) {
	texts, err := result.AsStrSlice()
	if err != nil {
		return nil, "", err
	}
	if len(texts)%3 != 1 {
		return nil, "", fmt.Errorf("%w: %d parts", errReply, len(texts))
	}
	for at := 1; at < len(texts); at += 3 {
		entry, failure := decodeEntry(texts[at], texts[at+1], texts[at+2])
		if failure != nil {
			err = fmt.Errorf("an entry stays in the outbox: %w", failure)
			continue
		}
		entries = append(entries, entry)
	}
	return entries, texts[0], err
}
