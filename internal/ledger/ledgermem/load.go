package ledgermem

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"

	"seckill/internal/queue"
)

// Rows between two progress messages of the loader, and entries that it publishes at a time.
const (
	progressRows = 100_000
	publishBatch = 1024
)

// piece is a stripe's snapshot until its shard's epoch is known.
type piece struct {
	seq   uint64
	marks map[string]mark
}

// loader rebuilds the state: snapshots first, then every newer row.
type loader struct {
	*Ledger
	state   *state
	floor   uint64
	witness queue.ID
	pieces  map[pieceKey]piece
	entries []item
	rows    int64
	last    uint64
	bytes   int64
	found   bool // whether the witness's row was read
}

func (l *Ledger) load(ctx context.Context) error {
	begun := time.Now()
	ld := &loader{Ledger: l, state: l.cur.state, pieces: map[pieceKey]piece{}}
	steps := []func(context.Context) error{ld.loadMeta, ld.loadSnapshots, ld.loadRows, ld.check}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return ld.damaged(ctx, err)
		}
	}
	l.cur.base = ld.last
	l.witness = ld.witness
	l.rows.Store(ld.rows)
	l.floor.Store(ld.floor)
	l.growth.rows, l.growth.bytes = int64(ld.last-ld.floor), ld.bytes
	l.log.Info("journal loaded", "path", l.journal.path, "rows", ld.rows, "last", ld.last,
		"shards", len(ld.state.shards), "unacked", l.outbox.stats(0).Entries, "took", time.Since(begun))
	return nil
}

// damaged classifies an error of a step. If neither SQLite nor the context caused it, a value
// has another type than its column, which is damage.
func (ld *loader) damaged(ctx context.Context, err error) error {
	where := fmt.Sprintf("row %d or later", ld.last+1)
	var lite *sqlite.Error
	var known *DamageError
	if ctx.Err() == nil && !errors.As(err, &lite) && !errors.As(err, &known) {
		return ld.damage(where, err)
	}
	return damaged(ld.journal.path, where, err)
}

func (ld *loader) damage(where string, err error) error {
	return &DamageError{Path: ld.journal.path, Where: where, Err: err}
}

func (ld *loader) loadMeta(ctx context.Context) error {
	var floor, seq, tag int64
	err := ld.journal.db.QueryRowContext(ctx, query("select_meta")).Scan(&floor, &seq, &tag)
	if errors.Is(err, sql.ErrNoRows) {
		return ld.damage("its head", errors.New("the meta row is missing"))
	}
	if err != nil {
		return err
	}
	if floor < 0 || seq < 0 {
		return ld.damage("its head", errRange)
	}
	ld.floor, ld.last = uint64(floor), uint64(floor)
	if seq > 0 {
		ld.witness = queue.ID{Stream: stream, Seq: uint64(seq), Tag: uint64(tag)}
	}
	return nil
}

func (ld *loader) loadSnapshots(ctx context.Context) error {
	rows, err := ld.journal.db.QueryContext(ctx, query("select_snapshots"))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var product, index, epoch, stripe, seq int64
		var body sql.RawBytes
		if err := rows.Scan(&product, &index, &epoch, &stripe, &seq, &body); err != nil {
			return err
		}
		key := pieceKey{shardKey{uint32(product), uint32(index)}, uint64(epoch), int(stripe)}
		if err := ld.loadPiece(key, uint64(seq), body); err != nil {
			return ld.damage(fmt.Sprintf("snapshot of product %d shard %d stripe %d", product, index, stripe), err)
		}
	}
	return rows.Err()
}

func (ld *loader) loadPiece(key pieceKey, seq uint64, body []byte) error {
	if key.stripe != figuresStripe {
		marks, err := decodeStripe(key, seq, body, &ld.state.texts)
		ld.pieces[key] = piece{seq: seq, marks: marks}
		return err
	}
	sh, group, err := decodeFigures(key, seq, body)
	if err != nil {
		return err
	}
	sh.saved = max(seq, ld.floor)
	ld.state.shards[sh.key] = sh
	ld.state.join(nil, sh, group)
	return nil
}

