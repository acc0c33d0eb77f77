package ledgerredis

import (
	"errors"
	"strings"
	"testing"

	"seckill/internal/redislink"
	"seckill/test/server"
)

func TestAServerThatEvictsIsRefused(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	s.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if _, err := Open(t.Context(), Options{Place: redislink.Place{Addrs: []string{s.Addr()}}}); !errors.Is(err, ErrEvicts) {
		t.Errorf("opened: %v", err)
	}
	// A user who may not read the configuration is refused no less.
	s.Must("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-config")
	opt := Options{Place: redislink.Place{Addrs: []string{s.Addr()}, Username: "app", Password: "secret"}}
	if _, err := Open(t.Context(), opt); !errors.Is(err, ErrEvicts) {
		t.Errorf("opened without CONFIG: %v", err)
	}
	s.Must("CONFIG", "SET", "maxmemory-policy", "noeviction")
	l := opened(t, opt)
	if d, err := l.Durability(t.Context()); err != nil || d.Fsync != "" {
		t.Errorf("durability without CONFIG: %+v, %v", d, err)
	}
}

func TestDurabilityIsReadAndSaid(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	l := opened(t, Options{Place: redislink.Place{Addrs: []string{s.Addr()}}})
	for _, c := range []struct {
		set  []string
		want Durability
		says string
	}{
		{[]string{"appendfsync", "always"}, Durability{AppendOnly: true, Fsync: "always"},
			"a crash of the server or its machine loses nothing that was answered; there is no replica to fail over to"},
		{[]string{"appendfsync", "everysec"}, Durability{AppendOnly: true, Fsync: "everysec"},
			"a crash of the server loses nothing that was answered, one of its machine up to two seconds; there is no replica to fail over to"},
		{[]string{"appendonly", "no"}, Durability{Fsync: "everysec"},
			"a crash loses everything; there is no replica to fail over to"},
		{[]string{"save", "60 1", "min-replicas-to-write", "0"}, Durability{Fsync: "everysec", Snapshots: "60 1"},
			"a crash loses everything since the last snapshot; there is no replica to fail over to"},
	} {
		s.Must(append([]string{"CONFIG", "SET"}, c.set...)...)
		got, err := l.Durability(t.Context())
		if err != nil || got != c.want || got.CanLose() != c.says {
			t.Errorf("%v: %+v, %v: %s", c.set, got, err, got.CanLose())
		}
	}
	waits := Durability{AppendOnly: true, Fsync: "always", Replicas: 2, Waits: 1}
	if got, want := waits.CanLose(), "a crash of the server or its machine loses nothing that was answered; "+
		"answers wait for 1 replica, and a failover to one that they waited for loses none of them"; got != want {
		t.Error(got)
	}
}

func TestAFailoverIsOutlivedOnlyIfAnswersWaitForWhoeverMayTakeOver(t *testing.T) {
	for name, c := range map[string]struct {
		durability Durability
		outlives   bool
	}{
		"alone":                                {Durability{}, true},
		"a replica, not waited for":            {Durability{Replicas: 1}, false},
		"Sentinels, the replica is away":       {Durability{Managed: true}, false},
		"the only replica":                     {Durability{Managed: true, Replicas: 1, Waits: 1}, true},
		"waited for, and away":                 {Durability{Managed: true, Waits: 1}, true},
		"one of two":                           {Durability{Managed: true, Replicas: 2, Waits: 1}, false},
		"both of two, by an operator's choice": {Durability{Replicas: 2, Waits: 2}, true},
	} {
		if got := c.durability.OutlivesFailover(); got != c.outlives {
			t.Errorf("%s: %v", name, got)
		}
	}
	cut := "a failover can lose what the replica did not have yet, and all that a master which was cut off takes meanwhile"
	if got := (Durability{Replicas: 1}).CanLose(); !strings.HasSuffix(got, cut) {
		t.Error(got)
	}
	if got := (Durability{Replicas: 1, MinReplicas: 1}).CanLose(); strings.HasSuffix(got, cut) {
		t.Error(got)
	}
}

func TestAClusterIsJudgedByItsWeakestMaster(t *testing.T) {
	t.Parallel() // most of it is waiting
	cluster := server.Cluster(t, server.ClusterOptions{})
	l := opened(t, Options{Place: redislink.Place{Addrs: cluster.Addrs()}})
	for i, node := range cluster.Nodes() {
		node.Must("CONFIG", "SET", "appendonly", "yes", "appendfsync", []string{"always", "no", "everysec"}[i])
	}
	if d, err := l.Durability(t.Context()); err != nil || !d.AppendOnly || d.Fsync != "no" || !d.Managed {
		t.Errorf("%+v, %v", d, err)
	}
	cluster.Nodes()[2].Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if _, err := Open(t.Context(), Options{Place: redislink.Place{Addrs: cluster.Addrs()}}); !errors.Is(err, ErrEvicts) {
		t.Errorf("a Cluster of which one master evicts: %v", err)
	}
}
