package server

import (
	"fmt"
	"net"
	"testing"
)

// MariaReplica is a mariadbd that replicates a primary asynchronously. Commits
// that it has not received exist only on the primary.
type MariaReplica struct{ *MariaServer }

// MariaPair starts a primary and a replica.
func MariaPair(t testing.TB) (primary *MariaServer, replica *MariaReplica) {
	t.Helper()
	kind := theFlavour()
	start := func(id int) *MariaServer {
		return MariaDB(t, MariaOptions{Args: append([]string{fmt.Sprintf("--server-id=%d", id)}, kind.args...)})
	}
	primary, replica = start(1), &MariaReplica{start(2)}
	host, port, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica.must(fmt.Sprintf(kind.follow, host, port, mariaUser, mariaPassword))
	replica.must(kind.start)
	return primary, replica
}

// CatchUp waits until the replica has all commits of the primary.
func (r *MariaReplica) CatchUp(primary *MariaServer) {
	r.t.Helper()
	var at string
	if err := primary.query(theFlavour().position, &at); err != nil {
		r.t.Fatal(err)
	}
	poll(r.t, "the replica to catch up", func() error {
		var late int
		if err := r.query(fmt.Sprintf(theFlavour().wait, at), &late); err != nil {
			return err
		}
		if late != 0 {
			return fmt.Errorf("it is not at %s", at)
		}
		return nil
	})
}

// Lag stops the replica from receiving.
func (r *MariaReplica) Lag() {
	r.t.Helper()
	r.must(theFlavour().lag)
}

// Promote makes the replica a primary with the commits that it has received, as
// an operator or a failover does.
func (r *MariaReplica) Promote() {
	r.t.Helper()
	for _, statement := range theFlavour().promote {
		r.must(statement)
	}
}

func (r *MariaReplica) must(query string) {
	r.t.Helper()
	if err := r.Exec(query); err != nil {
		r.t.Fatal(err)
	}
}
