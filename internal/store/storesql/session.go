package storesql

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
)

// chunkRows bounds the rows of one statement. At 128 rows of 20 columns it is
// far below SQLite's 32,766 variables, and the cost of a call no longer shows
// beside that of its rows.
const chunkRows = 128

// preparer is a connection, or a pool of them.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// session runs statements on one connection or pool, each prepared once.
// Statements come from constants, and lists in them have sizes that are
// powers of two up to chunkRows, so that there is a bounded number of them.
type session struct {
	on      preparer
	dialect *dialect

	mu    sync.Mutex
	stmts map[statement]*sql.Stmt

	ran atomic.Int64 // statements so far; a test holds Confirm to few
}

// statement is a text with a list of rows in it, if rows is not 0.
type statement struct {
	list
	rows int
}

// list is a statement around a list: head, rows of columns, tail. In an
// INSERT a row is (?,?,…); with one column the list is that of an IN, and
// head and tail have its parentheses.
type list struct {
	head, tail string
	columns    int
}

func newSession(on preparer, d *dialect) *session {
	return &session{on: on, dialect: d, stmts: make(map[statement]*sql.Stmt)}
}

func (s *session) prepare(ctx context.Context, st statement) (*sql.Stmt, error) {
	s.ran.Add(1)
	if prepared := s.prepared(st, nil); prepared != nil {
		return prepared, nil
	}
	// Without the lock: a pool may have to wait for a connection here, and must
	// not make those wait who need none.
	prepared, err := s.on.PrepareContext(ctx, st.text())
	if err != nil {
		return nil, err
	}
	first := s.prepared(st, prepared)
	if first == prepared {
		return first, nil
	}
	return first, prepared.Close() // another reader was quicker
}

// prepared finds a statement, and keeps one that is not there yet.
func (s *session) prepared(st statement, keep *sql.Stmt) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.stmts[st]
	if !ok && keep != nil {
		s.stmts[st], found = keep, keep
	}
	return found
}

func (st statement) text() string {
	if st.rows == 0 {
		return st.head
	}
	row := "?" + strings.Repeat(",?", st.columns-1)
	if st.columns > 1 {
		row = "(" + row + ")"
	}
	return st.head + row + strings.Repeat(","+row, st.rows-1) + st.tail
}

// close gives the statements back.
func (s *session) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for st, prepared := range s.stmts {
		errs = append(errs, prepared.Close())
		delete(s.stmts, st)
	}
	return errors.Join(errs...)
}

// exec runs a statement and returns how many rows it changed.
func (s *session) exec(ctx context.Context, query string, args ...any) (int64, error) {
	return s.execStatement(ctx, statement{list: list{head: query}}, args)
}

// insert runs a statement and returns the id that its row got.
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

func (s *session) run(ctx context.Context, st statement, args []any) (sql.Result, error) {
	prepared, err := s.prepare(ctx, st)
	if err != nil {
		return nil, err
	}
	return prepared.ExecContext(ctx, args...)
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

// row reads one row; found is false when there is none.
func (s *session) row(ctx context.Context, query string, args []any, dest ...any) (found bool, err error) {
	err = s.query(ctx, query, args, func(row scanner) error {
		found = true
		return row.Scan(dest...)
	})
	return found, err
}

// query hands each row to each, one at a time.
func (s *session) query(ctx context.Context, query string, args []any, each func(scanner) error) error {
	return s.queryStatement(ctx, statement{list: list{head: query}}, args, each)
}

func (s *session) queryStatement(ctx context.Context, st statement, args []any, each func(scanner) error) error {
	prepared, err := s.prepare(ctx, st)
	if err != nil {
		return err
	}
	rows, err := prepared.QueryContext(ctx, args...)
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

// execRows runs a multi-row statement over args, which hold l.columns values
// per row, in chunks; before stands ahead of each chunk's rows. It returns how
// many rows changed.
func (s *session) execRows(ctx context.Context, l list, before, args []any) (int64, error) {
	var changed int64
	for chunk := range chunks(args, l.columns) {
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
	for chunk := range chunks(args, l.columns) {
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

// chunks cuts args into pieces of chunkRows rows, and what is left into powers
// of two.
func chunks(args []any, columns int) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for rows := chunkRows; len(args) > 0; {
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
