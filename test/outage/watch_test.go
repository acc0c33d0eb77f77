package outage

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"seckill/test/market"
)

const (
	watchEvery = 100 * time.Millisecond
	watchMost  = 2 * time.Second // for one look; the store may be away
	inOne      = 500             // ids in one statement
)

// watch looks into the store all the while, and notes when it first saw that
// units were free again, or that a change of stock was settled. It trusts the
// order in which the store writes: an order's end, the row of the stock log and
// the debt of its release are one commit, and the debt is settled only when the
// ledger has heard.
type watch struct {
	db      *sql.DB
	changes func() []market.StockChange
	cancel  context.CancelFunc
	ended   chan struct{}

	mu      sync.Mutex
	seen    map[uint32]int64     // per product, the last row of the stock log
	waiting map[string]bool      // orders that have ended, whose units may not be back
	back    map[string]time.Time // and those whose units are: since when at the latest
	settled map[string]settled   // changes of stock
	absent  map[string]time.Time // and until when they were not recorded, at the least
	// again are orders whose release is owed once more: a ledger that was rebuilt
	// has adopted them, and held their units for a while.
	again map[string]time.Time
	held  []while
}

// settled is how a change of stock ended, and since when at the latest.
type settled struct {
	at   time.Time
	done bool // not refused
}

// while is a time in which an order's units may not have been free.
type while struct {
	no       string
	from, to time.Time
}

// newWatch begins to look.
func newWatch(db *sql.DB, changes func() []market.StockChange) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{
		db: db, changes: changes, cancel: cancel, ended: make(chan struct{}),
		seen: make(map[uint32]int64), waiting: make(map[string]bool), back: make(map[string]time.Time),
		settled: make(map[string]settled), absent: make(map[string]time.Time), again: make(map[string]time.Time),
	}
	go func() {
		defer close(w.ended)
		for market.Pause(ctx, watchEvery) {
			w.look(ctx) // what fails is looked at again: the store is away
		}
	}()
	return w
}

// stop ends it.
func (w *watch) stop() {
	w.cancel()
	<-w.ended
	w.db.Close()
}

func (w *watch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchMost)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.lookAtLog(ctx); err != nil {
		return err
	}
	if err := w.lookAtReleases(ctx); err != nil {
		return err
	}
	return w.lookAtChanges(ctx)
}

const (
	// logReturned is the type of a row of the stock log by which units came back.
	logReturned = 2
	logSince    = `SELECT product_id, seq, type, COALESCE(order_no, '') FROM tb_stock_log WHERE product_id = ? AND seq > ?`
)

// lookAtLog notes orders whose units the store has taken back since.
func (w *watch) lookAtLog(ctx context.Context) error {
	var products []uint32
	err := w.each(ctx, `SELECT id FROM tb_seckill_product`, nil, func(row *sql.Rows) error {
		var id uint32
		err := row.Scan(&id)
		products = append(products, id)
		return err
	})
	if err != nil || len(products) == 0 {
		return err
	}
	var parts []string
	var args []any
	for _, id := range products {
		parts, args = append(parts, logSince), append(args, id, w.seen[id])
	}
	return w.each(ctx, strings.Join(parts, " UNION ALL "), args, func(row *sql.Rows) error {
		var id uint32
		var seq int64
		var kind int
		var no string
		if err := row.Scan(&id, &seq, &kind, &no); err != nil {
			return err
		}
		w.seen[id] = max(w.seen[id], seq)
		if kind == logReturned {
			w.waiting[no] = true
		}
		return nil
	})
}

// lookAtReleases notes which of them the ledger has heard of: those that ended
// before, and of which nothing is owed now.
func (w *watch) lookAtReleases(ctx context.Context) error {
	owed := make(map[string]bool)
	err := w.each(ctx, `SELECT order_no FROM tb_seckill_order WHERE release_time IS NOT NULL AND release_epoch IS NOT NULL`, nil, func(row *sql.Rows) error {
		var no string
		err := row.Scan(&no)
		owed[no] = true
		return err
	})
	if err != nil {
		return err
	}
	now := time.Now()
	for no := range w.waiting {
		if !owed[no] {
			delete(w.waiting, no)
			w.back[no] = now
		}
	}
	for no := range owed {
		if _, before := w.again[no]; !before && !w.back[no].IsZero() {
			w.again[no] = now
		}
	}
	for no, since := range w.again {
		if !owed[no] {
			delete(w.again, no)
			w.held = append(w.held, while{no, since.Add(-returnWithin), now})
		}
	}
	return nil
}

// lookAtChanges notes which changes of stock are recorded, and which are settled.
func (w *watch) lookAtChanges(ctx context.Context) error {
	var open []any
	for _, c := range w.changes() {
		if _, known := w.settled[c.ID]; !known {
			open = append(open, c.ID)
		}
	}
	for part := range slices.Chunk(open, inOne) {
		began, recorded := time.Now(), make(map[string]bool)
		query := `SELECT id, status FROM tb_stock_change WHERE id IN (?` + strings.Repeat(",?", len(part)-1) + `)`
		err := w.each(ctx, query, part, func(row *sql.Rows) error {
			var id, status string
			if err := row.Scan(&id, &status); err != nil {
				return err
			}
			recorded[id] = true
			if status != "open" {
				w.settled[id] = settled{time.Now(), status == "done"}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, id := range part {
			if !recorded[id.(string)] {
				w.absent[id.(string)] = began
			}
		}
	}
	return nil
}

// each reads rows.
func (w *watch) each(ctx context.Context, query string, args []any, take func(row *sql.Rows) error) error {
	rows, err := w.db.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	return rows.Err()
}
