package storesql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// connectTimeout bounds dialling, handshake and settings of a connection. A frozen server
	// accepts a connection but sends no greeting.
	connectTimeout = 5 * time.Second
	// lockWait is how long the server lets a statement wait for a row lock. Transactions of the
	// engine are shorter.
	lockWait = 5 * time.Second
	// sessionIdle is when the server closes an idle connection. Without it, a process that
	// vanished behind a network failure would hold its locks for long. Idle connections leave
	// the pool before that.
	sessionIdle = 20 * time.Second
	poolIdle    = 10 * time.Second
	// connLife makes connections follow a DNS name to another server.
	connLife = 10 * time.Minute
)

// mysqlMode makes the server refuse values that it would otherwise change silently: truncated
// texts, clipped numbers, groups with a random row. It is the same on every server.
const mysqlMode = "'STRICT_ALL_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"

// mysqlConfig parses USER:PASS@tcp(HOST:PORT)/DB[?params] and overrides the settings that the
// store relies on.
func mysqlConfig(address string, opt Options) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(address)
	if err != nil {
		// The driver's error may contain the address and its password.
		return nil, errors.New("the address is not of the form USER:PASS@tcp(HOST:PORT)/DB")
	}
	if cfg.DBName == "" {
		return nil, errors.New("the address names no database")
	}
	if err := cfg.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")); err != nil {
		return nil, err
	}
	cfg.ClientFoundRows = true   // count rows that matched, as SQLite does
	cfg.InterpolateParams = true // one round trip per statement, see direct.go
	cfg.MultiStatements = false
	cfg.ParseTime = false // times are numbers
	cfg.Loc = time.UTC
	cfg.AllowAllFiles = false
	cfg.CheckConnLiveness = true
	cfg.Logger = &driverLog{opt.Logger}
	if opt.TLS != nil {
		cfg.TLS, cfg.AllowFallbackToPlaintext = opt.TLS, false // the driver clones it and adds the server's name
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = connectTimeout
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = opt.Timeout
	}
	if cfg.Params == nil {
		cfg.Params = make(map[string]string)
	}
	cfg.Params["sql_mode"] = mysqlMode
	cfg.Params["time_zone"] = "'+00:00'"
	cfg.Params["autocommit"] = "1"
	cfg.Params["innodb_lock_wait_timeout"] = seconds(lockWait)
	cfg.Params["wait_timeout"] = seconds(sessionIdle)
	return cfg, nil
}

func seconds(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

// driverLog logs connections that the driver gives up. The store returns the errors; these
// lines only explain them.
type driverLog struct{ log *slog.Logger }

func (l *driverLog) Print(v ...any) {
	l.log.Debug("store: mysql driver", "says", fmt.Sprint(v...))
}

// connector makes connections that are ready to use. It applies mysqlConfig, and runs the
// statements for the other settings.
type connector struct {
	driver.Connector
	limit time.Duration // the server's deadline for a statement; 0 is none
}

func newConnector(cfg *mysql.Config, limit time.Duration) (*connector, error) {
	inner, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return &connector{inner, limit}, nil
}

// errConnect means that there is no connection. Whatever reason the server gives, the claim is
// not at fault.
var errConnect = errors.New("connect to the database")

// Connect adds a timeout that the driver lacks: database/sql also opens connections in the
// background, without the deadline of a caller.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnect, err)
	}
	ready := &mysqlConn{driverConn: conn.(driverConn), usual: c.limit, stmts: make(map[list]driver.StmtExecContext)}
	if err := ready.setUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: set it up: %w", errConnect, err), conn.Close())
	}
	return ready, nil
}
