package storesql

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"seckill/test/server"
)

// A migration comes while the version before it still runs. What each version
// says to its store stands in testdata/statement, recorded from that version
// (record_test.go); here it is said again, on the tables of its successors.

// oldProgram is a version that knows nothing of the tables' later ones.
type oldProgram struct {
	t          *testing.T
	conns      map[int]*sql.Conn
	statements []said
	prepared   map[int]*sql.Stmt // by place in statements
}

func newOldProgram(t *testing.T, dsn string, statements []said) *oldProgram {
	t.Helper()
	pool, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:")+"?clientFoundRows=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	p := &oldProgram{t: t, conns: make(map[int]*sql.Conn), statements: statements, prepared: make(map[int]*sql.Stmt)}
	for _, st := range statements {
		if p.conns[st.conn] != nil {
			continue
		}
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		p.conns[st.conn] = conn
	}
	return p
}

// prepareAll prepares whatever reads or writes a table, on the tables as they
// are now.
func (p *oldProgram) prepareAll() {
	p.t.Helper()
	for i, st := range p.statements {
		switch verb, _, _ := strings.Cut(st.text, " "); verb {
		case "SELECT", "INSERT", "UPDATE", "DELETE":
			stmt, err := p.conns[st.conn].PrepareContext(p.t.Context(), st.text)
			if err != nil {
				p.t.Fatalf("prepare %s: %v", st.text, err)
			}
			p.prepared[i] = stmt
		}
	}
}

// sayAll says everything, and returns the answers.
func (p *oldProgram) sayAll() []string {
	p.t.Helper()
	answers := make([]string, len(p.statements))
	for i := range p.statements {
		answers[i] = p.say(i)
	}
	return answers
}

// say tells the server one statement and returns what it answered: the rows, how
// many were changed, or that a row is there already, by which the store finds
// out who came second.
func (p *oldProgram) say(i int) string {
	p.t.Helper()
	st := p.statements[i]
	answer, err := p.answer(p.t.Context(), i)
	for try := 0; err != nil && mysqlContended[mysqlCode(err)] && try < contendedTries; try++ {
		answer, err = p.again(i)
	}
	if mysqlCode(err) == mysqlTaken {
		return err.Error()
	}
	if err != nil {
		p.t.Fatalf("statement %d: %s\n%v", i, st.text, err)
	}
	if !strings.Contains(st.text, " FROM ") && strings.HasPrefix(st.text, "SELECT") {
		return "" // the server's clock, or its version
	}
	return answer
}

// contendedTries is how often the replay begins a transaction again.
const contendedTries = 5

// again begins the transaction of a statement anew, as every version does when it
// met a deadlock: here with a migration, which waits for the table.
func (p *oldProgram) again(i int) (answer string, err error) {
	begin := i
	for begin > 0 && (p.statements[begin].conn != p.statements[i].conn || p.statements[begin].text != "START TRANSACTION") {
		begin--
	}
	for k := begin; k <= i && err == nil; k++ {
		if p.statements[k].conn == p.statements[i].conn {
			answer, err = p.answer(p.t.Context(), k)
		}
	}
	return answer, err
}

func (p *oldProgram) answer(ctx context.Context, i int) (string, error) {
	st := p.statements[i]
	conn, stmt := p.conns[st.conn], p.prepared[i]
	if !strings.HasPrefix(st.text, "SELECT") {
		exec := func() (sql.Result, error) { return conn.ExecContext(ctx, st.text) }
		if stmt != nil {
			exec = func() (sql.Result, error) { return stmt.ExecContext(ctx) }
		}
		result, err := exec()
		if err != nil {
			return "", err
		}
		changed, err := result.RowsAffected()
		return fmt.Sprint(changed), err
	}
	query := func() (*sql.Rows, error) { return conn.QueryContext(ctx, st.text) }
	if stmt != nil {
		query = func() (*sql.Rows, error) { return stmt.QueryContext(ctx) }
	}
	rows, err := query()
	if err != nil {
		return "", err
	}
	defer rows.Close()
	return tell(rows)
}

