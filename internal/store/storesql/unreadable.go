package storesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"seckill/internal/complaint"
)

// Somebody who works on the tables by hand may leave an order number that is
// none, or another value that cannot be read. Such a row must not hold up the rows of others: what lists rows leaves
// it out, and says so for the operator to find it. Whoever asks for the very
// row gets an error.

// The tables whose rows are listed by what has to be done about them.
const (
	tableOrder  = "tb_seckill_order"
	tableLetter = "tb_dead_letter"
	tableEvent  = "tb_event"
)

// maxUnreadable bounds how many rows a list leaves out. Where there are more,
// the table is damaged rather than a row, and the list fails.
const maxUnreadable = 10_000

// unreadable says that a column that has to have an order number has another
// text.
type unreadable struct{ text string }

func (u *unreadable) Error() string {
	return fmt.Sprintf("%q is no order number", complaint.Clip(u.text))
}

// collect lists at most limit rows of a table by a query that ends with its
// limit. Rows that cannot be read take no place in the list: those behind them
// move up.
func collect[T any](ctx context.Context, s *Store, r *session, table, query string, args []any, limit int, scan func(scanner, *T) error) ([]T, error) {
	said := 0
	for room := limit; ; {
		var found []T
		var bad []error
		err := r.query(ctx, query, concat(args, []any{room}), func(row scanner) error {
			var one T
			err := scan(row, &one)
			switch {
			case err == nil:
				found = append(found, one)
			case ctx.Err() != nil: // the row may be well
				return err
			default:
				if bad = append(bad, err); len(bad) > said {
					said = len(bad)
					s.sayUnreadable(table, row, err)
				}
			}
			return nil
		})
		ended := len(found)+len(bad) < room
		switch {
		case err != nil:
			return nil, err
		case len(bad) == 0:
			return found, nil
		case len(found) >= limit:
			return found[:limit], nil
		case ended:
			return found, nil
		case len(bad) >= maxUnreadable:
			return nil, fmt.Errorf("%d rows of %s cannot be read: %w", len(bad), table, bad[0])
		}
		room = limit + min(2*len(bad), maxUnreadable)
	}
}

// skipping leaves out rows of a table that cannot be read.
func (s *Store) skipping(table string, each func(scanner) error) func(scanner) error {
	return func(row scanner) error {
		err := each(row)
		var u *unreadable
		if !errors.As(err, &u) {
			return err
		}
		s.sayUnreadable(table, row, u)
		return nil
	}
}

// sayUnreadable names a row that was left out.
func (s *Store) sayUnreadable(table string, row scanner, err error) {
	product := productOf(row)
	message, what := "a row was left out: it cannot be read, somebody altered it", []any{"error", complaint.Clip(err.Error())}
	if u := (*unreadable)(nil); errors.As(err, &u) {
		message, what = "a row was left out: its order number is none, somebody altered it", []any{"order_no", complaint.Clip(u.text)}
	}
	s.complaints.Say(slog.LevelWarn, table+" "+product, message, append([]any{"table", table, "product_id", product}, what...)...)
}

// productOf is the product of a row, read apart from all else that the row has.
func productOf(row scanner) string {
	const unknown = "unknown"
	columns, err := row.Columns()
	if err != nil {
		return unknown
	}
	values := make([]sql.RawBytes, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := row.Scan(into...); err != nil {
		return unknown
	}
	for i, column := range columns {
		if column == "product_id" {
			return string(values[i])
		}
	}
	return unknown
}
