package ledgerredis

import (
	"testing"

	"seckill/internal/ledger"
	"seckill/internal/queue/queuetest"
	"seckill/test/server"
)

// Reopen kills the server: with appendfsync always, nothing that was answered
// is lost.
func TestQueueConformanceStandalone(t *testing.T) {
	t.Parallel()
	s := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	conforms(t, Options{Addrs: []string{s.Addr()}}, func() {
		s.Kill()
		s.Start()
	})
}

// Reopen is a failover: once the replica has everything, nothing is lost.
func TestQueueConformanceSentinel(t *testing.T) {
	t.Parallel()
	s := server.Sentinel(t, server.SentinelOptions{})
	conforms(t, Options{Addrs: s.Addrs(), Sentinel: s.MasterName()}, func() {
		old := s.Master()
		s.WaitSynced()
		s.Failover()
		s.WaitDemoted(old) // until then it takes writes, and loses them
	})
}

// Reopen kills every node.
func TestQueueConformanceCluster(t *testing.T) {
	t.Parallel()
	s := server.Cluster(t, server.ClusterOptions{AppendFsync: "always"})
	conforms(t, Options{Addrs: s.Addrs()}, func() {
		for _, node := range s.Nodes() {
			node.Kill()
		}
		for _, node := range s.Nodes() {
			node.Start()
		}
		s.WaitReady()
	})
}

func conforms(t *testing.T, opt Options, restart func()) {
	opt.Prefix, opt.Silence = "seckill:", testSilence
	l := opened(t, opt)
	h := queuetest.Harness{
		Queue: l.Queue(), SilentAfter: testSilence,
		Publish: queuetest.ThroughLedger(func() ledger.Ledger { return l }),
	}
	h.Reopen = func(*testing.T) queuetest.Harness {
		restart()
		return h
	}
	queuetest.Run(t, func(*testing.T) queuetest.Harness { return h })
}
