// Package storesql keeps the store in an SQL database: embedded SQLite, or MySQL and MariaDB.
//
// The tables are in migration/, one folder per database. Statements are constants next to the
// method that runs them, in SQL that all databases understand. The few that differ are in
// dialect.go. Other differences, such as connections, transactions and errors, are behind
// database.go. session.go runs statements.
package storesql

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"seckill/internal/alert"
	"seckill/internal/fault"
	"seckill/internal/store"
)

// Options configure a Store. The zero value works.
type Options struct {
	Logger *slog.Logger
	// Now is the clock of an embedded store. A server has its own.
	Now func() time.Time
	// Random makes the ids of payments and refunds. A provider must never see an id twice.
	Random io.Reader
	// Timeout bounds a call whose context has no deadline of its own.
	Timeout time.Duration
	// MaxConns bounds the connections to a server: half of them write.
	MaxConns int
	// TLS is the TLS configuration for a server, and overrides its address. If it is nil, the
	// address decides.
	TLS *tls.Config
}

const (
	defaultTimeout  = 30 * time.Second
	defaultMaxConns = 32

	// migrateTimeout bounds a migration whose context has no deadline. Creating the
	// tables took 30 s on a busy disk.
	migrateTimeout = 5 * time.Minute
)

func (opt Options) withDefaults() Options {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = fault.Now
	}
	if opt.Random == nil {
		opt.Random = rand.Reader
	}
	if opt.Timeout <= 0 {
		opt.Timeout = defaultTimeout
	}
	if opt.MaxConns <= 0 {
		opt.MaxConns = defaultMaxConns
	}
	return opt
}

// Store implements store.Store.
type Store struct {
	db      database
	dialect *dialect
	opt     Options
	// throttled logs rows that cannot be read, and products that are passed over.
	throttled *alert.ThrottledLog
	// afterRead is set by tests. It runs between a change's read of its product and the
	// compare-and-set.
	afterRead func(ctx context.Context, tx *session, product uint32) error
}

var _ store.Store = (*Store)(nil)

// Open opens the store at dsn: "sqlite:PATH", which creates a missing file, or
// "mysql:USER:PASS@tcp(HOST:PORT)/DB" for an existing database in MySQL or MariaDB. Migrate
// creates the tables.
func Open(ctx context.Context, dsn string, opt Options) (*Store, error) {
	opt = opt.withDefaults()
	ctx, cancel := bounded(ctx, opt.Timeout)
	defer cancel()
	s := &Store{opt: opt, throttled: alert.NewThrottledLog(opt.Logger, opt.Now)}
	var err error
	switch kind, address, found := strings.Cut(dsn, ":"); {
	case found && kind == "sqlite":
		s.dialect = &sqliteDialect
		s.db, err = openSQLite(ctx, address, opt)
	case found && kind == "mysql":
		s.dialect = &mysqlDialect
		s.db, err = openMySQL(ctx, address, opt)
	default: // the text may be a password, so it is not quoted
		err = errors.New("unknown kind of address, use sqlite:PATH or mysql:USER:PASS@tcp(HOST:PORT)/DB")
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// Close waits for running calls and closes the database.
func (s *Store) Close() error { return s.db.close() }

func (s *Store) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := bounded(ctx, s.opt.Timeout)
	defer cancel()
	if err := s.db.sync(ctx); err != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", err)
	}
	return s.now(), nil
}

func (s *Store) now() time.Time { return s.db.now().UTC().Truncate(time.Millisecond) }

func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := bounded(ctx, s.opt.Timeout)
	defer cancel()
	if err := s.db.ping(ctx); err != nil {
		return fmt.Errorf("ping store: %w", err)
	}
	return nil
}

func (s *Store) Migrate(ctx context.Context) error {
	ctx, cancel := bounded(ctx, migrateTimeout)
	defer cancel()
	if err := s.db.migrate(ctx); err != nil {
		return fmt.Errorf("migrate store: %w", err)
	}
	return nil
}

// change runs fn in one write transaction. The error names the change, and so do the two points
// at which a test may kill the process.
//
// fn may run several times, because after the errors of database.go the whole transaction is
// retried. With SQLite that needs a second process. In a database with many writers it is
// common.
func (s *Store) change(ctx context.Context, name string, fn func(ctx context.Context, tx *session) error) error {
	ctx, cancel := bounded(ctx, s.opt.Timeout)
	defer cancel()
	var tries tries
	for {
		err := s.db.write(ctx, func(tx *session) error {
			if err := fn(ctx, tx); err != nil {
				return err
			}
			fault.Point("store." + name + ".before_commit")
			return nil
		})
		if err == nil {
			break
		}
		if err := tries.after(ctx, err); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fault.Point("store." + name + ".after_commit")
	return nil
}

// changed is change for a transaction that returns a value.
func changed[T any](ctx context.Context, s *Store, name string, fn func(ctx context.Context, tx *session) (T, error)) (T, error) {
	var value, none T
	err := s.change(ctx, name, func(ctx context.Context, tx *session) (err error) {
		value, err = fn(ctx, tx)
		return err
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// listed reads the rows of a query.
func listed[T any](ctx context.Context, s *Store, name, query string, args []any, scan func(scanner, *T) error) (found []T, err error) {
	err = s.read(ctx, name, func(ctx context.Context, r *session) error {
		found, err = selectAll(ctx, r, query, args, scan)
		return err
	})
	return found, err
}

// read runs statements that need no common snapshot.
func (s *Store) read(ctx context.Context, name string, fn func(ctx context.Context, r *session) error) error {
	ctx, cancel := bounded(ctx, s.opt.Timeout)
	defer cancel()
	if err := s.db.read(ctx, func(r *session) error { return fn(ctx, r) }); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// snapshot runs fn on one snapshot of the store.
func (s *Store) snapshot(ctx context.Context, name string, fn func(ctx context.Context, r *session) error) error {
	ctx, cancel := bounded(ctx, s.opt.Timeout)
	defer cancel()
	if err := s.db.snapshot(ctx, func(r *session) error { return fn(ctx, r) }); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// bounded gives ctx a deadline if it has none, so that no call waits forever.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}