// tell is all rows as text.
func tell(rows *sql.Rows) (string, error) {
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	cells, dest := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range cells {
		dest[i] = &cells[i]
	}
	var all strings.Builder
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return "", err
		}
		fmt.Fprintln(&all, cells)
	}
	return all.String(), rows.Err()
}

// migratedTo gives a database the tables as they were at a version.
func migratedTo(t *testing.T, dsn string, version int64) {
	t.Helper()
	pool, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	dir, err := fs.Sub(mysqlMigrations, "migration/mysql")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectMySQL, pool, dir, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}

// eachVersionBefore runs a test for every version that has a successor, with
// its statements and the answers to them on its own tables.
func eachVersionBefore(t *testing.T, test func(t *testing.T, version, latest int64, statements []said, answers []string)) {
	latest, err := latestMigration(mysqlMigrations)
	if err != nil {
		t.Fatal(err)
	}
	for version := int64(1); version < latest; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			statements := readStatements(t, version)
			dsn := server.SharedMariaDB(t).NewDatabase(t)
			migratedTo(t, dsn, version)
			test(t, version, latest, statements, newOldProgram(t, dsn, statements).sayAll())
		})
	}
}

func wantAnswers(t *testing.T, statements []said, got, want []string) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("statement %d: %s\nwas answered %q, and %q on its own tables", i, statements[i].text, got[i], want[i])
		}
	}
}

func TestTheVersionBeforeWorksOnMigratedTables(t *testing.T) {
	t.Parallel()
	eachVersionBefore(t, func(t *testing.T, version, latest int64, statements []said, answers []string) {
		for _, next := range slices.Compact([]int64{version + 1, latest}) {
			dsn := server.SharedMariaDB(t).NewDatabase(t)
			migratedTo(t, dsn, version)
			old := newOldProgram(t, dsn, statements)
			old.prepareAll() // what it holds when the migration comes
			migratedTo(t, dsn, next)
			wantAnswers(t, statements, old.sayAll(), answers)
			if next == latest {
				wantSoundAfter(t, dsn)
			}
		}
	})
}

// wantSoundAfter reads with this version what an old one wrote.
func wantSoundAfter(t *testing.T, dsn string) {
	t.Helper()
	s := openAt(t, dsn, Options{})
	products, err := s.Products(t.Context())
	if err != nil || len(products) == 0 {
		t.Fatalf("%d products: %v", len(products), err)
	}
	for _, p := range products {
		f, err := s.Figures(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		checkSound(t, s, f)
	}
}

// The old version is in the middle of its work, at another place each time,
// when the tables change under it.
func TestTheVersionBeforeGoesOnWhileItsTablesAreMigrated(t *testing.T) {
	t.Parallel()
	const starts = 4
	eachVersionBefore(t, func(t *testing.T, version, latest int64, statements []said, answers []string) {
		for start := range starts {
			dsn := server.SharedMariaDB(t).NewDatabase(t)
			migratedTo(t, dsn, version)
			s, err := Open(t.Context(), dsn, Options{MaxConns: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			old, migrated := newOldProgram(t, dsn, statements), make(chan error, 1)
			got := make([]string, len(statements))
			for i := range statements {
				if i == len(statements)*start/starts {
					go func() { migrated <- s.Migrate(t.Context()) }()
				}
				got[i] = old.say(i)
			}
			if err := <-migrated; err != nil {
				t.Fatalf("migrate: %v", err)
			}
			wantAnswers(t, statements, got, answers)
			if current, _, err := s.Version(t.Context()); err != nil || current != latest {
				t.Fatalf("the tables are of version %d, not %d: %v", current, latest, err)
			}
			wantSoundAfter(t, dsn)
		}
	})
}
