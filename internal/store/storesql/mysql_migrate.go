package storesql

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
)

//go:embed migration/mysql/*.sql
var mysqlMigrations embed.FS

const (
	// Named locks belong to the server, so the name includes the database's. MySQL allows 64
	// characters, and has no MD5 by itself from 9.6 on.
	sqlMigrateLock     = `CONCAT('seckill.migrate.', LEFT(SHA2(DATABASE(), 256), 32))`
	sqlTakeMigrateLock = `SELECT GET_LOCK(` + sqlMigrateLock + `, 1)`
	sqlFreeMigrateLock = `SELECT RELEASE_LOCK(` + sqlMigrateLock + `)`
	// sqlFirstVersion completes a version table whose creator died before it wrote the first
	// row. goose refuses such a table.
	sqlFirstVersion = `INSERT INTO goose_db_version (version_id, is_applied) SELECT 0, 1 FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM goose_db_version)`
)

// migrate applies the missing migrations, one process at a time. Its connection holds a named
// lock, which the server frees when the connection closes.
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
	if _, err := lock.ExecContext(ctx, sqlFirstVersion); err != nil && mysqlCode(err) != mysqlNoTable {
		return err
	}
	if err := migrateUp(ctx, goose.DialectMySQL, pool, mysqlMigrations, "migration/mysql", db.log); err != nil {
		return err
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

// migrationPool has connections without the server's deadline for statements: on a busy disk it
// takes seconds to create a table. The connection with the lock is idle meanwhile, so the
// server must not close it.
func (db *mysqlDB) migrationPool() (*sql.DB, error) {
	cfg := db.cfg.Clone()
	cfg.Params["wait_timeout"] = seconds(migrateTimeout)
	connector, err := newConnector(cfg, 0)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// takeMigrateLock polls for the lock, so that ctx can end the wait.
func takeMigrateLock(ctx context.Context, conn *sql.Conn) error {
	for {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, sqlTakeMigrateLock).Scan(&got)
		if err != nil && mysqlCode(err) != mysqlNoLockName {
			return fmt.Errorf("wait for another migration: %w", err)
		}
		if !got.Valid { // a retry would give the same
			return errors.New("the server cannot give the lock of migrations: no database is selected, or it has no memory for it")
		}
		if got.Int64 == 1 {
			return nil
		}
	}
}
