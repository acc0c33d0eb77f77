package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// Stats returns the figures of unacknowledged entries: of one product from the buckets of its
// shards, or of all products.
func (q *outboxQueue) Stats(ctx context.Context, product uint32) (sum queue.Stats, err error) {
	var places []place
	if product == 0 {
		places, err = q.places(ctx)
	} else {
		for _, bucket := range q.homes(product) {
			places = append(places, place{bucket, product})
		}
	}
	for step := range slices.Chunk(places, statsMost) {
		if err == nil {
			err = q.addStats(ctx, step, &sum)
		}
	}
	if err != nil {
		return queue.Stats{}, fmt.Errorf("read figures of the queue: %w", err)
	}
	return sum, nil
}

// homes returns the buckets of a product's shards, or all buckets if the shards are unknown.
func (q *outboxQueue) homes(product uint32) []int {
	group, count := uint32(0), buckets // the shards of any group with enough shards are in all buckets
	if q.home != nil {
		if its, shards, known := q.home(product); known {
			group, count = its, min(shards, buckets)
		}
	}
	homes := make([]int, count)
	for i := range homes {
		homes[i] = bucketOf(group, i)
	}
	return homes
}

// statsMost bounds the places that are read together.
const statsMost = 512

// place is a product's part of a bucket.
type place struct {
	bucket  int
	product uint32
}

// places lists the products with waiting entries, by bucket.
func (q *outboxQueue) places(ctx context.Context) ([]place, error) {
	calls := make([]queueCall, buckets)
	for bucket := range calls {
		calls[bucket] = queueCall{keys: []string{q.keys.queue(bucket)}}
	}
	var all []place
	for bucket, result := range q.runBriefly(ctx, placesScript, calls...) {
		fields, err := result.AsStrSlice()
		if err != nil {
			return nil, err
		}
		for _, field := range fields {
			id, ok := strings.CutPrefix(field, "n:")
			if !ok {
				continue
			}
			product, err := strconv.ParseUint(id, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("field %q of %s: %w", field, streamName(bucket), err)
			}
			all = append(all, place{bucket, uint32(product)})
		}
	}
	return all, nil
}

func (q *outboxQueue) Waiting(ctx context.Context) ([]uint32, error) {
	places, err := q.places(ctx)
	if err != nil {
		return nil, fmt.Errorf("find products of the queue: %w", err)
	}
	products := make([]uint32, len(places))
	for i, p := range places {
		products[i] = p.product
	}
	slices.Sort(products)
	return slices.Compact(products), nil
}

func (q *outboxQueue) addStats(ctx context.Context, places []place, sum *queue.Stats) error {
	calls := make([]queueCall, len(places))
	for i, p := range places {
		calls[i] = queueCall{
			keys: []string{q.keys.out(p.bucket), q.keys.queue(p.bucket), q.keys.open(p.bucket, p.product)},
			args: []string{strconv.FormatUint(uint64(p.product), 10)},
		}
	}
	for i, result := range q.runBriefly(ctx, statsScript, calls...) {
		if err := addFigures(result, sum); err != nil {
			return fmt.Errorf("product %d in %s: %w", places[i].product, streamName(places[i].bucket), err)
		}
	}
	return nil
}

func addFigures(result rueidis.RedisResult, sum *queue.Stats) error {
	parts, err := result.ToArray()
	if err != nil || len(parts) == 1 {
		return err
	}
	if len(parts) != 3 {
		return fmt.Errorf("%d figures", len(parts))
	}
	var figures [2]int64
	for i := range figures {
		if figures[i], err = parts[i].AsInt64(); err != nil {
			return err
		}
	}
	sum.Entries += figures[0]
	sum.Reservations += figures[1]
	head, err := parts[2].ToString()
	if err != nil {
		return err
	}
	// The reader of the entry reports damage; figures ignore it.
	if entry, err := ledger.DecodeHead(head); (err == nil || errors.Is(err, ledger.ErrEntryVersion)) && (sum.Oldest.IsZero() || entry.At.Before(sum.Oldest)) {
		sum.Oldest = entry.At
	}
	return nil
}

// OutboxStats has figures of the streams and their consumers.
type OutboxStats struct {
	Length    int64     // entries in the streams, including acknowledged ones that are not trimmed yet
	Entries   int64     // unacknowledged
	Foreign   int64     // of these, entries that wait for a worker of their version
	Oldest    time.Time // time of the oldest unacknowledged entry; zero if there is none
	Consumers int       // live workers
	Relays    int       // live relays
}

func (q *outboxQueue) outboxStats(ctx context.Context) (OutboxStats, error) {
	stats, err := q.Stats(ctx, 0)
	if err != nil {
		return OutboxStats{}, err
	}
	figures := OutboxStats{Entries: stats.Entries, Oldest: stats.Oldest}
	calls := make([]queueCall, buckets)
	for bucket := range calls {
		calls[bucket] = queueCall{keys: []string{q.keys.out(bucket)}, args: []string{workerGroup, strconv.Itoa(ledger.EntryVersion)}}
	}
	for bucket, result := range q.runBriefly(ctx, lengthScript, calls...) {
		lengths, err := result.AsIntSlice()
		if err != nil || len(lengths) != 2 {
			return OutboxStats{}, fmt.Errorf("read the length of %s: %d figures, %w", streamName(bucket), len(lengths), err)
		}
		figures.Length += lengths[0]
		figures.Foreign += lengths[1]
	}
	figures.Consumers, figures.Relays, err = q.living(ctx)
	return figures, err
}
