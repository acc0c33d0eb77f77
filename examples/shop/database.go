package main

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"net/url"
	"time"

	_ "modernc.org/sqlite"
)

//go:embed schema.sql
var schema string

const (
	maxConnections = 8
	lockWait       = 3 * time.Second // for the one writer that SQLite allows
	startWithin    = 10 * time.Second

	sweepEvery = time.Hour
	// A webhook may be repeated for days while an operator replays events. Older
	// repeats are harmless too: an order never moves back (see Order.Become).
	keepWebhooks = 30 * 24 * time.Hour
)

// openDatabase opens the shop's SQLite file and creates what is missing.
func openDatabase(path string) (*sql.DB, error) {
	query := url.Values{
		// synchronous(FULL): what was answered with 204 survives a power cut.
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", lockWait.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)"},
		// A transaction that reads first and writes later could lose its turn.
		"_txlock": {"immediate"},
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(maxConnections)
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		db.Close()
		return nil, fmt.Errorf("create tables in %s: %w", path, err)
	}
	return db, nil
}

// sweep deletes expired sessions and old webhook ids until ctx ends.
func (s *Shop) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		now := s.now()
		if _, err := s.db.ExecContext(ctx, `DELETE FROM session WHERE expires < ?`, now.UnixMilli()); err != nil {
			s.log.Error("sweep: sessions not deleted", "error", err)
		}
		if _, err := s.db.ExecContext(ctx, `DELETE FROM webhook WHERE received < ?`, now.Add(-keepWebhooks).UnixMilli()); err != nil {
			s.log.Error("sweep: webhook ids not deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
