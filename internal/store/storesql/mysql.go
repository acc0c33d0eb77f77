package storesql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mysqlDB is a database on a MySQL or MariaDB server. It has one pool of connections for writes
// and one for reads, so that neither can use up the other's.
type mysqlDB struct {
	log       *slog.Logger
	cfg       *mysql.Config
	writePool *sql.DB
	readPool  *sql.DB
	clock     *serverClock

	// sick is set when the server could not serve, for example because its disk is full. Until
	// a write succeeds again, ping must write and commit.
	sick   atomic.Bool
	closed atomic.Bool
}

func openMySQL(ctx context.Context, address string, opt Options) (*mysqlDB, error) {
	cfg, err := mysqlConfig(address, opt)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	connector, err := newConnector(cfg, opt.Timeout)
	if err != nil {
		return nil, err
	}
	db := &mysqlDB{log: opt.Logger, cfg: cfg, clock: newServerClock()}
	writers := max(1, opt.MaxConns/2)
	db.writePool = newPool(connector, writers)
	db.readPool = newPool(connector, max(1, opt.MaxConns-writers))
	if err := db.ping(ctx); err != nil {
		if refused := refusal(err); refused != nil {
			err = refused
		}
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

func newPool(connector driver.Connector, most int) *sql.DB {
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	pool.SetConnMaxIdleTime(poolIdle)
	pool.SetConnMaxLifetime(connLife)
	return pool
}

func (db *mysqlDB) close() error {
	db.closed.Store(true)
	return errors.Join(db.writePool.Close(), db.readPool.Close())
}

func (db *mysqlDB) now() time.Time { return db.clock.now() }

func (db *mysqlDB) sync(ctx context.Context) error {
	return db.failed(db.clock.sync(ctx, newDirect(db.readPool, &mysqlDialect)))
}

// write runs fn in one transaction at READ COMMITTED.
func (db *mysqlDB) write(ctx context.Context, fn func(tx *session) error) (err error) {
	defer func() { err = db.failed(err) }()
	conn, err := begin(ctx, db.writePool, "START TRANSACTION")
	if err != nil {
		return err
	}
	open := true
	defer func() { // also if fn panics
		if open {
			undo(ctx, conn, err)
		}
		conn.Close()
	}()
	tx := newBulk(conn, &mysqlDialect)
	if err := db.clock.sync(ctx, tx); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	// Unlike SQLite's, this commit may hang with the network, so it ends with ctx. The outcome
	// is unknown then, as the port says.
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return err
	}
	open = false
	db.sick.Store(false)
	return nil
}

// maxBegins bounds the connections on which one transaction tries to begin. The pool itself
// finds most connections that were dropped.
const maxBegins = 10

// begin opens a transaction on a connection of the pool. It replaces a connection that the
// server has dropped while it was idle in the pool. It pauses between attempts, in case the
// server drops new connections too.
func begin(ctx context.Context, pool *sql.DB, statements ...string) (*sql.Conn, error) {
	for try := 1; ; try++ {
		conn, err := beginOnce(ctx, pool, statements)
		if err == nil || !errors.Is(err, driver.ErrBadConn) || try == maxBegins {
			return conn, err
		}
		if pause(ctx, min(maxPause, time.Millisecond<<try)) != nil {
			return nil, err
		}
	}
}

func beginOnce(ctx context.Context, pool *sql.DB, statements []string) (*sql.Conn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	err = conn.Raw(func(conn any) error { return conn.(*mysqlConn).allow(ctx) })
	for _, statement := range statements {
		if err == nil {
			_, err = conn.ExecContext(ctx, statement)
		}
	}
	if err != nil {
		drop(conn)
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// undo rolls back, or drops the connection so that the server rolls back. It does not ask a
// server that has not answered.
func undo(ctx context.Context, conn *sql.Conn, cause error) {
	if ctx.Err() == nil && !lostConnection(cause) {
		if _, err := conn.ExecContext(ctx, "ROLLBACK"); err == nil {
			return
		}
	}
	drop(conn)
}

// drop makes the pool close the connection instead of reusing it.
func drop(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

// read runs fn on one of the reading connections.
func (db *mysqlDB) read(ctx context.Context, fn func(r *session) error) error {
	r := newDirect(db.readPool, &mysqlDialect)
	if err := db.clock.sync(ctx, r); err != nil {
		return db.failed(err)
	}
	return db.failed(fn(r))
}

// snapshot runs fn on one snapshot of the database, while others may write.
func (db *mysqlDB) snapshot(ctx context.Context, fn func(r *session) error) (err error) {
	defer func() { err = db.failed(err) }()
	conn, err := begin(ctx, db.readPool,
		"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
	if err != nil {
		return err
	}
	defer func() {
		undo(ctx, conn, err)
		conn.Close()
	}()
	return fn(newDirect(conn, &mysqlDialect))
}

// ping runs a write that matches no row. A read-only server refuses it. It cannot reveal a full
// disk, so after a failure ping writes and commits.
func (db *mysqlDB) ping(ctx context.Context) error {
	errRollback := errors.New("nothing to write")
	err := db.write(ctx, func(tx *session) error {
		if db.sick.Load() {
			_, err := acquireLease(ctx, tx, pingLease, pingLease, 0, 0, 0)
			return err
		}
		if _, err := tx.exec(ctx, sqlReleaseLease, pingLease, ""); err != nil {
			return err
		}
		return errRollback
	})
	switch {
	case err == errRollback:
		return nil
	case mysqlCode(err) == mysqlNoTable: // not migrated yet
		db.sick.Store(false)
		return nil
	}
	return err
}
