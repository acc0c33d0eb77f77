package redisclient_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/background"
	"seckill/internal/client/redisclient"
	"seckill/internal/config"
	"seckill/test/certificate"
	"seckill/test/server"
)

// tlsConfig is the TLS configuration with these files; "" means none.
func tlsConfig(t *testing.T, ca string, own certificate.Pair) *tls.Config {
	t.Helper()
	config, err := config.Redis{TLS: true, TLSCA: ca, TLSCert: own.CertFile, TLSKey: own.KeyFile}.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// reach connects and makes a call, with the engine's timeouts.
func reach(t *testing.T, place redisclient.Place) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// The first handshake reads all certificate authorities of the system,
	// which takes a while.
	client, err := redisclient.Connect(ctx, place.Option("test", net.Dialer{Timeout: 20 * time.Second}))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Do(ctx, client.B().Get().Key("k").Build()).Error()
}

// Certificates have the host names of the nodes. A client of Sentinels or of a
// Cluster knows only these names.
func TestTLS_ReachesEveryKindOfRedis(t *testing.T) {
	authority := certificate.NewAuthority(t)
	own := authority.Issue("engine")
	with := tlsConfig(t, authority.File(), own)
	speaks := &server.TLS{Pair: authority.Issue("redis", "127.0.0.1")}
	alone := server.Redis(t, server.RedisOptions{TLS: speaks})
	set := server.Sentinel(t, server.SentinelOptions{TLS: speaks})
	cluster := server.Cluster(t, server.ClusterOptions{TLS: speaks})
	for kind, place := range map[string]redisclient.Place{
		"alone":    {Addrs: []string{alone.Addr()}, TLS: with},
		"Sentinel": {Addrs: set.Addrs(), Sentinel: set.MasterName(), TLS: with},
		"Cluster":  {Addrs: cluster.Addrs()[:1], TLS: with},
	} {
		if err := reach(t, place); err != nil && !rueidis.IsRedisNil(err) {
			t.Errorf("%s: %v", kind, err)
		}
		if with.ServerName != "" {
			t.Errorf("%s: one name stands for all servers: %s", kind, with.ServerName)
		}
	}
}

// Nodes that announce names need no addresses in their certificates.
func TestTLS_ChecksAnnouncedNamesOfClusterNodes(t *testing.T) {
	authority := certificate.NewAuthority(t)
	cluster := server.Cluster(t, server.ClusterOptions{
		TLS:  &server.TLS{Pair: authority.Issue("redis", "localhost"), Anyone: true},
		Args: []string{"--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname"},
	})
	place := redisclient.Place{TLS: tlsConfig(t, authority.File(), certificate.Pair{})}
	for _, node := range cluster.Nodes() { // each has a third of the slots, and k is on one of them
		place.Addrs = []string{strings.Replace(node.Addr(), "127.0.0.1", "localhost", 1)}
		if err := reach(t, place); !rueidis.IsRedisNil(err) {
			t.Errorf("from %s: %v", place.Addrs, err)
		}
	}
	place.Addrs = cluster.Addrs()[:1]
	if err := reach(t, place); !background.CertificateRefused(err) {
		t.Errorf("by an address that is not in the certificate: %v", err)
	}
}

func TestTLS_FailureReportsTheReason(t *testing.T) {
	authority, stranger := certificate.NewAuthority(t), certificate.NewAuthority(t)
	own := authority.Issue("engine")
	speaks := func(tls server.TLS) string { return server.Redis(t, server.RedisOptions{TLS: &tls}).Addr() }
	good := speaks(server.TLS{Pair: authority.Issue("redis", "127.0.0.1")})
	open := speaks(server.TLS{Pair: authority.Issue("redis", "127.0.0.1"), Anyone: true})
	named := speaks(server.TLS{Pair: authority.Issue("redis", "redis.example"), Anyone: true})
	old := authority.Issue("redis")
	authority.Replace(old, time.Now().Add(-time.Minute), "redis", "127.0.0.1")
	ended := speaks(server.TLS{Pair: old, Anyone: true})
	plain := server.Redis(t, server.RedisOptions{}).Addr()
	for name, c := range map[string]struct {
		address   string
		tls       *tls.Config
		want      string // "" is success
		untrusted bool
	}{
		"a good one":                   {good, tlsConfig(t, authority.File(), own), "", false},
		"no certificate asked for":     {open, tlsConfig(t, authority.File(), certificate.Pair{}), "", false},
		"an unknown authority":         {good, tlsConfig(t, "", own), "certificate signed by unknown authority", true},
		"another authority":            {good, tlsConfig(t, stranger.File(), own), "certificate signed by unknown authority", true},
		"another host":                 {named, tlsConfig(t, authority.File(), own), "127.0.0.1", true},
		"a certificate that has ended": {ended, tlsConfig(t, authority.File(), own), "expired", true},
		"no certificate of ours":       {good, tlsConfig(t, authority.File(), certificate.Pair{}), "certificate required", true},
		"ours of another authority":    {good, tlsConfig(t, authority.File(), stranger.Issue("engine")), "unknown certificate authority", true},
		"TLS with a plain Redis":       {plain, tlsConfig(t, authority.File(), own), "TLS with " + plain, false},
	} {
		err := reach(t, redisclient.Place{Addrs: []string{c.address}, TLS: c.tls})
		if rueidis.IsRedisNil(err) {
			err = nil
		}
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) || background.CertificateRefused(err) != c.untrusted {
			t.Errorf("%s: untrusted %v: %v, want %q", name, background.CertificateRefused(err), err, c.want)
		}
	}
	if err := reach(t, redisclient.Place{Addrs: []string{good}}); !redisclient.HungUp(err) {
		t.Errorf("a plain client of a server with TLS: %v", err)
	}
}

// A server that accepts and never completes the handshake is given up after the
// dialer's timeout.
func TestTLS_GivesUpAnEndlessHandshake(t *testing.T) {
	authority := certificate.NewAuthority(t)
	redis := server.Redis(t, server.RedisOptions{TLS: &server.TLS{Pair: authority.Issue("redis", "127.0.0.1"), Anyone: true}})
	redis.Pause()
	defer redis.Resume()
	option := redisclient.Place{Addrs: []string{redis.Addr()}, TLS: tlsConfig(t, authority.File(), certificate.Pair{})}.Option("test", net.Dialer{Timeout: 50 * time.Millisecond})
	option.ConnWriteTimeout = time.Minute
	_, err := redisclient.Connect(t.Context(), option)
	var dial *net.OpError
	if !errors.As(err, &dial) || dial.Op != "dial" || !strings.Contains(err.Error(), "TLS with "+redis.Addr()) {
		t.Errorf("connect: %v", err)
	}
}
