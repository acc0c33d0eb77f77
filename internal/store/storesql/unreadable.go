package storesql

import (
	"context"
	"log/slog"

	"seckill/internal/complaint"
)

// Somebody who works on the tables by hand may leave an order number that is
// none, or another value that cannot be read. Such a row must not hold up the
// rows of others: what lists rows leaves it out, and names it in the log. It
// takes a place of the list's limit. Whoever asks for the very row gets an error.

// The tables whose rows are listed by what has to be done about them.
const (
	tableOrder  = "tb_seckill_order"
	tableLetter = "tb_dead_letter"
	tableEvent  = "tb_event"
)

// collect lists those rows of a table that can be read.
func collect[T any](ctx context.Context, s *Store, r *session, table, query string, args []any, scan func(scanner, *T) error) ([]T, error) {
	var found []T
	err := r.query(ctx, query, args, s.readable(ctx, table, appending(&found, scan)))
	return found, err
}

// listReadable is listed with the rows of a table that can be read.
func listReadable[T any](ctx context.Context, s *Store, name, table, query string, args []any, scan func(scanner, *T) error) (found []T, err error) {
	err = s.read(ctx, name, func(ctx context.Context, r *session) error {
		found, err = collect(ctx, s, r, table, query, args, scan)
		return err
	})
	return found, err
}

// readable leaves out rows of a table that cannot be read.
func (s *Store) readable(ctx context.Context, table string, each func(scanner) error) func(scanner) error {
	return func(row scanner) error {
		err := each(row)
		if err == nil || ctx.Err() != nil { // then the row may be well
			return err
		}
		s.complaints.Say(slog.LevelWarn, table, "a row was left out: it cannot be read, somebody altered it",
			"table", table, "error", complaint.Clip(err.Error()))
		return nil
	}
}
