package storesql

import (
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/test/server"
)

// Before a migration is written, the statements of the version before it are
// recorded, for they must work on its tables:
//
//	go test -run TestALifeCanBeToldAgain ./internal/store/storesql -record
var record = flag.Bool("record", false, "keep the statements of this version in testdata/statement")

// said is one statement, as the server was told it by one of the connections.
type said struct {
	conn int
	text string
}

// statementFile is where the statements of a version are kept: each begins with
// a line that names its connection.
func statementFile(version int64) string {
	return filepath.Join("testdata", "statement", fmt.Sprintf("%d.sql", version))
}

const saidBy = "-- connection "

func writeStatements(version int64, statements []said) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "-- What a program of version %d says to MariaDB in one life of its products, in order.\n", version)
	for _, st := range statements {
		fmt.Fprintf(&out, "%s%d\n%s\n", saidBy, st.conn, strings.TrimSpace(st.text))
	}
	return os.WriteFile(statementFile(version), out.Bytes(), 0o644)
}

func readStatements(t *testing.T, version int64) []said {
	t.Helper()
	text, err := os.ReadFile(statementFile(version))
	if err != nil {
		t.Fatalf("%v: record the statements of a version before its successor's migration, see record_test.go", err)
	}
	var statements []said
	for _, part := range strings.Split(string(text), "\n"+saidBy)[1:] {
		var st said
		head, body, _ := strings.Cut(part, "\n")
		if _, err := fmt.Sscan(head, &st.conn); err != nil {
			t.Fatalf("%s: connection %q: %v", statementFile(version), head, err)
		}
		st.text = strings.TrimSpace(body)
		if !strings.HasPrefix(st.text, onlyMariaDB) {
			statements = append(statements, st)
		}
	}
	return statements
}

// onlyMariaDB begins what a MySQL is told otherwise: how long a statement may
// take, which matters to no other.
const onlyMariaDB = "SET SESSION max_statement_time"

// recordLife has a program of this version live on a database of its own, and
// returns what the server was told.
func recordLife(t *testing.T, maria *server.MariaServer) []said {
	t.Helper()
	dsn := maria.NewDatabase(t)
	openAt(t, dsn, Options{}).Close()
	if err := maria.Exec("SET GLOBAL general_log = 1"); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), dsn, Options{MaxConns: 2}) // one that writes, one that reads
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	(&life{t: t, Store: s}).live()
	if err := maria.Exec("SET GLOBAL general_log = 0"); err != nil {
		t.Fatal(err)
	}
	return general(t, maria)
}

// general reads the server's general log: the statements of the connections,
// without those with which it was switched on and off.
func general(t *testing.T, maria *server.MariaServer) (statements []said) {
	t.Helper()
	pool, err := sql.Open("mysql", maria.DSN("mysql"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	rows, err := pool.QueryContext(t.Context(), `SELECT thread_id, argument FROM general_log WHERE command_type IN ('Query', 'Execute')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	numbers := make(map[int64]int)
	for rows.Next() {
		var thread int64
		var st said
		if err := rows.Scan(&thread, &st.text); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(st.text, "SET GLOBAL") {
			continue
		}
		if numbers[thread] == 0 {
			numbers[thread] = len(numbers) + 1
		}
		st.conn = numbers[thread]
		statements = append(statements, st)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return statements
}

func TestALifeCanBeToldAgain(t *testing.T) {
	maria := server.MariaDB(t, server.MariaOptions{Args: []string{"--log-output=TABLE"}})
	statements := recordLife(t, maria)
	latest, err := latestMigration(mysqlMigrations)
	if err != nil {
		t.Fatal(err)
	}
	if *record {
		if err := writeStatements(latest, statements); err != nil {
			t.Fatal(err)
		}
	}
	dsn := maria.NewDatabase(t)
	migratedTo(t, dsn, latest)
	if answers := newOldProgram(t, dsn, statements).sayAll(); len(answers) < 100 {
		t.Errorf("a life of %d statements", len(answers))
	}
}
