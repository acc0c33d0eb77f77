package ledgerredis

import (
	"context"
	"fmt"
	"strconv"

	"seckill/internal/ledger"
)

// scanCount is about how many marks one step of EachBuyer reads.
const scanCount = 512

// Group is a limit group and over how many shards it is spread.
type Group struct {
	ID     uint32
	Shards int
}

// EachBuyer names every buyer whom the groups remember, by a live order or by
// a key; one that is remembered all the while at least once, perhaps more
// often. Others are served between its steps.
func (l *Ledger) EachBuyer(ctx context.Context, groups []Group, see func(group uint32, buyer string)) error {
	for _, g := range groups {
		for index := range g.Shards {
			key := l.keys.mark(ledger.Shard{Group: g.ID, Index: index})
			if err := l.eachBuyer(ctx, key, func(buyer string) { see(g.ID, buyer) }); err != nil {
				return fmt.Errorf("scan the buyers of group %d, shard %d: %w", g.ID, index, err)
			}
		}
	}
	return nil
}

func (l *Ledger) eachBuyer(ctx context.Context, key string, see func(buyer string)) error {
	for cursor := "0"; ; {
		reply, err := l.call.told(ctx, scanScript, []string{key}, []string{cursor, strconv.Itoa(scanCount)})
		if err != nil {
			return err
		}
		found, err := reply.AsStrSlice()
		if err != nil || len(found) == 0 {
			return fmt.Errorf("%w: %w", errReply, err)
		}
		for _, buyer := range found[1:] {
			see(buyer)
		}
		if cursor = found[0]; cursor == "0" {
			return nil
		}
	}
}
