package ledgermem

import (
	"context"
	"database/sql"
	"fmt"

	"seckill/internal/ledger"
)

// Ping reports whether the journal can be written. It commits a write that changes nothing, so
// it notices a full disk before a buyer does.
func (l *Ledger) Ping(ctx context.Context) error {
	err := l.chore(ctx, func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, query("touch"))
		return err
	})
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// EachBuyer names every buyer whom one of the limit groups remembers, by a live
// order or by a key. It holds up the scribe: call it before traffic begins. Groups
// of an embedded ledger can be read together or not at all, so unread is not called.
func (l *Ledger) EachBuyer(ctx context.Context, groups []ledger.BuyerGroup, visit func(group uint32, buyer string), _ func(uint32, error)) error {
	wanted := make(map[uint32]bool, len(groups))
	for _, g := range groups {
		wanted[g.ID] = true
	}
	return l.submit(ctx, func(r *round) error {
		for _, sh := range r.state.shards {
			if !wanted[sh.group.id] {
				continue
			}
			for i := range sh.stripes {
				for buyer := range sh.stripes[i].marks {
					visit(sh.group.id, buyer)
				}
			}
		}
		return nil
	})
}
