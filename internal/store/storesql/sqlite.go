package storesql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"seckill"
	"seckill/internal/store"
)

//go:embed migration/sqlite/*.sql
var sqliteMigrations embed.FS

const (
	// busyWait is how long SQLite itself waits for another process's lock. This wait cannot be
	// interrupted, so it is short, and begin repeats it.
	busyWait = 20 * time.Millisecond

	sqliteReaders = 4 // connections: how many reads run at once
	// Buyers arrive in random order. Each order changes a page of two indexes, and SQLite logs
	// whole pages. 2 KiB pages made Confirm 15% cheaper than SQLite's 4096.
	pageBytes = 2048
	// A checkpoint copies the pages of the log into the file. At 32 MiB instead of SQLite's 4
	// MiB, a page that every batch changes is copied less often.
	checkpointPages = 16384
	logBytes        = 64 << 20 // the log file is truncated to this after a checkpoint
	writerCacheKiB  = 64 << 10 // holds the busy ends of a dozen indexes
	readerCacheKiB  = 8 << 10
)

// sqliteDB is one SQLite file with one connection for writes and a few for reads.
//
// SQLite allows one writer at a time. Writers queue for it in Go, where a deadline ends the
// wait, and not in SQLite's busy loop, where it would not.
type sqliteDB struct {
	path  string
	log   *slog.Logger
	clock func() time.Time

	turn      chan struct{} // holds a token while a transaction writes
	writePool *sql.DB       // one connection
	conn      *sql.Conn     // that connection, nil after it failed; only for the holder of turn
	writer    *session      // a session on conn

	readPool *sql.DB
	reader   *session

	// sick is set when a write failed, for example because the disk was full. Until a write
	// succeeds again, ping must write and commit.
	sick   atomic.Bool
	closed atomic.Bool
}

