package ledgermem

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"seckill/internal/fault"
)

// Bounds of the work that a compaction adds to one round, so that the round's callers wait at
// most a few milliseconds longer.
const (
	stepBytes   = 256 << 10 // of snapshots; one piece may be larger
	stepScan    = 4096      // pieces examined
	trimRows    = 2048
	sweepPieces = 8
	pageBytes   = 4096
	commitPages = 3 // approximate pages that a commit writes besides its bodies
)

// growth counts the writes since the last cycle and checkpoint. Only the scribe uses it, except
// for the sizes that cycles set.
type growth struct {
	rows, bytes int64
	pages       int64
	snapshots   atomic.Int64 // bytes of the last cycle's pieces
	cycle       sync.Mutex   // one cycle at a time
}

// noteGrowth wakes compactor and checkpointer when they are due.
func (l *Ledger) noteGrowth(rows, bytes int) {
	g := &l.growth
	g.rows += int64(rows)
	g.bytes += int64(bytes)
	g.pages += int64(bytes/pageBytes + commitPages)
	if g.pages >= checkpointPages {
		g.pages = 0
		wake(l.checkpointAt)
	}
	if g.rows >= l.opt.CompactRows || g.bytes >= max(l.opt.CompactBytes, g.snapshots.Load()) {
		g.rows, g.bytes = 0, 0
		wake(l.compactNow)
	}
}

