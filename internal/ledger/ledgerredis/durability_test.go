package ledgerredis

import (
	"errors"
	"strings"
	"testing"
	"time"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

func TestOpen_RefusesAServerThatEvicts(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	s.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if _, err := Open(t.Context(), Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}}); !errors.Is(err, ErrEvicts) {
		t.Errorf("opened: %v", err)
	}
	// A user without the right to read the configuration is refused too.
	s.Must("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-config")
	opt := Options{Place: redisclient.Place{Addrs: []string{s.Addr()}, Username: "app", Password: "secret"}}
	if _, err := Open(t.Context(), opt); !errors.Is(err, ErrEvicts) {
		t.Errorf("opened without CONFIG: %v", err)
	}
	s.Must("CONFIG", "SET", "maxmemory-policy", "noeviction")
	l := opened(t, opt)
	if d, err := l.Durability(t.Context()); err != nil || d.Fsync != "" {
		t.Errorf("durability without CONFIG: %+v, %v", d, err)
	}
}

func TestDurability_IsReadAndDescribed(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	l := opened(t, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}})
	for _, c := range []struct {
		set  []string
		want Durability
		says string
	}{
		{[]string{"appendfsync", "always"}, Durability{AppendOnly: true, Fsync: "always"},
			"a crash of the server or its machine loses no answered write; there is no replica to fail over to"},
		{[]string{"appendfsync", "everysec"}, Durability{AppendOnly: true, Fsync: "everysec"},
			"a crash of the server loses no answered write, a crash of its machine can lose up to two seconds; there is no replica to fail over to"},
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
}

// The text and the alert use the same judgement.
func TestCanLose_DescribesAFailover(t *testing.T) {
	for _, c := range []struct {
		durability Durability
		says       string
		outlives   bool
	}{
		{Durability{Managed: true, Replicas: 1, Waits: 1},
			"replies wait for 1 replica, and a failover to one of these loses no answered write", true},
		{Durability{Managed: true, Replicas: 2, Waits: 1},
			"replies wait for 1 of 2 replicas, and a failover prefers the most recent one, so it loses no answered write unless these die together with their master", true},
		{Durability{Replicas: 2, Waits: 1},
			"replies wait for 1 of 2 replicas, and a failover loses answered writes unless you choose the most recent one", false},
		{Durability{Replicas: 1},
			"a failover can lose writes that the replica did not have yet, and all writes to an isolated master", false},
		{Durability{Replicas: 1, MinReplicas: 1}, "a failover can lose writes that the replica did not have yet", false},
	} {
		_, says, _ := strings.Cut(c.durability.CanLose(), "; ")
		if outlives := c.durability.OutlivesFailover(); says != c.says || outlives != c.outlives {
			t.Errorf("%+v: outlives %v; %s", c.durability, outlives, says)
		}
	}
}

func TestOutlivesFailover_OnlyIfRepliesWaitForTheSuccessor(t *testing.T) {
	for name, c := range map[string]struct {
		durability Durability
		outlives   bool
	}{
		"alone":                                {Durability{}, true},
		"a replica, not waited for":            {Durability{Replicas: 1}, false},
		"Sentinels, the replica is away":       {Durability{Managed: true}, false},
		"the only replica":                     {Durability{Managed: true, Replicas: 1, Waits: 1}, true},
		"waited for, and away":                 {Durability{Managed: true, Waits: 1}, true},
		"one of two, the best takes over":      {Durability{Managed: true, Replicas: 2, Waits: 1}, true},
		"one of two, by an operator's choice":  {Durability{Replicas: 2, Waits: 1}, false},
		"both of two, by an operator's choice": {Durability{Replicas: 2, Waits: 2}, true},
	} {
		if got := c.durability.OutlivesFailover(); got != c.outlives {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// With two replicas, and answers that wait for one of them, a master may die without loss: the
// replica with less data does not take over, although the Sentinels would otherwise prefer it.
func TestSentinel_ReplicaThatRepliesWaitedForTakesOver(t *testing.T) {
	t.Parallel() // most of it is waiting
	set := server.Sentinel(t, server.SentinelOptions{Replicas: 2})
	streaming(t, set)
	l := opened(t, Options{
		Place: redisclient.Place{Addrs: set.Addrs(), Sentinel: set.MasterName()}, WaitReplicas: 1, WaitTimeout: time.Second,
	})
	if d, err := l.Durability(t.Context()); err != nil || d.Replicas != 2 || !d.OutlivesFailover() {
		t.Errorf("%+v, %v", d, err)
	}
	r := newRig(t, l)
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	master := set.Master()
	behind, waitedFor := byRunID(set.Servers()[1], set.Servers()[2])
	set.Part(behind)
	r.expect(ledger.OutcomeApplied, 2, 1, reserve(r.claim("bob", "")))
	master.Kill()
	if now := set.WaitFailover(master); now != waitedFor {
		t.Fatalf("%s took over, not %s, which has more", now.Addr(), waitedFor.Addr())
	}
	set.Rejoin(behind)
	if reply := r.repeat(3, 2, nil); reply.Outcome != ledger.OutcomeApplied {
		t.Fatalf("outcome %d", reply.Outcome)
	}
	r.wantSold(2)
}

// byRunID orders two equal replicas as Sentinels prefer them.
func byRunID(a, b *server.RedisServer) (first, second *server.RedisServer) {
	if parseInfo(a.Must("INFO", "server"))["run_id"] > parseInfo(b.Must("INFO", "server"))["run_id"] {
		a, b = b, a
	}
	return a, b
}

func TestDurability_OfAClusterIsItsWeakestMaster(t *testing.T) {
	t.Parallel() // most of it is waiting
	cluster := server.Cluster(t, server.ClusterOptions{})
	l := opened(t, Options{Place: redisclient.Place{Addrs: cluster.Addrs()}})
	for i, node := range cluster.Nodes() {
		node.Must("CONFIG", "SET", "appendonly", "yes", "appendfsync", []string{"always", "no", "everysec"}[i])
	}
	if d, err := l.Durability(t.Context()); err != nil || !d.AppendOnly || d.Fsync != "no" || !d.Managed {
		t.Errorf("%+v, %v", d, err)
	}
	cluster.Nodes()[2].Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if _, err := Open(t.Context(), Options{Place: redisclient.Place{Addrs: cluster.Addrs()}}); !errors.Is(err, ErrEvicts) {
		t.Errorf("a Cluster of which one master evicts: %v", err)
	}
}
