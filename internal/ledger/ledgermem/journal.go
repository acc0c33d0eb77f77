package ledgermem

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"seckill/internal/datadir"
	"seckill/internal/fault"
)

// Bounds of the file and its connections.
const (
	journalAppID     = 0x5345434B // "SECK"
	busyTimeoutMS    = 5000
	readConns        = 4
	walKeepBytes     = 64 << 20 // a longer write-ahead log is truncated when it restarts
	checkpointPages  = 1000     // of the background checkpoint; SQLite's default
	walPressurePages = 16384    // 64 MiB: beyond this the scribe checkpoints too, because the background checkpoint cannot keep up
)

//go:embed sql
var sqlFiles embed.FS

// query returns a statement's text. A missing file is a build error, so it panics.
func query(name string) string {
	text, err := sqlFiles.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// row is a journal row to write.
type row struct {
	seq   uint64
	kind  rowKind
	acked bool
	body  []byte
}

// journal is the file. One connection writes, used by the scribe alone. The pool reads and
// checkpoints.
type journal struct {
	path string
	lock *os.File
	db   *sql.DB
	w    *writer // nil after a failed commit, until it is opened again

	// beforeCommit lets tests make a commit fail.
	beforeCommit func() error
}

// writer is the writing connection and its prepared statements.
type writer struct {
	conn                    *sql.Conn
	begin, commit, rollback *sql.Stmt
	insert, ack             *sql.Stmt
}

func openJournal(ctx context.Context, path string) (_ *journal, err error) {
	// The lock is not on the database file, because closing any descriptor of that file would
	// drop SQLite's own locks.
	lock, err := datadir.Lock(ctx, path+".lock")
	if err != nil {
		return nil, fmt.Errorf("open journal: lock %s.lock; the embedded ledger serves one process: %w", path, err)
	}
	j := &journal{path: path, lock: lock}
	defer func() {
		if err != nil {
			j.close()
		}
	}()
	_, statErr := os.Stat(path)
	// The file contains buyers, so only its owner may read it. SQLite would use the umask.
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		f.Close() // SQLite reports errors better
	}
	if j.db, err = sql.Open("sqlite", dsn(path)); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j.db.SetMaxOpenConns(readConns + 1)
	if err := j.prepare(ctx); err != nil {
		return nil, fmt.Errorf("open journal: %w", damaged(path, "its head", err))
	}
	if errors.Is(statErr, os.ErrNotExist) {
		if err := datadir.Sync(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("open journal: %w", err)
		}
	}
	return j, nil
}

func dsn(path string) string {
	pragmas := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeoutMS),
		"journal_mode(wal)",
		"synchronous(full)", // fsync the write-ahead log at every commit (I4)
		"wal_autocheckpoint(0)",
		fmt.Sprintf("journal_size_limit(%d)", walKeepBytes),
		"cache_size(-8000)",
	}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + pragmas.Encode()
}

// prepare opens the writing connection and creates or checks the schema.
func (j *journal) prepare(ctx context.Context) error {
	if err := j.openWriter(ctx); err != nil {
		return err
	}
	var app, tables int
	if err := j.w.conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return err
	}
	if err := j.w.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if tables > 0 && app != journalAppID {
		return &DamageError{Path: j.path, Where: "its head", Err: errors.New("an SQLite file of another kind")}
	}
	script := fmt.Sprintf("BEGIN IMMEDIATE; PRAGMA application_id = %d; %s; COMMIT", journalAppID, query("schema"))
	if _, err := j.w.conn.ExecContext(ctx, script); err != nil {
		return err
	}
	return j.prepareWriter(ctx)
}

func (j *journal) openWriter(ctx context.Context) error {
	conn, err := j.db.Conn(ctx)
	if err != nil {
		return err
	}
	j.w = &writer{conn: conn}
	return nil
}

func (j *journal) prepareWriter(ctx context.Context) (err error) {
	prepare := func(text string) *sql.Stmt {
		if err != nil {
			return nil
		}
		var stmt *sql.Stmt
		stmt, err = j.w.conn.PrepareContext(ctx, text)
		return stmt
	}
	j.w.begin, j.w.commit, j.w.rollback = prepare("BEGIN IMMEDIATE"), prepare("COMMIT"), prepare("ROLLBACK")
	j.w.insert, j.w.ack = prepare(query("insert_row")), prepare(query("ack_row"))
	return err
}

