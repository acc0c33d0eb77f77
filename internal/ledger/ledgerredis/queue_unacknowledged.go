package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"seckill"
)

// Unacknowledged reads the product's open entries, bucket by bucket. An entry
// that cannot be decoded is passed over: its consumer reports it.
func (q *outboxQueue) Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error {
	isHome := q.homeOf(product)
	var unread []error
	for bucket := range buckets {
		if !isHome(bucket) {
			continue
		}
		readable, err := q.readOpen(ctx, bucket, product, see)
		if readable && err != nil {
			return err
		}
		if err != nil { // of a Cluster, one master may be away
			unread = append(unread, fmt.Errorf("read what waits in %s: %w", streamName(bucket), err))
		}
	}
	return errors.Join(unread...)
}

// readOpen reads the product's open entries of one bucket. An error is see's if
// the bucket is readable.
func (q *outboxQueue) readOpen(ctx context.Context, bucket int, product uint32, see func(seckill.Entry) error) (readable bool, err error) {
	for above := "0"; above != ""; {
		call := queueCall{
			keys: []string{q.keys.out(bucket), q.keys.open(bucket, product)},
			args: []string{above, strconv.Itoa(findStep), strconv.Itoa(findBytes)},
		}
		entries, next, err := readEntries(q.glance(ctx, unacknowledgedScript, call)[0])
		if err != nil {
			return false, err
		}
		for _, entry := range entries {
			if err := see(entry); err != nil {
				return true, err
			}
		}
		above = next
	}
	return true, nil
}

// readEntries takes one step's reply. Next is where the next step begins, empty
// at the end.
func readEntries(result rueidis.RedisResult) (entries []seckill.Entry, next string, err error) {
	texts, err := result.AsStrSlice()
	if err != nil {
		return nil, "", err
	}
	if len(texts)%3 != 1 {
		return nil, "", fmt.Errorf("%w: %d parts", errReply, len(texts))
	}
	for at := 1; at < len(texts); at += 3 {
		if entry, err := decodeEntry(texts[at], texts[at+1], texts[at+2]); err == nil {
			entries = append(entries, entry)
		}
	}
	return entries, texts[0], nil
}
