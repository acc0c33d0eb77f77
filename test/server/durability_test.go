package server

import (
	"database/sql"
	"strings"
	"testing"
)

// What the servers' settings keep over the death of their process is what
// docs/durability.md builds on. That of the machine cannot be shown here.

func TestRedisWithAnAppendOnlyFileOutlivesItsProcess(t *testing.T) {
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

func TestRedisWithSnapshotsForgetsWhatCameAfterTheLast(t *testing.T) {
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

func TestMariaDBThatFlushesOnceASecondOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	m := MariaDB(t, MariaOptions{Args: []string{"--innodb-flush-log-at-trx-commit=2"}})
	db, err := sql.Open("mysql", strings.TrimPrefix(m.NewDatabase(t), "mysql:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range []string{"CREATE TABLE kept (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO kept VALUES (1)"} {
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	m.Kill()
	m.Start()
	var rows int
	if err := db.QueryRow("SELECT COUNT(*) FROM kept").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows (%v)", rows, err)
	}
}
