package ledgermem

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// DamageError means that the journal file cannot be trusted. The ledger uses nothing of a
// damaged journal, because it might lack a promised order.
type DamageError struct {
	Path  string
	Where string // the row or piece
	Err   error  // what is wrong there
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("journal %s is damaged at %s: %v; restore the file (with its -wal file) from a copy, "+
		"or move both away and let the engine recover the ledger from the store", e.Path, e.Where, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// damaged makes a DamageError if SQLite reports corruption. It returns any other error (no
// permission, disk full) as it is.
func damaged(path, where string, err error) error {
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xFF {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
			return &DamageError{Path: path, Where: where, Err: err}
		}
	}
	return err
}
