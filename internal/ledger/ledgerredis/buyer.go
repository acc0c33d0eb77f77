package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"seckill/internal/ledger"
)

// scanCount is about how many marks one step of EachBuyer reads at most.
const scanCount = 512

// Group is a limit group and over how many shards it is spread.
type Group struct {
	ID     uint32
	Shards int
}

// EachBuyer names every buyer whom the groups remember, by a live order or by
// a key; one that is remembered all the while at least once, perhaps more
// often. Others are served between its steps.
//
// A group whose marks are damaged (ledger.ErrDamaged) keeps nobody from the
// buyers of the others: it is told as damaged.
func (l *Ledger) EachBuyer(
	ctx context.Context, groups []Group, see func(group uint32, buyer string), damaged func(group uint32, err error),
) error {
	for _, g := range groups {
		err := l.eachBuyerOf(ctx, g, func(buyer string) { see(g.ID, buyer) })
		switch {
		case errors.Is(err, ledger.ErrDamaged):
			damaged(g.ID, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// eachBuyerOf goes on past a shard whose marks are damaged.
func (l *Ledger) eachBuyerOf(ctx context.Context, g Group, see func(buyer string)) (damage error) {
	for index := range g.Shards {
		key := l.keys.mark(ledger.Shard{Group: g.ID, Index: index})
		err := asDamage(l.eachBuyer(ctx, key, see))
		if err == nil {
			continue
		}
		err = fmt.Errorf("scan the buyers of group %d, shard %d: %w", g.ID, index, err)
		if !errors.Is(err, ledger.ErrDamaged) {
			return err
		}
		damage = err
	}
	return damage
}

func (l *Ledger) eachBuyer(ctx context.Context, key string, see func(buyer string)) error {
	pace := newPace(scanCount)
	for cursor := "0"; ; {
		reply, err := l.call.told(ctx, scanScript, []string{key}, []string{cursor, pace.count()})
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
