package server

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The account that tests use. It may do everything.
const (
	mariaUser     = "seckill"
	mariaPassword = "seckill"
	mariaAccount  = "CREATE USER IF NOT EXISTS " + mariaUser + "@'%' IDENTIFIED BY '" + mariaPassword + "';\n" +
		"GRANT ALL PRIVILEGES ON *.* TO " + mariaUser + "@'%' WITH GRANT OPTION;\n"
)

// MariaOptions change the defaults of a test's MariaDB.
type MariaOptions struct {
	// Args are further arguments of the server; a later argument overrides an
	// earlier one.
	Args []string
	// TLS makes the server refuse plain TCP connections; nil means without TLS.
	TLS *TLS
}

// MariaServer is one mariadbd, or one mysqld (MySQLEnv).
type MariaServer struct {
	Process
	address string
	shared  bool
	spoken  *TLS
}

// MariaDB starts a mariadbd with empty data for the time of the test. The
// server syncs a commit to disk before it answers, unless Args say otherwise.
func MariaDB(t testing.TB, opt MariaOptions) *MariaServer {
	t.Helper()
	needMariaDB(t)
	home, err := newPlace("maria", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(home.leave)
	one, err := mariaChild(home, opt)
	if err != nil {
		t.Fatal(err)
	}
	m := &MariaServer{Process: Process{t, one}, address: home.address, spoken: opt.TLS}
	m.manage()
	m.Start()
	return m
}

// SharedMariaDB is one mariadbd for all tests of the test binary. It starts at
// its first use and ends with the process. Each test uses its own database and
// must not stop the server.
func SharedMariaDB(t testing.TB) *MariaServer {
	t.Helper()
	needMariaDB(t)
	sharedMaria.once.Do(func() {
		home, err := newPlace("maria", "")
		if err != nil {
			sharedMaria.err = err
			return
		}
		if sharedMaria.err = removeAtExit(home.dir); sharedMaria.err != nil {
			return
		}
		sharedMaria.address = home.address
		if sharedMaria.child, sharedMaria.err = mariaChild(home, MariaOptions{}); sharedMaria.err == nil {
			sharedMaria.err = sharedMaria.child.start()
		}
	})
	if sharedMaria.err != nil {
		t.Fatalf("start the shared MariaDB: %v", sharedMaria.err)
	}
	m := &MariaServer{Process: Process{t, sharedMaria.child}, address: sharedMaria.address, shared: true}
	m.watch()
	return m
}

var sharedMaria struct {
	once    sync.Once
	child   *child
	address string
	err     error
}

// mariaChild creates the system tables, which takes some seconds, and returns a
// server that is not started.
func mariaChild(home place, opt MariaOptions) (*child, error) {
	_, port, err := net.SplitHostPort(home.address)
	if err != nil {
		return nil, err
	}
	account := filepath.Join(home.dir, "account.sql")
	if err := os.WriteFile(account, []byte(mariaAccount), 0o600); err != nil {
		return nil, err
	}
	kind := theFlavour()
	path, args, err := kind.install(home.dir)
	if err != nil {
		return nil, err
	}
	args = append(args,
		"--socket="+filepath.Join(home.dir, "sock"), "--pid-file="+filepath.Join(home.dir, "pid"), "--tmpdir="+home.dir,
		"--bind-address=127.0.0.1", "--port="+port, "--skip-name-resolve", "--init-file="+account,
		"--innodb-flush-log-at-trx-commit=1", "--max-connections=500", "--character-set-server=utf8mb4")
	args = append(args, kind.serve...)
	if opt.TLS == nil {
		args = append(args, kind.plain...)
	}
	args = append(append(args, opt.TLS.mariaSettings()...), opt.Args...)
	ready := func() error { return mariaExec(mariaDSN(home.address, "")+opt.TLS.mariaOption(), "SELECT 1") }
	return &child{name: kind.name + " " + home.address, dir: home.dir, path: path, args: args, ready: ready}, nil
}

// Addr is the server's address, host:port.
func (m *MariaServer) Addr() string { return m.address }

// DSN is the driver's DSN of a database of this server; "" means no database.
// It has no TLS settings.
func (m *MariaServer) DSN(database string) string { return mariaDSN(m.address, database) }

func mariaDSN(address, database string) string {
	return fmt.Sprintf("%s:%s@tcp(%s)/%s", mariaUser, mariaPassword, address, database)
}

// NewDatabase creates an empty database, removed at the end of the test t, and
// returns its DSN for the engine's key store.dsn.
func (m *MariaServer) NewDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", mariaDatabases.Add(1))
	if err := m.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	if !m.shared { // the database ends with its server, which may be paused then
		return "mysql:" + m.DSN(name)
	}
	t.Cleanup(func() {
		if err := m.Exec("DROP DATABASE " + name); err != nil {
			t.Errorf("drop %s: %v", name, err)
		}
	})
	return "mysql:" + m.DSN(name)
}

// mariaDatabases counts the databases of this process.
var mariaDatabases atomic.Int64

// Exec runs one statement on a connection of its own.
func (m *MariaServer) Exec(query string) error {
	return mariaExec(m.DSN("")+m.spoken.mariaOption(), query)
}

func mariaExec(dsn, query string) error {
	return mariaDo(dsn, func(db *sql.DB) error {
		if _, err := db.Exec(query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		return nil
	})
}

// query reads one value.
func (m *MariaServer) query(query string, value any) error {
	return mariaDo(m.DSN("")+m.spoken.mariaOption(), func(db *sql.DB) error {
		if err := db.QueryRow(query).Scan(value); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		return nil
	})
}

// mariaDo calls a function with a new connection.
func mariaDo(dsn string, do func(*sql.DB) error) error {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	config.Timeout, config.ReadTimeout, config.WriteTimeout = mariaTimeout, mariaTimeout, mariaTimeout
	// Before the server listens, the driver would log every attempt.
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return do(db)
}

// mariaTimeout bounds one statement of a test.
const mariaTimeout = 20 * time.Second
