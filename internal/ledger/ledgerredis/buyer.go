package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
)

// scanCount is the approximate number of marks that one step of EachBuyer reads.
const scanCount = 512

// scanTimeout bounds one step, which takes a millisecond or two. It is longer than the time in
// which a frozen server is noticed, and it also ends the retries of a server that refuses
// connections.
const scanTimeout = time.Second

// Group is the port's name for a limit group and its shards.
type Group = ledger.BuyerGroup

// EachBuyer calls see with every buyer that the groups remember by a live order or a key. A
// buyer that is remembered during the whole call is passed at least once, perhaps more often.
// Other calls run between its steps.
//
// If a group's marks are damaged (ledger.ErrDamaged), or its master does not answer, EachBuyer
// calls unread for the group and continues with the others.
func (l *Ledger) EachBuyer(
	ctx context.Context, groups []Group, see func(group uint32, buyer string), unread func(group uint32, err error),
) error {
	away := make(map[int]error) // buckets that do not answer, with the cause
	for _, g := range groups {
		err := l.eachBuyerOf(ctx, g, away, func(buyer string) { see(g.ID, buyer) })
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if err != nil {
			unread(g.ID, err)
		}
	}
	return nil
}

// eachBuyerOf continues after a shard that cannot be read.
func (l *Ledger) eachBuyerOf(ctx context.Context, g Group, away map[int]error, see func(buyer string)) (failed error) {
	for index := range g.Shards {
		shard := ledger.Shard{Group: g.ID, Index: index}
		bucket := bucketOf(g.ID, index)
		err := away[bucket]
		if err == nil {
			err = asDamage(l.eachBuyer(ctx, l.keys.mark(shard), see))
			if err != nil && !errors.Is(err, ledger.ErrDamaged) {
				maps.Copy(away, l.unreachableWith(ctx, bucket, err))
			}
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("scan the buyers of group %d, shard %d: %w", g.ID, index, err))
		}
	}
	return failed
}

// unreachableWith finds the other buckets that fail like one that did not answer. They probably
// belong to the same master, and each of them would cost as much time.
func (l *Ledger) unreachableWith(ctx context.Context, silent int, cause error) map[int]error {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	away := map[int]error{silent: cause}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for bucket := range buckets {
		if bucket == silent {
			continue
		}
		asked.Go(func() {
			if _, err := l.call.runUnreplicated(ctx, nowScript, []string{l.keys.queue(bucket)}, nil); err != nil {
				mu.Lock()
				defer mu.Unlock()
				away[bucket] = err
			}
		})
	}
	asked.Wait()
	return away
}

func (l *Ledger) eachBuyer(ctx context.Context, key string, see func(buyer string)) error {
	pace := newPace(scanCount)
	for cursor := "0"; ; {
		reply, err := l.scan(ctx, key, cursor, pace.count())
		if err != nil {
			return err
		}
		found, err := reply.AsStrSlice()
		if err != nil || len(found) < 2 {
			return fmt.Errorf("%w: %d parts, %w", errReply, len(found), err)
		}
		bytes, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %w", errReply, err)
		}
		pace.saw(bytes)
		for _, buyer := range found[2:] {
			see(buyer)
		}
		if cursor = found[0]; cursor == "0" {
			return nil
		}
	}
}

func (l *Ledger) scan(ctx context.Context, key, cursor, count string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	return l.call.runUnreplicated(ctx, scanScript, []string{key}, []string{cursor, count})
}
