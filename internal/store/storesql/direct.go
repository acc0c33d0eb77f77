package storesql

import (
	"context"
	"database/sql"
)

// queryer is a connection, or a pool of them.
type queryer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// direct is a runner that sends each statement with its arguments written into the text by the
// driver: one round trip, and no state per connection.
type direct struct{ on queryer }

func newDirect(on queryer, d *dialect) *session {
	return &session{runner: direct{on}, dialect: d}
}

func (d direct) execute(ctx context.Context, st statement, args []any) (sql.Result, error) {
	return d.on.ExecContext(ctx, st.text(), args...)
}

func (d direct) rows(ctx context.Context, st statement, args []any) (*sql.Rows, error) {
	return d.on.QueryContext(ctx, st.text(), args...)
}

func (direct) close() error { return nil }
