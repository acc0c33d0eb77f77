package server

import (
	"strings"
	"testing"

	"seckill/test/certificate"
)

func onTLS(t *testing.T) *TLS {
	return &TLS{Pair: certificate.NewAuthority(t).Issue("server", "127.0.0.1")}
}

func TestTLS_ServersRefusePlainConnections(t *testing.T) {
	spoken := onTLS(t)
	redis := Redis(t, RedisOptions{TLS: spoken, AppendFsync: "always"})
	redis.Must("SET", "k", "v")
	redis.Kill()
	redis.Start()
	if got := redis.Must("GET", "k"); got != "v" {
		t.Errorf("after another life: %q", got)
	}
	if got, err := redisCommand(nil, redis.Addr(), "PING"); err == nil {
		t.Errorf("Redis answers a plain client %q", got)
	}
	maria := MariaDB(t, MariaOptions{TLS: spoken})
	maria.NewDatabase(t)
	if err := mariaExec(maria.DSN(""), "SELECT 1"); err == nil || !strings.Contains(err.Error(), theFlavour().tlsOnly) {
		t.Errorf("MariaDB answers a plain client: %v", err)
	}
}

func TestTLS_SentinelFailsOver(t *testing.T) {
	set := Sentinel(t, SentinelOptions{TLS: onTLS(t)})
	old := set.Master()
	old.Must("SET", "k", "v")
	set.WaitSynced()
	if got := set.Failover().Must("GET", "k"); got != "v" {
		t.Errorf("the new master has %q", got)
	}
}

func TestTLS_ClusterMovesSlots(t *testing.T) {
	c := Cluster(t, ClusterOptions{TLS: onTLS(t)})
	slot := c.Slot("k")
	from := c.Owner(slot)
	to := c.After(from)
	from.Must("SET", "k", "v")
	c.MigrateSlot(slot, from, to)
	if got := to.Must("GET", "k"); got != "v" {
		t.Errorf("the new owner has %q", got)
	}
}
