package ledgerredis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"seckill"
)

const (
	// findStep bounds the entries that one step looks at, and findBytes the claims
	// after which it looks at no more: a step of the largest is a matter of
	// milliseconds.
	findStep  = 64
	findBytes = 1 << 20
)

// Find looks for an order in the buckets of the product's shards, in all of them
// at once.
func (q *outboxQueue) Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool, error) {
	isHome := q.homeOf(product)
	var searches []search
	for bucket := range buckets {
		if isHome(bucket) {
			searches = append(searches, search{bucket: bucket, above: "0", left: most})
		}
	}
	for len(searches) > 0 {
		calls := make([]queueCall, len(searches))
		for i, s := range searches {
			calls[i] = queueCall{
				keys: []string{q.keys.out(s.bucket), q.keys.open(s.bucket, product)},
				args: []string{string(no[:]), s.above, strconv.Itoa(min(findStep, s.left)), strconv.Itoa(findBytes)},
			}
		}
		further := searches[:0]
		for i, result := range q.glance(ctx, findScript, calls...) {
			s := searches[i]
			entry, found, err := s.read(result, no)
			if err != nil {
				return seckill.Entry{}, false, fmt.Errorf("look through %s: %w", streamName(s.bucket), err)
			}
			if found {
				return entry, true, nil
			}
			if s.above != "" && s.left > 0 {
				further = append(further, s)
			}
		}
		searches = further
	}
	return seckill.Entry{}, false, nil
}

// search is how far one bucket was looked through.
type search struct {
	bucket int
	above  string // SEQ; empty at the end
	left   int    // entries that may still be looked at
}

// read takes one step's reply. The number's bytes may be part of something else.
func (s *search) read(result rueidis.RedisResult, no seckill.OrderNo) (entry seckill.Entry, found bool, err error) {
	parts, err := result.ToArray()
	if err != nil {
		return entry, false, err
	}
	if len(parts) != 2 && len(parts) != 5 {
		return entry, false, fmt.Errorf("%w: %d parts", errReply, len(parts))
	}
	looked, err := parts[0].AsInt64()
	if err != nil {
		return entry, false, fmt.Errorf("%w: %w", errReply, err)
	}
	texts := make([]string, len(parts)-1)
	for i := range texts {
		if texts[i], err = parts[i+1].ToString(); err != nil {
			return entry, false, fmt.Errorf("%w: %w", errReply, err)
		}
	}
	s.above, s.left = texts[0], s.left-int(looked)
	if len(texts) == 1 {
		return entry, false, nil
	}
	if entry, err = decodeEntry(texts[1], texts[2], texts[3]); err != nil {
		return seckill.Entry{}, false, nil // who is to write it tells that it cannot be read
	}
	entry = entryOf(entry, no)
	return entry, entry.ProductID != 0, nil
}
