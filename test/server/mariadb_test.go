package server

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
)

func TestMariaDB_KeepsPortAndCommitsAfterRestart(t *testing.T) {
	m := MariaDB(t, MariaOptions{Args: []string{"--max-connections=17"}})
	dsn, found := strings.CutPrefix(m.NewDatabase(t), "mysql:")
	if !found {
		t.Fatal("the store's DSN has no scheme")
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(query string) {
		t.Helper()
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int) {
		t.Helper()
		if err := db.QueryRow("SELECT COUNT(*) FROM kept").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	exec("CREATE TABLE kept (id INT PRIMARY KEY) ENGINE=InnoDB")
	exec("INSERT INTO kept VALUES (1)")
	m.Kill()
	if err := m.Exec("SELECT 1"); err == nil {
		t.Fatal("a killed server answered")
	}
	m.Start()
	exec("INSERT INTO kept VALUES (2)")
	m.Stop()
	m.Start()
	if n := count(); n != 2 {
		t.Errorf("%d of 2 rows are left", n)
	}
	var limit int
	if err := db.QueryRow("SELECT @@max_connections").Scan(&limit); err != nil || limit != 17 {
		t.Errorf("max_connections is %d (%v): the test's arguments do not count", limit, err)
	}
	m.Pause()
	answered := make(chan error, 1)
	go func() { answered <- m.Exec("SELECT 1") }()
	m.Resume()
	if err := <-answered; err != nil {
		t.Errorf("after a pause: %v", err)
	}
}

func TestSharedMariaDB_EachTestHasADatabase(t *testing.T) {
	m := SharedMariaDB(t)
	one, two := m.NewDatabase(t), SharedMariaDB(t).NewDatabase(t)
	if one == two || m.PID() != SharedMariaDB(t).PID() {
		t.Errorf("%s and %s", one, two)
	}
}
