package ledgerredis

import (
	"fmt"
	"strings"
	"testing"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger/ledgertest"
	"seckill/test/server"
)

// Reopen kills the server. With appendfsync always, no answered write is lost.
func TestConformanceStandalone(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	l := opened(t, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}, Prefix: "seckill:", reply: callTimeout})
	h := ledgertest.Harness{Ledger: l, Queue: l.Queue()}
	h.Reopen = func(t *testing.T) ledgertest.Harness {
		s.Kill()
		s.Start()
		return h
	}
	ledgertest.Run(t, func(t *testing.T) ledgertest.Harness { return h })
}

// Every reply waits for the replica, so no answered write is lost when Reopen kills the master.
func TestConformanceSentinel(t *testing.T) {
	t.Parallel() // most of it is waiting
	set := server.Sentinel(t, server.SentinelOptions{})
	streaming(t, set)
	l := opened(t, Options{Place: redisclient.Place{Addrs: set.Addrs(), Sentinel: set.MasterName()}, Prefix: "seckill:", WaitReplicas: 1, reply: callTimeout})
	h := ledgertest.Harness{Ledger: l, Queue: l.Queue(), SlowReopen: true}
	h.Reopen = func(t *testing.T) ledgertest.Harness {
		old := set.Master()
		old.Kill()
		set.WaitFailover(old)
		old.Start()
		set.WaitDemoted(old)
		streaming(t, set)
		return h
	}
	ledgertest.Run(t, func(*testing.T) ledgertest.Harness { return h })
}

// The buckets are on three masters, and Reopen kills them all.
func TestConformanceCluster(t *testing.T) {
	t.Parallel() // most of it is waiting
	cluster := server.Cluster(t, server.ClusterOptions{AppendFsync: "always"})
	l := opened(t, Options{Place: redisclient.Place{Addrs: cluster.Addrs()[:1]}, Prefix: "seckill:", reply: callTimeout})
	h := ledgertest.Harness{Ledger: l, Queue: l.Queue(), SlowReopen: true}
	h.Reopen = func(*testing.T) ledgertest.Harness {
		restart(cluster)
		return h
	}
	ledgertest.Run(t, func(*testing.T) ledgertest.Harness { return h })
}

// restart kills every node of a Cluster and starts it again.
func restart(cluster *server.RedisCluster) {
	for _, node := range cluster.Nodes() {
		node.Kill()
	}
	for _, node := range cluster.Nodes() {
		node.Start()
	}
	cluster.WaitReady()
}

// streaming waits until the replicas acknowledge, about a second after their first copy.
func streaming(t testing.TB, set *server.SentinelSet) {
	t.Helper()
	master := set.Master()
	master.Must("SET", "streaming", "1")
	poll(t, "the replicas acknowledge", func() bool {
		info := parseInfo(master.Must("INFO", "replication"))
		for i := range len(set.Servers()) - 1 {
			if !strings.Contains(info[fmt.Sprintf("slave%d", i)], ",offset="+info["master_repl_offset"]+",") {
				return false
			}
		}
		return true
	})
}
