package ledgermem

import (
	"context"
	"database/sql"
	"fmt"
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

// EachBuyer calls see with every buyer that a limit group remembers by a live order or a key.
// It blocks the scribe, so call it before traffic begins.
func (l *Ledger) EachBuyer(ctx context.Context, see func(group uint32, buyer string)) error {
	return l.submit(ctx, func(r *round) error {
		for _, sh := range r.state.shards {
			for i := range sh.stripes {
				for buyer := range sh.stripes[i].marks {
					see(sh.group.id, buyer)
				}
			}
		}
		return nil
	})
}
