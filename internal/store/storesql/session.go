package storesql

import (
	"context"
	"database/sql"
	"iter"
	"strings"
	"sync/atomic"
)

// session runs statements on one connection or pool.
type session struct {
	runner
	dialect *dialect
	ran     atomic.Int64 // statements so far; a test bounds those of Confirm
}

// runner sends statements to the database.
type runner interface {
	execute(ctx context.Context, st statement, args []any) (sql.Result, error)
	rows(ctx context.Context, st statement, args []any) (*sql.Rows, error)
	close() error
}

// statement is a text with a list of so many rows in it, or without a list if rows is 0.
type statement struct {
	list
	rows int
}

// list is a statement around a list: head, rows of columns, tail. In an INSERT a row is
// (?,?,…). With one column the list is that of an IN, and head and tail have its parentheses.
type list struct {
	head, tail string
	columns    int
	row, join  string // another form of a row, and the text between two rows
}

func (st statement) text() string {
	if st.rows == 0 {
		return st.head
	}
	row, join := st.row, st.join
	if row == "" {
		row, join = "?"+strings.Repeat(",?", st.columns-1), ","
		if st.columns > 1 {
			row = "(" + row + ")"
		}
	}
	return st.head + row + strings.Repeat(join+row, st.rows-1) + st.tail
}

// exec runs a statement and returns the number of changed rows.
func (s *session) exec(ctx context.Context, query string, args ...any) (int64, error) {
	return s.execStatement(ctx, statement{list: list{head: query}}, args)
}

// insert runs a statement and returns the id of the new row.
func (s *session) insert(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := s.run(ctx, statement{list: list{head: query}}, args)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (s *session) execStatement(ctx context.Context, st statement, args []any) (int64, error) {
	result, err := s.run(ctx, st, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// compared returns errVersion if a compare-and-set changed no row.
func compared(changed int64, err error) error {
	if err == nil && changed == 0 {
		return errVersion
	}
	return err
}

func (s *session) run(ctx context.Context, st statement, args []any) (sql.Result, error) {
	s.ran.Add(1)
	return s.execute(ctx, st, args)
}

// scanner is a row.
type scanner interface {
	Scan(dest ...any) error
}

// appending returns a function that scans a row and appends it to list.
func appending[T any](list *[]T, scan func(scanner, *T) error) func(scanner) error {
	return func(row scanner) error {
		var one T
		if err := scan(row, &one); err != nil {
			return err
		}
		*list = append(*list, one)
		return nil
	}
}

// row reads one row. found is false if there is none.
func (s *session) row(ctx context.Context, query string, args []any, dest ...any) (found bool, err error) {
	err = s.query(ctx, query, args, func(row scanner) error {
		found = true
		return row.Scan(dest...)
	})
	return found, err
}

func selectAll[T any](ctx context.Context, r *session, query string, args []any, scan func(scanner, *T) error) ([]T, error) {
	var found []T
	err := r.query(ctx, query, args, appending(&found, scan))
	return found, err
}

// selectOne reads the row of a query that finds at most one.
func selectOne[T any](ctx context.Context, r *session, query string, args []any, scan func(scanner, *T) error) (one T, found bool, err error) {
	err = r.query(ctx, query, args, func(row scanner) error {
		found = true
		return scan(row, &one)
	})
	return one, found, err
}

// scanValue scans a row of one column.
func scanValue[T any](row scanner, value *T) error { return row.Scan(value) }

// query calls each with each row.
func (s *session) query(ctx context.Context, query string, args []any, each func(scanner) error) error {
	return s.queryStatement(ctx, statement{list: list{head: query}}, args, each)
}

func (s *session) queryStatement(ctx context.Context, st statement, args []any, each func(scanner) error) error {
	s.ran.Add(1)
	rows, err := s.rows(ctx, st, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// execRows runs a multi-row statement over args, which hold l.columns values per row, in
// chunks. before goes ahead of each chunk's values. It returns the number of changed rows.
func (s *session) execRows(ctx context.Context, l list, before, args []any) (int64, error) {
	var changed int64
	for chunk := range s.dialect.chunks(args, l.columns) {
		n, err := s.execStatement(ctx, statement{l, len(chunk) / l.columns}, concat(before, chunk))
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// queryRows is execRows for a query.
func (s *session) queryRows(ctx context.Context, l list, before, args []any, each func(scanner) error) error {
	for chunk := range s.dialect.chunks(args, l.columns) {
		if err := s.queryStatement(ctx, statement{l, len(chunk) / l.columns}, concat(before, chunk), each); err != nil {
			return err
		}
	}
	return nil
}

func concat(before, chunk []any) []any {
	if len(before) == 0 {
		return chunk
	}
	return append(before[:len(before):len(before)], chunk...)
}

// chunks cuts args into pieces of chunkRows rows. The rest is one piece or, if statements are
// prepared, several whose sizes are powers of two.
func (d *dialect) chunks(args []any, columns int) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for rows := d.chunkRows; len(args) > 0; {
			if left := len(args) / columns; left < rows && !d.prepared {
				rows = left
			}
			for rows*columns > len(args) {
				rows /= 2
			}
			if !yield(args[:rows*columns]) {
				return
			}
			args = args[rows*columns:]
		}
	}
}
