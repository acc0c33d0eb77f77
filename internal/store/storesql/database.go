package storesql

import (
	"context"
	"errors"
	"time"
)

// database is one kind of database with its connections: everything that dialect does not
// cover. Its errors are those of the port, or one of the three below.
type database interface {
	// write runs fn in one transaction, and commits if fn returns nil. fn reads only committed
	// data. Two transactions that lock the same product first (lockToChange) see each other's
	// work.
	write(ctx context.Context, fn func(tx *session) error) error
	// read runs statements that need no common snapshot.
	read(ctx context.Context, fn func(r *session) error) error
	// snapshot runs fn on one snapshot of the store.
	snapshot(ctx context.Context, fn func(r *session) error) error
	// now is the store's clock. sync must be called before it: it makes sure that the clock is
	// known.
	now() time.Time
	sync(ctx context.Context) error

	ping(ctx context.Context) error
	// migrate applies the missing migrations.
	migrate(ctx context.Context) error
	// version returns the version of the tables, 0 if there are none, and the version that
	// migrate leads to. It creates nothing, because its user may not have the right.
	version(ctx context.Context) (current, latest int64, err error)
	close() error
}

// After these errors the transaction has changed nothing and may be run again.
var (
	// errVersion means that a row changed after it was read.
	errVersion = errors.New("a row has changed since it was read")
	// errContended means that the database rolled this transaction back in favour of another
	// one.
	errContended = errors.New("transaction rolled back in favour of another")
	// errTaken means that a row with the same unique value exists. If another transaction wrote
	// it since this one looked, the next attempt finds it.
	errTaken = errors.New("a unique value is taken")
)
