package storesql

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migration/mysql/*.sql
var mysqlMigrations embed.FS

const (
	// The name is the server's, so it has the database's in it; MySQL takes 64
	// characters. (From 9.6 on it has no MD5 by itself.)
	sqlMigrateLock     = `CONCAT('seckill.migrate.', LEFT(SHA2(DATABASE(), 256), 32))`
	sqlTakeMigrateLock = `SELECT GET_LOCK(` + sqlMigrateLock + `, 1)`
	sqlFreeMigrateLock = `SELECT RELEASE_LOCK(` + sqlMigrateLock + `)`
)

// migrate applies the migrations that are missing, one process at a time: its
// connection holds a named lock, which the server frees when it goes.
func (db *mysqlDB) migrate(ctx context.Context) (err error) {
	defer func() { err = cmp.Or(refusal(err), db.failed(err)) }()
	pool, err := db.migrationPool()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	lock, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := takeMigrateLock(ctx, lock); err != nil {
		return err
	}
	provider, err := db.migrations(pool)
	if err != nil {
		return err
	}
	if err := knowsVersion(ctx, provider); err != nil {
		return err
	}
	for try := 1; ; try++ {
		_, err := provider.Up(ctx)
		if err == nil {
			break
		}
		if mysqlCode(err) != mysqlLockWait || try == migrateTries {
			return err
		}
		db.log.Info("store: migrate again", "after", err)
	}
	_, err = lock.ExecContext(ctx, sqlFreeMigrateLock)
	return err
}

func (db *mysqlDB) version(ctx context.Context) (current, latest int64, err error) {
	err = db.read(ctx, func(r *session) error {
		_, err := r.row(ctx, sqlVersion, nil, &current)
		if mysqlCode(err) == mysqlNoTable {
			return nil
		}
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	latest, err = latestMigration(mysqlMigrations)
	return current, latest, err
}

// migrationPool has connections without the server's deadline for statements: a
// migration of a large table takes its time, in which the connection that holds
// the lock says nothing. An ALTER waits only briefly for a query that uses the
// table, as everybody else waits behind it.
func (db *mysqlDB) migrationPool() (*sql.DB, error) {
	cfg := db.cfg.Clone()
	cfg.Params["wait_timeout"] = seconds(migrateTimeout)
	cfg.Params["lock_wait_timeout"] = seconds(lockWait)
	connector, err := newConnector(cfg, 0)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func (db *mysqlDB) migrations(pool *sql.DB) (*goose.Provider, error) {
	dir, err := fs.Sub(mysqlMigrations, "migration/mysql")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectMySQL, pool, dir, goose.WithSlog(db.log), goose.WithDisableGlobalRegistry(true))
}

// takeMigrateLock asks for the lock again and again, so that ctx can end it.
func takeMigrateLock(ctx context.Context, conn *sql.Conn) error {
	for {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, sqlTakeMigrateLock).Scan(&got)
		if err != nil && mysqlCode(err) != mysqlNoLockName {
			return fmt.Errorf("wait for another migration: %w", err)
		}
		if !got.Valid { // and would be so again
			return errors.New("the server cannot give the lock of migrations: no database is selected, or it has no memory for it")
		}
		if got.Int64 == 1 {
			return nil
		}
	}
}
