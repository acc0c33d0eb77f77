package server

import (
	"fmt"
	"net"
	"testing"
)

// MariaReplica is a mariadbd that follows another, asynchronously: what it has
// not received is known to the other alone.
type MariaReplica struct{ *MariaServer }

// MariaPair starts a mariadbd and one that follows it.
func MariaPair(t testing.TB) (primary *MariaServer, replica *MariaReplica) {
	t.Helper()
	start := func(id int) *MariaServer {
		return MariaDB(t, MariaOptions{Args: []string{fmt.Sprintf("--server-id=%d", id), "--log-bin=binlog", "--log-slave-updates"}})
	}
	primary, replica = start(1), &MariaReplica{start(2)}
	host, port, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica.must(fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_USE_GTID=slave_pos",
		host, port, mariaUser, mariaPassword))
	replica.must("START SLAVE")
	return primary, replica
}

// CatchUp waits until the replica has what the primary has committed.
func (r *MariaReplica) CatchUp(primary *MariaServer) {
	r.t.Helper()
	var at string
	if err := primary.query("SELECT @@gtid_binlog_pos", &at); err != nil {
		r.t.Fatal(err)
	}
	poll(r.t, "the replica to catch up", func() error {
		var late int
		if err := r.query(fmt.Sprintf("SELECT MASTER_GTID_WAIT('%s', 1)", at), &late); err != nil {
			return err
		}
		if late != 0 {
			return fmt.Errorf("it is not at %s", at)
		}
		return nil
	})
}

// Lag has the replica receive nothing more.
func (r *MariaReplica) Lag() {
	r.t.Helper()
	r.must("STOP SLAVE IO_THREAD")
}

// Promote makes the replica a server of its own, with what it has received, as
// an operator or a failover does.
func (r *MariaReplica) Promote() {
	r.t.Helper()
	r.must("STOP SLAVE")
	r.must("RESET SLAVE ALL")
}

func (r *MariaReplica) must(query string) {
	r.t.Helper()
	if err := r.Exec(query); err != nil {
		r.t.Fatal(err)
	}
}