// attach gives the shard the stripes of its epoch from snapshots. A stripe without a snapshot
// was empty at the floor.
func (ld *loader) attach(sh *shard) {
	for i := range sh.stripes {
		st := &sh.stripes[i]
		st.saved = ld.floor
		key := pieceKey{sh.key, sh.epoch, i}
		if p, ok := ld.pieces[key]; ok {
			st.marks, st.saved, st.changed = p.marks, max(p.seq, ld.floor), p.seq
			delete(ld.pieces, key)
		}
	}
}

// loadRows replays the rows onto the snapshots.
func (ld *loader) loadRows(ctx context.Context) error {
	for _, sh := range ld.state.shards {
		ld.attach(sh)
	}
	rows, err := ld.journal.db.QueryContext(ctx, query("select_rows"))
	if err != nil {
		return err
	}
	defer rows.Close()
	said := time.Now()
	for rows.Next() {
		var seq, kind, acked int64
		var body sql.RawBytes
		if err := rows.Scan(&seq, &kind, &acked, &body); err != nil {
			return err
		}
		if err := ld.loadRow(uint64(seq), kind, acked, body); err != nil {
			return ld.damage(fmt.Sprintf("row %d", seq), err)
		}
		if ld.rows%progressRows == 0 || ld.rows%1024 == 0 && time.Since(said) > defaultProgressEvery {
			said = time.Now()
			ld.log.Info("loading the journal", "path", ld.journal.path, "rows", ld.rows, "at", seq)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	ld.publish(0)
	return rows.Err()
}

func (ld *loader) loadRow(seq uint64, kind, acked int64, body []byte) error {
	if kind < 1 || kind > int64(lastRowKind) {
		return fmt.Errorf("unknown kind %d", kind)
	}
	if acked != 0 && acked != 1 || acked == 0 && rowKind(kind) != rowEntry {
		return fmt.Errorf("unknown acknowledgement %d", acked)
	}
	if seq > ld.floor {
		if seq != ld.last+1 {
			return fmt.Errorf("rows %d to %d are missing", ld.last+1, seq-1)
		}
		ld.last = seq
		ld.bytes += int64(len(body))
	}
	ld.rows++
	payload, err := rowKind(kind).context(seq).unseal(body)
	if err != nil {
		return err
	}
	d := &decoder{b: payload}
	if rowKind(kind) == rowEntry {
		if err := ld.index(seq, acked == 0, decoder{b: payload}, body); err != nil {
			return err
		}
	}
	if seq <= ld.floor { // every snapshot contains it
		return nil
	}
	return ld.replay(seq, rowKind(kind), d)
}

// index adds an unacknowledged entry to the outbox, and notes the witness.
func (ld *loader) index(seq uint64, waits bool, d decoder, body []byte) error {
	h := d.entryHead()
	if d.err != nil {
		return d.err
	}
	if seq == ld.witness.Seq {
		if h.tag != ld.witness.Tag {
			return errors.New("the entry is not the one that the store confirmed")
		}
		ld.found = true
	}
	if !waits {
		return nil
	}
	ld.entries = append(ld.entries, item{
		seq: seq, tag: h.tag, at: h.at.UnixNano(), product: h.key.product,
		claims: uint32(h.claims), body: bytes.Clone(body),
	})
	ld.publish(publishBatch)
	return nil
}

func (ld *loader) publish(least int) {
	if len(ld.entries) > least {
		ld.outbox.publish(ld.entries)
		clear(ld.entries)
		ld.entries = ld.entries[:0]
	}
}

// check finds damage that no single row shows.
func (ld *loader) check(context.Context) error {
	if !ld.witness.IsZero() && !ld.found {
		return ld.damage(fmt.Sprintf("row %d", ld.witness.Seq), errors.New("the last entry that the store confirmed is missing"))
	}
	for _, sh := range ld.state.shards {
		if err := sh.check(); err != nil {
			return ld.damage(fmt.Sprintf("product %d shard %d", sh.key.product, sh.key.index), err)
		}
	}
	return nil
}

// check compares the shard's figures with each other and with its marks.
func (sh *shard) check() error {
	if err := sh.balance(); err != nil {
		return err
	}
	var units, orders int64
	for i := range sh.stripes {
		for _, m := range sh.stripes[i].marks {
			units += m.liveUnits()
			for j := range m.size() {
				if m.at(j).live() {
					orders++
				}
			}
		}
	}
	if units != sh.marked || orders != sh.orders {
		return fmt.Errorf("marks hold %d units of %d orders, the figures say %d of %d", units, orders, sh.marked, sh.orders)
	}
	return nil
}
