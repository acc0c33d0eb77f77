package ledgermem

import (
	"context"
	"database/sql"
	"fmt"
)

// Ping reports whether the journal can be written: it commits a write that
// changes nothing. A full disk shows here before a buyer sees it.
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

// EachBuyer names every buyer whom a limit group remembers, by a live order or
// by a key. It holds up the scribe: call it before traffic begins.
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
