package ledgerredis

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/internal/client/redisclient"
	"seckill/internal/config"
	"seckill/internal/ledger"
	"seckill/test/certificate"
	"seckill/test/server"
)

// overTLS returns the TLS settings of servers, and a function for a Place that uses them.
func overTLS(t *testing.T) (speaks *server.TLS, at func(addrs ...string) redisclient.Place) {
	t.Helper()
	authority := certificate.NewAuthority(t)
	own := authority.Issue("engine")
	spoken, err := config.Redis{TLS: true, TLSCA: authority.File(), TLSCert: own.CertFile, TLSKey: own.KeyFile}.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	return &server.TLS{Pair: authority.Issue("redis", "127.0.0.1")}, func(addrs ...string) redisclient.Place {
		return redisclient.Place{Addrs: addrs, TLS: spoken}
	}
}

// The client dials the node addresses that the first node returns. What the ledger does over a
// connection is the same with TLS (TestConformanceCluster).
func TestClusterOverTLS_EveryMasterSells(t *testing.T) {
	t.Parallel()
	speaks, at := overTLS(t)
	cluster := server.Cluster(t, server.ClusterOptions{TLS: speaks})
	l := opened(t, Options{Place: at(cluster.Addrs()[0]), reply: callTimeout})
	sold := make(map[*server.RedisServer]bool)
	for product := uint32(1); len(sold) < len(cluster.Nodes()); product++ {
		r := newRigOf(t, l, product)
		r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
		r.wantSold(1)
		sold[cluster.Owner(cluster.Slot(l.keys.shard(r.shard)))] = true
	}
}

// Connections to the Sentinels, the master and its successor are separate.
func TestTLS_FollowsAFailover(t *testing.T) {
	t.Parallel()
	speaks, at := overTLS(t)
	set := server.Sentinel(t, server.SentinelOptions{TLS: speaks})
	streaming(t, set)
	place := at(set.Addrs()...)
	place.Sentinel = set.MasterName()
	r := newRig(t, opened(t, Options{Place: place, WaitReplicas: 1, reply: callTimeout}))
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	old := set.Master()
	set.Failover()
	set.WaitDemoted(old)
	streaming(t, set)
	r.eventually("the ledger is reached again", func() bool {
		_, err := r.ledger.Read(r.ctx(), r.shard)
		return err == nil
	})
	r.expect(ledger.OutcomeApplied, 2, 1, reserve(r.claim("bob", "")))
	r.wantSold(2)
}

// A connection may be accepted and dropped before the handshake, for example by a proxy whose
// server is down. It carried no call, so the call is known as not executed, as without TLS.
func TestCall_NotExecutedWithoutTLSHandshake(t *testing.T) {
	t.Parallel()
	speaks, at := overTLS(t)
	s := server.Redis(t, server.RedisOptions{TLS: speaks, AppendFsync: "always"})
	proxy := server.Proxy(t, s.Addr())
	r := newRig(t, opened(t, Options{Place: at(proxy.Addr())}))
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	bob := r.claim("bob", "")
	s.Kill()
	r.eventually("calls are known not to be executed", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.ledger.Do(ctx, r.request(2, 1, reserve(bob)))
		return errors.Is(err, ledger.ErrNotExecuted)
	})
	s.Start()
	r.eventually("the call is applied", func() bool {
		reply, err := r.ledger.Do(r.ctx(), r.request(2, 1, reserve(bob)))
		return err == nil && reply.Outcome == ledger.OutcomeApplied
	})
	r.wantSold(2)
}
