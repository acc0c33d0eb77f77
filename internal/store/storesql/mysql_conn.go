package storesql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// driverConn has the methods of the driver's connection.
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
	mariaDB bool
	usual   time.Duration // the server's default deadline for a statement; 0: none
	limit   time.Duration // its present deadline
	stmts   map[list]driver.StmtExecContext
}

func (c *mysqlConn) setUp(ctx context.Context) error {
	version, err := c.version(ctx)
	if err != nil {
		return err
	}
	c.mariaDB = strings.Contains(version, "MariaDB")
	// Every read sees what is committed. So after a lock on a product, it sees all changes of
	// the previous holder. READ COMMITTED also locks no gaps, where inserts would wait or
	// deadlock.
	if _, err := c.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil); err != nil {
		return err
	}
	return c.limitStatements(ctx, c.usual)
}

func (c *mysqlConn) version(ctx context.Context) (string, error) {
	rows, err := c.QueryContext(ctx, "SELECT VERSION()", nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	cells := make([]driver.Value, 1)
	if err := rows.Next(cells); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s", cells[0]), nil
}

// limitStatements sets the server's own deadline for a statement, so that a statement whose
// client is gone does not run on. MariaDB has one deadline for all statements, in seconds.
// MySQL has one for queries only, in milliseconds; its writes have few rows and end after
// lockWait.
func (c *mysqlConn) limitStatements(ctx context.Context, limit time.Duration) error {
	query := "SET SESSION max_execution_time = " + fmt.Sprint(limit.Milliseconds())
	if c.mariaDB {
		query = "SET SESSION max_statement_time = " + fmt.Sprintf("%.3f", limit.Seconds())
	}
	_, err := c.ExecContext(ctx, query, nil)
	c.limit = limit
	return err
}

// allow raises the server's deadline if ctx allows more time, for example for a walk over a
// million orders.
func (c *mysqlConn) allow(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	left := time.Until(deadline)
	switch {
	case !ok || c.usual == 0:
		return nil
	case left > c.limit:
		return c.limitStatements(ctx, left)
	case c.limit > c.usual && left <= c.usual: // it was raised for another call
		return c.limitStatements(ctx, c.usual)
	}
	return nil
}

// preparedRows is the number of rows of a prepared list. When prepared, Confirm costs the
// server a quarter less work, because it need not parse thousands of values each time. But a
// prepared statement uses memory as long as its connection lives: at 250 rows the statements of
// Confirm take 5 MB per connection in MariaDB.
const preparedRows = 250

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

// bulk is direct on one connection. It prepares statements with a full list.
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
