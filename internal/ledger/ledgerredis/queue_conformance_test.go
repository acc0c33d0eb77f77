package ledgerredis

import (
	"testing"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/internal/queue/queuetest"
	"seckill/test/server"
)

// Reopen kills the server. With appendfsync always, no answered write is lost.
func TestQueueConformanceStandalone(t *testing.T) {
	t.Parallel()
	s := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	conforms(t, Options{Place: redisclient.Place{Addrs: []string{s.Addr()}}}, func() {
		s.Kill()
		s.Start()
	})
}

// Reopen is a failover. When the replica has everything, nothing is lost.
func TestQueueConformanceSentinel(t *testing.T) {
	t.Parallel()
	s := server.Sentinel(t, server.SentinelOptions{})
	conforms(t, Options{Place: redisclient.Place{Addrs: s.Addrs(), Sentinel: s.MasterName()}}, func() {
		old := s.Master()
		s.WaitSynced()
		s.Failover()
		s.WaitDemoted(old) // until then it accepts writes and loses them
	})
}

// Reopen kills every node.
func TestQueueConformanceCluster(t *testing.T) {
	t.Parallel()
	s := server.Cluster(t, server.ClusterOptions{AppendFsync: "always"})
	conforms(t, Options{Place: redisclient.Place{Addrs: s.Addrs()}}, func() { restart(s) })
}

// conforms restarts the server and its clients, because consumers live as long as their
// process.
func conforms(t *testing.T, opt Options, restart func()) {
	opt.Prefix, opt.silence = "seckill:", testSilence
	l := opened(t, opt)
	var harness func(*testing.T) queuetest.Harness
	harness = func(*testing.T) queuetest.Harness {
		return queuetest.Harness{
			Queue: l.Queue(), SilentAfter: testSilence,
			Publish: queuetest.ThroughLedger(func() ledger.Ledger { return l }),
			Mortal: func(t *testing.T) (queue.Queue, func()) {
				another := opened(t, opt)
				return another.Queue(), another.call.client.Close
			},
			Reopen: func(of *testing.T) queuetest.Harness {
				l.call.client.Close()
				restart()
				l = opened(t, opt)
				return harness(of)
			},
		}
	}
	queuetest.Run(t, harness)
}