func wake(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// checkpointer copies the write-ahead log into the file, concurrently with the scribe.
func (l *Ledger) checkpointer() {
	ctx, cancel := l.untilStop()
	defer cancel()
	for {
		select {
		case <-l.checkpointAt:
		case <-ctx.Done():
			return
		}
		pages, err := l.journal.checkpoint(ctx, l.journal.db, "PASSIVE")
		if err != nil && ctx.Err() == nil {
			l.log.Warn("checkpoint of the journal failed", "error", err)
			continue
		}
		l.walPages.Store(int64(pages))
	}
}

// compactor runs a cycle after enough writes.
func (l *Ledger) compactor() {
	ctx, cancel := l.untilStop()
	defer cancel()
	for {
		select {
		case <-l.compactNow:
		case <-ctx.Done():
			return
		}
		if err := l.Compact(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("compaction of the journal failed; it is retried when the journal has grown", "error", err)
		}
	}
}

// untilStop returns a context that ends when the ledger is shut down.
func (l *Ledger) untilStop() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-l.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// cycle is one compaction. It writes all pieces that are dirty at its start, and then deletes
// rows up to the floor.
type cycle struct {
	*Ledger
	shards []*shard
	epochs []uint64 // of the shards, at the start
	shard  int      // position of the scan
	stripe int

	newFloor uint64
	pieces   int
	bytes    int64 // of snapshots
	deleted  int64 // rows
}

// Compact runs one compaction cycle now, concurrently with other calls.
func (l *Ledger) Compact(ctx context.Context) error {
	l.growth.cycle.Lock()
	defer l.growth.cycle.Unlock()
	c := &cycle{Ledger: l}
	begun := time.Now()
	for _, phase := range []func(context.Context) error{c.begin, c.save, c.sweepOld, c.trim} {
		if err := phase(ctx); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
	}
	l.growth.snapshots.Store(c.bytes)
	l.log.Info("journal compacted", "pieces", c.pieces, "bytes", c.bytes,
		"deleted", c.deleted, "floor", c.newFloor, "took", time.Since(begun))
	return nil
}

// begin sets the floor. Each piece is clean now or will be written later, so none will need a
// row up to the floor.
func (c *cycle) begin(ctx context.Context) error {
	return c.submit(ctx, func(r *round) error {
		c.newFloor = r.lastSeq()
		for _, sh := range r.state.shards {
			c.shards, c.epochs = append(c.shards, sh), append(c.epochs, sh.epoch)
		}
		return nil
	})
}

// save writes dirty pieces, a few per round.
func (c *cycle) save(ctx context.Context) error {
	for c.shard < len(c.shards) {
		if err := c.submit(ctx, func(r *round) error { c.saveSome(r); return nil }); err != nil {
			return err
		}
	}
	return nil
}

func (c *cycle) saveSome(r *round) {
	var size int
	for scanned := 0; c.shard < len(c.shards) && size < stepBytes && scanned < stepScan; scanned++ {
		sh := c.shards[c.shard]
		if c.stripe < len(sh.stripes) {
			size += c.saveStripe(r, sh, c.stripe)
			c.stripe++
			continue
		}
		size += c.saveFigures(r, sh)
		c.shard, c.stripe = c.shard+1, 0
	}
}

func (c *cycle) saveStripe(r *round, sh *shard, i int) int {
	st := &sh.stripes[i]
	if st.changed <= st.saved {
		return 0
	}
	key, seq := pieceKey{sh.key, sh.epoch, i}, r.lastSeq()
	body := encodeStripe(key, seq, st.marks)
	c.put(r, key, seq, body, func() { st.saved = seq })
	return len(body)
}

func (c *cycle) saveFigures(r *round, sh *shard) int {
	if sh.changed <= sh.saved {
		return 0
	}
	key, seq := pieceKey{shardKey: sh.key, stripe: figuresStripe}, r.lastSeq()
	body := encodeFigures(key, seq, sh)
	c.put(r, key, seq, body, func() { sh.saved = seq })
	return len(body)
}

func (c *cycle) put(r *round, key pieceKey, seq uint64, body []byte, saved func()) {
	r.chores = append(r.chores, func(ctx context.Context, conn *sql.Conn) error {
		return putSnapshot(ctx, conn, key, seq, body)
	})
	r.after = append(r.after, saved)
	c.pieces++
	c.bytes += int64(len(body))
}

func putSnapshot(ctx context.Context, conn *sql.Conn, key pieceKey, seq uint64, body []byte) error {
	_, err := conn.ExecContext(ctx, query("put_snapshot"),
		int64(key.product), int64(key.index), int64(key.epoch), key.stripe, int64(seq), body)
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// sweepOld deletes stripes of older epochs and of failed installs. The figures in the file have
// the epochs at the start of the cycle or higher ones, so no later start loads the deleted
// stripes.
func (c *cycle) sweepOld(ctx context.Context) error {
	for i, sh := range c.shards {
		if err := c.sweep(ctx, sh.key, 0, c.epochs[i]-1); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes a shard's stripes of some epochs.
func (l *Ledger) sweep(ctx context.Context, key shardKey, from, to uint64) error {
	for swept := int64(sweepPieces); swept == sweepPieces; {
		err := l.chore(ctx, func(ctx context.Context, conn *sql.Conn) error {
			res, err := conn.ExecContext(ctx, query("sweep_snapshots"),
				int64(key.product), int64(key.index), int64(from), int64(to), sweepPieces)
			if err != nil {
				return err
			}
			swept, err = res.RowsAffected()
			return err
		})
		if err != nil {
			return fmt.Errorf("sweep snapshots: %w", err)
		}
	}
	return nil
}

// trim raises the floor and deletes rows up to it that are not needed.
func (c *cycle) trim(ctx context.Context) error {
	fault.Point("ledger.compact.between")
	if err := c.chore(ctx, c.raiseFloor); err != nil {
		return fmt.Errorf("raise floor: %w", err)
	}
	c.floor.Store(c.newFloor)
	for from, more := int64(0), true; more; {
		var deleted int64
		err := c.chore(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
			from, deleted, more, err = trimSome(ctx, conn, from)
			return err
		})
		if err != nil {
			return fmt.Errorf("trim rows: %w", err)
		}
		c.deleted += deleted
		c.rows.Add(-deleted)
	}
	return nil
}

func (c *cycle) raiseFloor(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, query("set_floor"), int64(c.newFloor))
	return err
}

// trimSome examines rows after from and deletes those that no start needs. It keeps
// unacknowledged entries and the witness. It returns the position where to continue.
func trimSome(ctx context.Context, conn *sql.Conn, from int64) (to, deleted int64, more bool, err error) {
	var last sql.NullInt64
	if err := conn.QueryRowContext(ctx, query("select_trim"), from, trimRows).Scan(&last); err != nil || !last.Valid {
		return 0, 0, false, err
	}
	res, err := conn.ExecContext(ctx, query("delete_rows"), from, last.Int64)
	if err != nil {
		return 0, 0, false, err
	}
	deleted, err = res.RowsAffected()
	return last.Int64, deleted, true, err
}
