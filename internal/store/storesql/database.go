package storesql

import (
	"context"
	"errors"
	"time"
)

// database is one kind of database with its connections: what is left to
// differ after the dialect. Its errors are those of the port, or one of the
// three below.
type database interface {
	// write runs fn in one transaction, which it commits if fn returns nil.
	// Whatever fn reads is committed, and so recent that two transactions which
	// lock the same product first (readToChange) see each other's work.
	write(ctx context.Context, fn func(tx *session) error) error
	// read runs statements that need no common state.
	read(ctx context.Context, fn func(r *session) error) error
	// snapshot runs fn on one state of the store.
	snapshot(ctx context.Context, fn func(r *session) error) error
	// now is the store's clock; sync makes sure that it is known.
	now() time.Time
	sync(ctx context.Context) error

	ping(ctx context.Context) error
	// migrate applies the migrations that are missing.
	migrate(ctx context.Context) error
	// version is that of the tables, 0 where there are none, and the one that
	// migrate leads to. It creates nothing: its user may have no right to.
	version(ctx context.Context) (current, latest int64, err error)
	close() error
}

// After these a transaction has changed nothing and may be run again.
var (
	// errVersion says that a row was not as it was read.
	errVersion = errors.New("a row has changed since it was read")
	// errContended says that the database chose this transaction to give way.
	errContended = errors.New("transactions stand in each other's way")
	// errTaken says that a row with the same unique value exists. If another
	// transaction wrote it after this one looked, the next look finds it.
	errTaken = errors.New("a unique value is taken")
)
