package server

import (
	"fmt"
	"strings"
	"testing"
)

func TestSentinel_ReplacesADeadMaster(t *testing.T) {
	t.Parallel()
	s := Sentinel(t, SentinelOptions{AppendFsync: "everysec"})
	old := s.Master()
	if s.Replica() == old || len(s.Addrs()) != sentinelCount {
		t.Fatal("the set is not complete")
	}
	old.Must("SET", "k", "v")
	s.WaitSynced()
	old.Kill()
	master := s.WaitFailover(old)
	if got := master.Must("GET", "k"); got != "v" {
		t.Errorf("the new master has %q", got)
	}
	master.Must("SET", "k", "w")
	old.Start()
	s.WaitDemoted(old)
	s.WaitSynced()
	if got := old.Must("GET", "k"); got != "w" {
		t.Errorf("the old master follows with %q", got)
	}

	// Fail back by an operator's command, and after a restart of all servers.
	if again := s.Failover(); again != old {
		t.Errorf("%s replaced %s", again.Addr(), master.Addr())
	}
	s.WaitDemoted(master)
	for _, one := range s.Servers() {
		one.Kill()
		one.Start()
	}
	if now := s.Master(); now != old {
		t.Errorf("after a restart the master is %s", now.Addr())
	}
	s.WaitSynced()
}

func TestSentinel_StaleReplicaLosesWritesWhileTheOldMasterServes(t *testing.T) {
	t.Parallel()
	s := Sentinel(t, SentinelOptions{})
	old := s.Master()
	old.Must("SET", "kept", "1")
	s.WaitSynced()
	s.Detach(old)
	old.Must("SET", "lost", "1")
	s.Hide(old)
	master := s.WaitFailover(old)
	if got := master.Must("EXISTS", "kept"); got != "1" {
		t.Error("what the replica had is gone")
	}
	if got := master.Must("EXISTS", "lost"); got != "0" {
		t.Error("the replica was not stale")
	}
	old.Must("SET", "lost", "2") // like a client that has not heard of the failover
	if err := wantField(old, "role", "master", "INFO", "replication"); err != nil {
		t.Error(err)
	}
	s.Show(old)
	s.WaitDemoted(old)
	s.WaitSynced()
	if got := old.Must("EXISTS", "lost"); got != "0" {
		t.Error("the old master kept what only it had")
	}
}

// docs/guarantees.md describes an isolated master: with min-replicas-to-write
// it refuses writes by itself after the replica was silent for longer than
// min-replicas-max-lag.
func TestSentinel_IsolatedMasterStopsServing(t *testing.T) {
	t.Parallel()
	s := Sentinel(t, SentinelOptions{Args: []string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"}})
	master := s.Master()
	poll(t, "write with the replica there", func() error {
		_, err := master.Cmd("SET", "sold", "1")
		return err
	})
	s.Replica().Pause() // silent, with an open connection
	poll(t, "the master refuses", func() error {
		if _, err := master.Cmd("SET", "sold", "2"); err == nil || !strings.Contains(err.Error(), "NOREPLICAS") {
			return fmt.Errorf("it answered %v", err)
		}
		return nil
	})
}
