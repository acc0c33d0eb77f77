package storesql

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"
)

const (
	sqlVersion = `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version`
	// SQLite has no separate error for a missing table.
	sqlVersionTable = `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'goose_db_version'`
)

// Version returns the version of the store's tables, 0 if there are none, and the latest
// version that Migrate can bring them to. It writes nothing, so it works without the right to
// create tables.
func (s *Store) Version(ctx context.Context) (current, latest int64, err error) {
	ctx, cancel := bounded(ctx, s.opt.Timeout)
	defer cancel()
	current, latest, err = s.db.version(ctx)
	if err == nil {
		err = notNewer(current, latest)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the version of the tables: %w", err)
	}
	return current, latest, nil
}

// notNewer refuses a store that a later version of the program has migrated: this version would
// break the data that the later one relies on.
func notNewer(current, latest int64) error {
	if current > latest {
		return fmt.Errorf("the store has schema %d, written by a newer version; this one knows %d: run that version, or restore a backup", current, latest)
	}
	return nil
}

// migrateUp applies the missing migrations of a folder.
func migrateUp(ctx context.Context, kind goose.Dialect, pool *sql.DB, files embed.FS, folder string, log *slog.Logger) error {
	dir, err := fs.Sub(files, folder)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(kind, pool, dir, goose.WithSlog(log), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, latest, err := provider.GetVersions(ctx)
	if err == nil {
		err = notNewer(current, latest)
	}
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

func latestMigration(files fs.FS) (latest int64, err error) {
	err = fs.WalkDir(files, ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		number, err := goose.NumericComponent(entry.Name())
		latest = max(latest, number)
		return err
	})
	return latest, err
}
