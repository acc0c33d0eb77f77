package ledgermem

import (
	"path/filepath"
	"testing"
)

func TestPing_ReportsWhetherTheJournalIsWritable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	l, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Ping(t.Context()); err == nil {
		t.Error("a stopped ledger answers a ping")
	}
}