// commit writes a round in one transaction. After an error nothing of it is in the file, with
// one exception: if the COMMIT statement itself failed, the outcome is unknown until last is
// read.
func (j *journal) commit(ctx context.Context, r *round) error {
	if j.w == nil {
		if err := j.openWriter(ctx); err != nil {
			return err
		}
		if err := j.prepareWriter(ctx); err != nil {
			j.dropWriter()
			return err
		}
	}
	if _, err := j.w.begin.ExecContext(ctx); err != nil {
		j.dropWriter()
		return fmt.Errorf("begin: %w", err)
	}
	err := j.write(ctx, r)
	if err == nil && j.beforeCommit != nil {
		err = j.beforeCommit()
	}
	if err == nil {
		fault.Point("ledger.before_commit")
		_, err = j.w.commit.ExecContext(ctx)
		fault.Point("ledger.after_commit")
	}
	if err != nil {
		if _, undone := j.w.rollback.ExecContext(ctx); undone != nil {
			j.dropWriter()
		}
		return err
	}
	return nil
}

func (j *journal) write(ctx context.Context, r *round) error {
	for i := range r.rows {
		row := &r.rows[i]
		if _, err := j.w.insert.ExecContext(ctx, int64(row.seq), int64(row.kind), row.acked, row.body); err != nil {
			return fmt.Errorf("append row %d: %w", row.seq, err)
		}
	}
	for _, seq := range r.acks {
		if _, err := j.w.ack.ExecContext(ctx, int64(seq)); err != nil {
			return fmt.Errorf("acknowledge row %d: %w", seq, err)
		}
	}
	if !r.witness.IsZero() {
		if _, err := j.w.conn.ExecContext(ctx, query("set_witness"), int64(r.witness.Seq), int64(r.witness.Tag)); err != nil {
			return fmt.Errorf("set witness: %w", err)
		}
	}
	for _, chore := range r.chores {
		if err := chore(ctx, j.w.conn); err != nil {
			return err
		}
	}
	return nil
}

// dropWriter gives the connection up, with any transaction that could not be rolled back.
func (j *journal) dropWriter() {
	if j.w == nil {
		return
	}
	// The pool closes a connection that returns ErrBadConn.
	_ = j.w.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = j.w.conn.Close()
	j.w = nil
}

// last returns the number of the last row that the file ever had.
func (j *journal) last(ctx context.Context) (uint64, error) {
	var last int64
	if err := j.db.QueryRowContext(ctx, query("select_last")).Scan(&last); err != nil {
		return 0, fmt.Errorf("read last row: %w", err)
	}
	return uint64(last), nil
}

// entryTag returns the tag of an entry row, if it is still in the file.
func (j *journal) entryTag(ctx context.Context, seq uint64) (tag uint64, ok bool, err error) {
	var kind int64
	var body []byte
	err = j.db.QueryRowContext(ctx, query("select_row"), int64(seq)).Scan(&kind, &body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("read row %d: %w", seq, err)
	case rowKind(kind) != rowEntry:
		return 0, false, nil
	}
	_, tag, err = decodeEntry(seq, body)
	return tag, err == nil, err
}

// checkpoint copies the write-ahead log into the file without blocking the writer. It returns
// the log's length in pages.
func (j *journal) checkpoint(ctx context.Context, conn interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, mode string) (pages int, err error) {
	var busy, copied int
	if err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &pages, &copied); err != nil {
		return 0, fmt.Errorf("checkpoint: %w", err)
	}
	return pages, nil
}

// bytes returns the size of the file and its write-ahead log.
func (j *journal) bytes() (total int64) {
	for _, path := range []string{j.path, j.path + "-wal"} {
		if info, err := os.Stat(path); err == nil {
			total += info.Size()
		}
	}
	return total
}

// close may be called several times.
func (j *journal) close() error {
	var errs []error
	if j.w != nil {
		errs = append(errs, j.w.conn.Close())
		j.w = nil
	}
	if j.db != nil {
		errs = append(errs, j.db.Close())
	}
	if j.lock != nil {
		errs = append(errs, j.lock.Close())
		j.lock = nil
	}
	return errors.Join(errs...)
}
