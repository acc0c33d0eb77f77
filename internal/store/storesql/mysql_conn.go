package storesql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
)

// driverConn is what the driver's connection can do.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// mysqlConn is a connection that keeps its prepared statements.
type mysqlConn struct {
	driverConn
	stmts map[list]driver.StmtExecContext
}

// preparedRows is how many rows a prepared list has. Prepared, Confirm took the
// server a quarter less work: it need not read thousands of values each time.
// But a statement holds its memory for as long as the connection lives: with
// 100 rows, those of Confirm hold 2 MB of MariaDB's.
const preparedRows = 100

func (c *mysqlConn) executeList(ctx context.Context, l list, args []any) (driver.Result, error) {
	stmt, err := c.prepared(ctx, l)
	if err != nil {
		return nil, err
	}
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
		switch arg.(type) {
		case nil, int64, string, []byte:
		default:
			if err := c.CheckNamedValue(&values[i]); err != nil {
				return nil, err
			}
		}
	}
	return stmt.ExecContext(ctx, values)
}

func (c *mysqlConn) prepared(ctx context.Context, l list) (driver.StmtExecContext, error) {
	if stmt, ok := c.stmts[l]; ok {
		return stmt, nil
	}
	stmt, err := c.PrepareContext(ctx, statement{l, preparedRows}.text())
	if err != nil {
		return nil, err
	}
	c.stmts[l] = stmt.(driver.StmtExecContext)
	return c.stmts[l], nil
}

// bulk is direct on one connection, whose statements with a full list are
// prepared.
type bulk struct {
	direct
	conn *sql.Conn
}

func newBulk(conn *sql.Conn, d *dialect) *session {
	return &session{runner: bulk{direct{conn}, conn}, dialect: d}
}

func (b bulk) execute(ctx context.Context, st statement, args []any) (result sql.Result, err error) {
	if st.rows != preparedRows || len(args) != preparedRows*st.columns {
		return b.direct.execute(ctx, st, args)
	}
	rawErr := b.conn.Raw(func(conn any) error {
		result, err = conn.(*mysqlConn).executeList(ctx, st.list, args)
		return nil
	})
	if rawErr != nil {
		return nil, fmt.Errorf("use connection: %w", rawErr)
	}
	return result, err
}
