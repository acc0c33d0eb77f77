package storesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

func TestOpen_RefusesBadAddressesAndFiles(t *testing.T) {
	dir := t.TempDir()
	noDatabase := filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(noDatabase, []byte(strings.Repeat("Dear shop, ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dsn, says string }{
		{"no kind", "store.db", "sqlite:PATH"},
		{"unknown kind", "oracle:x", "unknown kind"},
		{"no path", "sqlite:", "path of a file"},
		{"memory", "sqlite::memory:", "path of a file"},
		{"no directory", "sqlite:" + filepath.Join(dir, "missing", "store.db"), "no such file or directory"},
		{"no database", "sqlite:" + noDatabase, "restore it from a backup"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(t.Context(), c.dsn, Options{})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q does not say %q", err, c.says)
			}
		})
	}
}

func TestOpen_PathMayHaveAnyCharacter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a?b=%20 秒#杀&_pragma=x.db")
	s := openAt(t, "sqlite:"+path, Options{})
	sale(t, s, 1)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the file has mode %o, want 600: it names buyers", mode)
	}
}

func TestMigrate_ManyProcessesAtOnce(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "store.db")
	const rivals = 4
	stores := make([]*Store, rivals)
	for i := range stores {
		s, err := Open(t.Context(), dsn, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores[i] = s
	}
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		if _, err := s.CurrentProducts(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// holdWriter keeps a write transaction of s open until release is called.
func holdWriter(t *testing.T, s *Store) (release func()) {
	t.Helper()
	held, done := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.db.write(context.Background(), func(*session) error {
			close(held)
			<-done
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-held
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

func TestSQLiteWriters_WaitEndsAtDeadline(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "store.db")
	s := openAt(t, dsn, Options{})
	other := openAt(t, dsn, Options{}) // like another process
	p := sale(t, s, 10)
	for name, holder := range map[string]*Store{"behind a writer of this process": s, "behind another process": other} {
		t.Run(name, func(t *testing.T) {
			release := holdWriter(t, holder)
			defer release()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := s.Confirm(ctx, request(&p, claims(&p, 1)))
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Confirm: %v, want ErrUnavailable", err)
			}
			if err := s.Ping(ctx); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Ping: %v, want ErrUnavailable", err)
			}
			if _, err := s.Product(t.Context(), p.ID); err != nil {
				t.Errorf("a reader waits for the writer: %v", err)
			}
			release()
			if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1))); err != nil {
				t.Errorf("after the wait: %v", err)
			}
		})
	}
}

func TestSQLiteFullDisk_UnavailableThenWorksAgain(t *testing.T) {
	s := openNew(t)
	p := sale(t, s, 100_000)
	const batch = 200
	limitPages := func(n int) {
		err := s.db.write(t.Context(), func(tx *session) error {
			return tx.query(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", n), nil, func(row scanner) error {
				return row.Scan(new(int))
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limitPages(1) // SQLite raises this to the present size
	var err error
	promised := 0
	for range 100 {
		if _, err = s.Confirm(t.Context(), request(&p, claims(&p, batch))); err != nil {
			break
		}
		promised += batch
	}
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Confirm on a full disk: %v, want ErrUnavailable", err)
	}
	if _, err := s.Product(t.Context(), p.ID); err != nil {
		t.Errorf("reading on a full disk: %v", err)
	}
	limitPages(1 << 20)
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping when there is space again: %v", err)
	}
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, batch))); err != nil {
		t.Errorf("Confirm when there is space again: %v", err)
	}
	f, err := s.Figures(t.Context(), p.ID)
	if err != nil || f.Pending != int64(promised+batch) {
		t.Errorf("pending %d, want the %d that were confirmed (%v)", f.Pending, promised+batch, err)
	}
}

func TestPing_WritesAfterAFailure(t *testing.T) {
	s := openNew(t)
	count := func() int64 { return embedded(s).writer.ran.Load() }
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := count()
	embedded(s).sick.Store(true)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if count() == before || embedded(s).sick.Load() {
		t.Error("Ping succeeded without a write after a failure")
	}
}

func TestChange_PanicLeavesTheStoreUsable(t *testing.T) {
	everyDatabase(t, panicInAChangeLeavesTheStoreUsable)
}

func panicInAChangeLeavesTheStoreUsable(t *testing.T, s *Store) {
	p := sale(t, s, 10)
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1))); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		s.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(seckill.Order) error { panic("the ledger's client is broken") })
	}()
	if _, err := s.Confirm(t.Context(), request(&p, claims(&p, 1))); err != nil {
		t.Fatal(err)
	}
	if after, err := s.Product(t.Context(), p.ID); err != nil || after.Epoch != p.Epoch {
		t.Errorf("epoch %d after a panic, want %d (%v)", after.Epoch, p.Epoch, err)
	}
}

