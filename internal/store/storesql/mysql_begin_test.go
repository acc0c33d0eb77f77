package storesql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"
)

// dropping is a server that drops every connection at its first statement, and counts them.
type dropping struct {
	driver.Connector
	opened int
}

func (d *dropping) Connect(context.Context) (driver.Conn, error) {
	d.opened++
	return &mysqlConn{driverConn: droppedConn{}}, nil
}

type droppedConn struct{ driverConn }

func (droppedConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, driver.ErrBadConn
}
func (droppedConn) ResetSession(context.Context) error { return nil }
func (droppedConn) IsValid() bool                      { return true }
func (droppedConn) Close() error                       { return nil }

func TestBegin_GivesUpIfNewConnectionsAreDropped(t *testing.T) {
	for name, c := range map[string]struct {
		patience time.Duration
		most     int
	}{
		"a caller who waits":    {time.Minute, maxBegins},
		"a caller who does not": {time.Millisecond, maxBegins / 2},
	} {
		t.Run(name, func(t *testing.T) {
			server := &dropping{}
			pool := sql.OpenDB(server)
			defer pool.Close()
			ctx, cancel := context.WithTimeout(t.Context(), c.patience)
			defer cancel()
			conn, err := begin(ctx, pool, "START TRANSACTION")
			if conn != nil || !lostConnection(err) {
				t.Errorf("begin: %v, %v; want a lost connection", conn, err)
			}
			if c.patience > time.Second && !errors.Is(err, driver.ErrBadConn) {
				t.Errorf("begin: %v, want what the server did", err)
			}
			if server.opened > c.most {
				t.Errorf("%d connections were opened, want at most %d", server.opened, c.most)
			}
		})
	}
}
