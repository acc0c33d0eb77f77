package ledgerredis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"seckill"
)

// Unacknowledged reads the product's open entries, bucket by bucket. An entry
// that cannot be decoded is passed over: its consumer reports it.
func (q *outboxQueue) Unacknowledged(ctx context.Context, product uint32, see func(seckill.Entry) error) error {
	isHome := q.homeOf(product)
	for bucket := range buckets {
		if !isHome(bucket) {
			continue
		}
		for above := "0"; above != ""; {
			call := queueCall{
				keys: []string{q.keys.out(bucket), q.keys.open(bucket, product)},
				args: []string{above, strconv.Itoa(findStep), strconv.Itoa(findBytes)},
			}
			entries, next, err := readEntries(q.glance(ctx, unacknowledgedScript, call)[0])
			if err != nil {
				return fmt.Errorf("read what waits in %s: %w", streamName(bucket), err)
			}
			for _, entry := range entries {
				if err := see(entry); err != nil {
					return err
				}
			}
			above = next
		}
	}
	return nil
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