func openSQLite(ctx context.Context, path string, opt Options) (*sqliteDB, error) {
	if path == "" || path == ":memory:" {
		return nil, errors.New("sqlite needs the path of a file")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// Orders contain buyers, so only the owner may read the file. SQLite gives its log and
	// index files the same mode.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	db := &sqliteDB{path: path, log: opt.Logger, clock: opt.Now, turn: make(chan struct{}, 1)}
	if db.writePool, err = sql.Open("sqlite", db.uri(
		fmt.Sprintf("page_size(%d)", pageBytes), "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)",
		// SQLite keeps undo data of a multi-row statement in a temporary file, which cost a
		// fifth of Confirm.
		"temp_store(MEMORY)",
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
		fmt.Sprintf("journal_size_limit(%d)", logBytes),
		fmt.Sprintf("cache_size(-%d)", writerCacheKiB),
	)); err != nil {
		return nil, err
	}
	db.writePool.SetMaxOpenConns(1)
	if db.readPool, err = sql.Open("sqlite", db.uri(
		"query_only(ON)", fmt.Sprintf("cache_size(-%d)", readerCacheKiB),
	)); err != nil {
		return nil, errors.Join(err, db.writePool.Close())
	}
	db.readPool.SetMaxOpenConns(sqliteReaders)
	db.readPool.SetMaxIdleConns(sqliteReaders)
	db.reader = newPrepared(db.readPool, &sqliteDialect)
	if err := db.ping(ctx); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

func (db *sqliteDB) uri(pragmas ...string) string {
	values := url.Values{"_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds())}, pragmas...)}
	values.Set("_error_rc", "1")
	return (&url.URL{Scheme: "file", Path: db.path, RawQuery: values.Encode()}).String()
}

func (db *sqliteDB) close() error {
	db.turn <- struct{}{}
	defer func() { <-db.turn }()
	db.closed.Store(true)
	errs := []error{db.dropConn(), db.reader.close(), db.readPool.Close(), db.writePool.Close()}
	return errors.Join(errs...)
}

// now is the process's clock, because the store runs in the process.
func (db *sqliteDB) now() time.Time { return db.clock() }

func (db *sqliteDB) sync(context.Context) error { return nil }

// takeTurn waits until no other transaction writes.
func (db *sqliteDB) takeTurn(ctx context.Context) error {
	select {
	case db.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write runs fn in one transaction, which it commits if fn returns nil.
func (db *sqliteDB) write(ctx context.Context, fn func(tx *session) error) (err error) {
	defer func() { err = db.failed(err) }()
	if err := db.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-db.turn }()
	if err := db.begin(ctx); err != nil {
		return err
	}
	ended := false
	defer func() { // also if fn panics
		if !ended {
			db.rollback()
		}
	}()
	if err := fn(db.writer); err != nil {
		return err
	}
	// ctx does not interrupt the commit. It is short, and an interruption would only leave the
	// outcome unknown.
	if _, err := db.conn.ExecContext(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		return err
	}
	ended = true
	db.sick.Store(false)
	return nil
}

// begin opens a transaction that has SQLite's write lock from the start, so that no later
// statement can fail to get it.
func (db *sqliteDB) begin(ctx context.Context) error {
	if db.conn == nil {
		conn, err := db.writePool.Conn(ctx)
		if err != nil {
			return err
		}
		db.conn, db.writer = conn, newPrepared(conn, &sqliteDialect)
	}
	for {
		_, err := db.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		if errorCode(err) != sqlite3.SQLITE_BUSY {
			return err
		}
		// Another process writes. SQLite has waited busyWait already.
		if ctx.Err() != nil {
			return err
		}
	}
}

// rollback ends the transaction, or drops the connection if it cannot. After some errors SQLite
// has rolled back by itself.
func (db *sqliteDB) rollback() {
	_, err := db.conn.ExecContext(context.Background(), "ROLLBACK")
	if err == nil || errorCode(err) == sqlite3.SQLITE_ERROR { // "no transaction is active"
		return
	}
	db.log.Warn("store: rollback failed, the connection is replaced", "error", err)
	if err := db.dropConn(); err != nil {
		db.log.Warn("store: close connection", "error", err)
	}
}

// dropConn closes the writing connection. The next begin opens another.
func (db *sqliteDB) dropConn() error {
	if db.conn == nil {
		return nil
	}
	conn, writer := db.conn, db.writer
	db.conn, db.writer = nil, nil
	errClose := writer.close() // statements must be closed before their connection
	// ErrBadConn makes the pool close the connection instead of reusing it.
	err := conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) {
		err = nil
	}
	return errors.Join(errClose, err)
}

// read runs fn on one of the reading connections.
func (db *sqliteDB) read(_ context.Context, fn func(r *session) error) error {
	return db.failed(fn(db.reader))
}

// snapshot runs fn on one snapshot of the file, while others may write.
func (db *sqliteDB) snapshot(ctx context.Context, fn func(r *session) error) (err error) {
	defer func() { err = db.failed(err) }()
	conn, err := db.readPool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	r := newPrepared(conn, &sqliteDialect)
	defer func() {
		_, end := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		err = errors.Join(err, r.close(), end)
	}()
	return fn(r)
}

// ping takes the write lock and releases it. That reveals a file that is readable but not
// writable. It writes nothing, so it cannot reveal a full disk: after a failed write, ping
// commits a write.
func (db *sqliteDB) ping(ctx context.Context) error {
	if err := db.snapshot(ctx, func(r *session) error {
		_, err := r.exec(ctx, "SELECT 1 FROM sqlite_schema LIMIT 1")
		return err
	}); err != nil {
		return err
	}
	errRollback := errors.New("nothing to write")
	err := db.write(ctx, func(tx *session) error {
		if !db.sick.Load() {
			return errRollback
		}
		_, err := acquireLease(ctx, tx, pingLease, pingLease, 0, 0, 0)
		return err
	})
	if err == errRollback {
		return nil
	}
	return err
}

// migrate applies the missing migrations, each in a transaction.
//
// Another process may migrate at the same time. While it writes, SQLite answers busy, and we
// try again. It may commit a migration between our check and our transaction. Then our
// transaction fails and is undone, and the next check finds the migration done. That can happen
// once per migration.
func (db *sqliteDB) migrate(ctx context.Context) (err error) {
	defer func() { err = db.failed(err) }()
	if err := db.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-db.turn }()
	pool, err := db.migrationPool()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	latest, err := latestMigration(sqliteMigrations)
	if err != nil {
		return err
	}
	for lost := int64(0); ; {
		err := migrateUp(ctx, goose.DialectSQLite3, pool, sqliteMigrations, "migration/sqlite", db.log)
		busy := errorCode(err) == sqlite3.SQLITE_BUSY
		if err == nil || ctx.Err() != nil || !busy && lost == latest {
			return err
		}
		if !busy {
			lost++
		}
	}
}

func (db *sqliteDB) version(ctx context.Context) (current, latest int64, err error) {
	err = db.read(ctx, func(r *session) error {
		migrated, err := r.row(ctx, sqlVersionTable, nil, new(int64))
		if err != nil || !migrated {
			return err
		}
		_, err = r.row(ctx, sqlVersion, nil, &current)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	latest, err = latestMigration(sqliteMigrations)
	return current, latest, err
}

// migrationPool is one connection whose transactions take the write lock at the start.
func (db *sqliteDB) migrationPool() (*sql.DB, error) {
	pool, err := sql.Open("sqlite", db.uri("synchronous(FULL)", "foreign_keys(ON)")+"&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	return pool, nil
}

// errorCode returns SQLite's primary result code, or 0 for another error.
func errorCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// taken reports whether a unique key refused a row.
func taken(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// failed maps an error of the database to one of the port.
func (db *sqliteDB) failed(err error) error {
	var refusal *seckill.Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	switch errorCode(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		db.sick.Store(true)
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s is damaged or not a database; stop, keep a copy, and restore it from a backup: %w", db.path, err)
	}
	if taken(err) {
		return fmt.Errorf("%w: %w", errTaken, err)
	}
	late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if late || db.closed.Load() || errors.Is(err, driver.ErrBadConn) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}
