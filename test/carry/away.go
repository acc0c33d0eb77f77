package carry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

const (
	// awayFor is how long a master of the Cluster is away.
	awayFor = 5 * time.Second
	// awayMost bounds the wait of orders on another master meanwhile, on an idle
	// machine.
	awayMost = 2 * time.Second
	// awayTries bounds how often the test tries.
	awayTries = 5
)

// MasterAway freezes a master of a Cluster while orders on it travel. Orders of a
// product on another master are confirmed meanwhile.
func MasterAway(t *testing.T, broker Broker) {
	cluster := server.Cluster(t, server.ClusterOptions{Args: []string{"--cluster-require-full-coverage", "no"}})
	s := open(t, broker, engine.OnRedis(cluster.Addrs()...), map[string]string{"ledger.takeover_after": "1h"})
	const living, away = 1, 3 // the product away is sharded, so other masters have shards of it too
	var node *server.RedisServer
	for _, n := range cluster.Nodes() {
		if n.Must("KEYS", fmt.Sprintf("*:shard:%d:*", living)) == "" && n.Must("KEYS", fmt.Sprintf("*:shard:%d:*", away)) != "" {
			node = n
		}
	}
	if node == nil {
		t.Fatal("all products are on one master")
	}
	s.Confirmed(s.Buy(living, 1))
	s.Confirmed(s.Buy(away, 1))
	s.engines[1].MustStop() // otherwise the other engine may hold nothing of the frozen master and continue
	holds := func(what string, is func(claims float64) bool) {
		market.Eventually(t, what, func(ctx context.Context) bool {
			claims, err := s.engines[0].Metric(ctx, "seckill_carrier_held_claims")
			return err == nil && is(claims)
		})
	}
	// A worker must receive a copy while the copy's master is frozen. Which
	// entries the relay has read by then is chance, so the test repeats until one
	// entry was on that master.
	asked := func() bool { return strings.Contains(s.engines[0].Log(), "outbox did not answer") }
	for range awayTries {
		holds("the relay holds nothing", func(claims float64) bool { return claims == 0 })
		broker.Pause()
		for range 16 {
			s.Buy(away, 1)
		}
		holds("the relay has read entries", func(claims float64) bool { return claims > 0 })
		node.Pause()
		broker.Resume()
		for until := time.Now().Add(awayMost); !asked() && time.Now().Before(until); {
			market.Pause(t.Context(), 10*time.Millisecond)
		}
		if asked() {
			break
		}
		node.Resume()
	}
	frozen, longest := time.Now(), time.Duration(0)
	for time.Since(frozen) < awayFor {
		bought := time.Now()
		s.Confirmed(s.Buy(living, 1))
		longest = max(longest, time.Since(bought))
	}
	node.Resume()
	s.engines[1].Start()
	t.Logf("the longest that an order of another master waited is %s", longest.Round(time.Millisecond))
	if most := time.Duration(float64(awayMost) * market.Crowding(t)); longest > most {
		t.Errorf("an order waited for %s, want %s at most", longest, most)
	}
	if !asked() {
		t.Error("no worker asked for an entry on the frozen master")
	}
	if bypassed := s.total("seckill_carrier_bypassed"); bypassed != 0 {
		t.Errorf("%v engines bypass the broker", bypassed)
	}
	s.check()
}