// A commit is on disk when it returns, also on a connection that replaced a failed one.
func TestSQLiteConnections_SyncFull(t *testing.T) {
	s := openNew(t)
	for _, connection := range []string{"first", "second"} {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
			var got string
			err := s.db.write(t.Context(), func(tx *session) error {
				_, err := tx.row(t.Context(), "PRAGMA "+pragma, nil, &got)
				return err
			})
			if err != nil || got != want {
				t.Errorf("%s of the %s connection is %q, want %q (%v)", pragma, connection, got, want, err)
			}
		}
		if err := embedded(s).takeTurn(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := embedded(s).dropConn()
		<-embedded(s).turn
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Frequent queries must not scan a table that grows.
func TestFrequentQueries_UseTheirIndexInSQLite(t *testing.T) {
	s := openNew(t)
	for _, c := range []struct{ query, index string }{
		{sqlOrder, "uk_order_no"},
		{sqlKnownOrders.head + "?)", "uk_order_no"},
		{sqlKnownUnits.head + "?)", "PRIMARY KEY"},
		{sqliteDialect.knownKeys.head + "(?,?),(?,?))", "uk_order_key (user_id=? AND limit_group=? AND idem_key=?)"},
		{sqlDueOrders + "1 = 1 LIMIT ?", "ix_order_due"},
		{sqlDueOrders + "product_id <> ? LIMIT ?", "ix_order_due"},
		{sqlOrdersToWarn, "ix_order_due"},
		{statement{sqlWarned, 128}.text(), "uk_order_no"},
		{statement{sqlOrdersByNo, 128}.text(), "uk_order_no"},
		{statement{sqlDueAmong, 128}.text(), "uk_order_no"},
		{statement{sqlCloseOrders, 128}.text(), "order_no=?"},
		{sqlReleasesDue + "NOT (product_id = ? AND shard = ?)" + sqlReleasesOrder, "ix_order_release"},
		{statement{sqlSettleReleases, 2}.text(), "MULTI-INDEX OR; INDEX 1; SEARCH tb_seckill_order USING INDEX uk_order_no"},
		{statement{sqlOweAgain, 2}.text(), "uk_order_no"},
		{statement{sqlOweLettered, 2}.text(), "uk_order_no"},
		{sqlUnits, "COVERING INDEX ix_order_product_status"},
		{sqlPendingUntil.head + "?, ?" + sqlPendingUntil.tail, "ix_order_product_status (product_id=? AND status=?)"},
		{sqlMarkedOrders, "ix_order_product_status"},
		{sqlDeadKeys, "ix_order_product_status (product_id=? AND status=?)"},
		{sqlDirectBuyers(&sqliteDialect), "ix_order_product_status"},
		{sqlLiveNos.head + "?)", "uk_order_key (user_id=? AND limit_group=?)"},
		{sqlLettersDue + "product_id <> ?" + sqlLettersDueOrder, "ix_letter_due"},
		{sqlDeadLetters + "1 = 1" + sqlDeadLettersOrder, "ix_letter_dead"},
		{sqlDeadLetters + "product_id <> ?" + sqlDeadLettersOrder, "ix_letter_dead"},
		{sqlAnyLetters, "ix_letter_product"},
		{sqlLettersToHold, "ix_letter_product"},
		{sqlRefundsDue, "ix_payment_due"},
		{sqlStockChangesDue + "product_id <> ?" + sqlStockChangesOrder, "ix_stock_change_open"},
		{sqlEvents, "INTEGER PRIMARY KEY"},
		{sqliteDialect.storyEvents, "ix_event_order"},
		{sqlStoryAudit, "ix_audit_order"},
		{sqlStoryStock, "ix_stock_log_order"},
		{sqlStockLog, "PRIMARY KEY"},
	} {
		var plan []string
		err := s.snapshot(t.Context(), "explain", func(ctx context.Context, r *session) error {
			args := make([]any, strings.Count(c.query, "?"))
			return r.query(ctx, "EXPLAIN QUERY PLAN "+c.query, args, func(row scanner) error {
				var detail string
				err := row.Scan(new(int), new(int), new(int), &detail)
				plan = append(plan, detail)
				return err
			})
		})
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		if !strings.Contains(strings.Join(plan, "; "), c.index) {
			t.Errorf("%s\n\tdoes not use %s: %s", c.query, c.index, plan)
		}
	}
}

func TestMigrate_RefusesNewerSQLiteSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(t.Context(), "sqlite:"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("got %v", err)
	}
}
