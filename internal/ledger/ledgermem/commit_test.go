package ledgermem

import (
	"database/sql"
	"errors"
	"testing"

	"seckill/internal/ledger"
)

// A commit with an error may be in the file or not, and the file may be unreadable for a while.
// The round is kept or undone according to the file.
func TestCommit_UnknownOutcomeIsReadFromTheFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		written, readLater bool
	}{
		{"written", true, false},
		{"not written", false, false},
		{"written, and read later", true, true},
		{"not written, and read later", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := openUnstarted(t, newPath(t))
			shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
			installUnstarted(t, l, ledger.Allotment{Shard: shard, Available: 10, Limit: 1})
			call := func(number uint64, w ledger.Write) error {
				req := ledger.Request{Shard: shard, Call: ledger.Call{Number: number, Seen: number - 1}, Write: w}
				return drive(l, func(r *round) error {
					_, err := r.do(&req)
					return err
				})
			}
			if err := call(1, ledger.Reserve{Claims: claims(100, 1)}); err != nil {
				t.Fatal(err)
			}
			before, file := dump(l.cur.state, true), l.journal.db
			l.journal.beforeCommit = func() error {
				var err error
				if c.written {
					_, err = l.journal.w.commit.ExecContext(t.Context())
				}
				if c.readLater {
					l.journal.db = unreadable(t)
				}
				return errors.Join(errDisk, err)
			}
			err := call(2, ledger.Reserve{Claims: claims(0, 2)})
			l.journal.beforeCommit = nil
			undecided := errors.Is(err, errDisk) && !errors.Is(err, ledger.ErrNotExecuted)
			if undecided != c.readLater {
				t.Fatalf("the call in doubt: %v", err)
			}
			if c.readLater {
				if err := call(3, ledger.Reserve{Claims: claims(2, 1)}); !errors.Is(err, ledger.ErrNotExecuted) {
					t.Fatalf("a call upon a state in doubt: %v", err)
				}
				l.journal.db = file
			} else if c.written != (err == nil) {
				t.Fatalf("the call in doubt: %v", err)
			}
			if err := drive(l, func(*round) error { return nil }); err != nil {
				t.Fatalf("after the file could be read: %v", err)
			}
			sh, waiting := l.cur.state.shards[keyOf(shard)], l.outbox.stats(0)
			if c.written && (sh.marked != 3 || waiting.Entries != 2) {
				t.Fatalf("a written round was not kept: %d units marked, %+v", sh.marked, waiting)
			}
			if after := dump(l.cur.state, true); !c.written && (after != before || waiting.Entries != 1) {
				t.Fatalf("a round that was not written was not undone:\nbefore\n%s\nafter\n%s", before, after)
			}
			sameAfterCrash(t, l)
			next := uint64(2)
			if c.written {
				next = 3
			}
			if err := call(next, ledger.Reserve{Claims: claims(2, 1)}); err != nil {
				t.Fatal(err)
			}
			sameAfterCrash(t, l)
		})
	}
}

// unreadable returns a database whose rows cannot be read.
func unreadable(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", newPath(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return db
}

// A commit is on disk when it returns, also on a connection that replaced a failed one.
func TestSQLiteConnections_SyncFull(t *testing.T) {
	t.Parallel()
	l := openUnstarted(t, newPath(t))
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	fill(t, l, shard, 1)
	for _, connection := range []string{"first", "second"} {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2"} {
			var got string
			err := l.journal.w.conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got)
			if err != nil || got != want {
				t.Errorf("%s of the %s connection is %q, want %q (%v)", pragma, connection, got, want, err)
			}
		}
		l.journal.dropWriter()
		if err := drive(l, func(r *round) error {
			r.setSwitch(r.state.shards[keyOf(shard)], connection == "second", 0)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
