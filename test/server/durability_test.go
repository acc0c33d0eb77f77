package server

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs/guarantees.md relies on the data that these server settings keep when
// the process is killed. A crash of the machine cannot be tested here.

func TestRedis_KillWithAppendOnlyFileKeepsData(t *testing.T) {
	for _, fsync := range []string{"no", "everysec", "always"} {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			r := Redis(t, RedisOptions{AppendFsync: fsync})
			r.Must("SET", "k", "v")
			r.Kill()
			r.Start()
			if got := r.Must("GET", "k"); got != "v" {
				t.Errorf("it has %q", got)
			}
		})
	}
}

func TestRedis_KillLosesWritesAfterTheLastSnapshot(t *testing.T) {
	t.Parallel()
	r := Redis(t, RedisOptions{Args: []string{"--save", "3600 1000000"}})
	r.Must("SET", "before", "1")
	r.Must("SAVE")
	r.Must("SET", "after", "1")
	r.Kill()
	r.Start()
	if got := r.Must("KEYS", "*"); got != "before" {
		t.Errorf("it has %q", got)
	}
}

func TestMariaDB_FlushEachSecondKeepsCommitsAfterKill(t *testing.T) {
	t.Parallel()
	m := MariaDB(t, MariaOptions{Args: []string{"--innodb-flush-log-at-trx-commit=2"}})
	k := keep(t, m.NewDatabase(t))
	k.insert(1)
	m.Kill()
	m.Start()
	if got := k.rows(); !slices.Equal(got, []int{1}) {
		t.Errorf("it has %v", got)
	}
}

// The server answers a commit from memory and writes it about once a second. A
// kill right after the answer loses the commit, unless the write came just
// then: hence several tries.
func TestMariaDB_WriteEachSecondLosesTheLastSecondAfterKill(t *testing.T) {
	t.Parallel()
	m := MariaDB(t, MariaOptions{Args: []string{"--innodb-flush-log-at-trx-commit=0"}})
	k := keep(t, m.NewDatabase(t))
	k.insert(1)
	poll(t, "the commit is on its way to the disk", k.written(k.logged("Log sequence number")))
	const tries = 5
	for last := 2; last < 2+tries; last++ {
		k.insert(last)
		m.Kill()
		m.Start()
		got := k.rows()
		if !slices.Contains(got, 1) {
			t.Fatalf("what was written is gone: it has %v", got)
		}
		if !slices.Contains(got, last) {
			return
		}
	}
	t.Errorf("of %d commits whose server was killed upon its answer none was lost", tries)
}

func TestMariaDB_FailoverLosesWritesTheReplicaLacks(t *testing.T) {
	t.Parallel()
	primary, replica := MariaPair(t)
	dsn := primary.NewDatabase(t)
	k := keep(t, dsn)
	k.insert(1)
	replica.CatchUp(primary)
	replica.Lag()
	k.insert(2)
	primary.Kill()
	replica.Promote()
	follower := reach(t, strings.Replace(dsn, primary.Addr(), replica.Addr(), 1))
	if got := follower.rows(); !slices.Equal(got, []int{1}) {
		t.Errorf("the replica has %v", got)
	}
	follower.insert(3)
}

// kept is a table of committed rows in a MariaDB.
type kept struct {
	t  *testing.T
	db *sql.DB
}

// keep makes the table.
func keep(t *testing.T, dsn string) *kept {
	t.Helper()
	k := reach(t, dsn)
	k.exec("CREATE TABLE kept (id INT PRIMARY KEY) ENGINE=InnoDB")
	return k
}

// reach connects to an existing table.
func reach(t *testing.T, dsn string) *kept {
	t.Helper()
	db, err := sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &kept{t, db}
}

func (k *kept) exec(query string, args ...any) {
	k.t.Helper()
	if _, err := k.db.Exec(query, args...); err != nil {
		k.t.Fatal(err)
	}
}

// insert commits a row.
func (k *kept) insert(id int) {
	k.t.Helper()
	k.exec("INSERT INTO kept VALUES (?)", id)
}

func (k *kept) rows() (ids []int) {
	k.t.Helper()
	rows, err := k.db.Query("SELECT id FROM kept ORDER BY id")
	if err != nil {
		k.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			k.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		k.t.Fatal(err)
	}
	return ids
}

// logged is a position of the server's log, from its status text. (The status
// variables have it too, but in MySQL they are updated later.)
func (k *kept) logged(what string) uint64 {
	k.t.Helper()
	var status string
	if err := k.db.QueryRow("SHOW ENGINE INNODB STATUS").Scan(new(string), new(string), &status); err != nil {
		k.t.Fatal(err)
	}
	for line := range strings.Lines(status) {
		if place, found := strings.CutPrefix(line, what); found {
			at, err := strconv.ParseUint(strings.TrimSpace(place), 10, 64)
			if err != nil {
				k.t.Fatal(err)
			}
			return at
		}
	}
	k.t.Fatalf("it does not say its %q:\n%s", what, status)
	return 0
}

// written returns nil after the log was written to its file up to a position.
func (k *kept) written(place uint64) func() error {
	return func() error {
		if at := k.logged("Log flushed up to"); at < place {
			return fmt.Errorf("the log is written up to %d, not %d", at, place)
		}
		return nil
	}
}
