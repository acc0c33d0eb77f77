package outage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/test/market"
	"seckill/test/server"
)

// A Cluster sells like one Redis. Half the shards of a product move to other
// nodes while the crowd buys from them. Then a node dies and comes back with
// its append-only file: what is on the others is sold and written meanwhile.
// Neither loses anything, so that no ledger is rebuilt.
func TestAClusterMovesItsSlotsAndMissesANode(t *testing.T) {
	t.Parallel()
	s := open(t, plan{
		cluster: true, products: append(products(), spares()...),
		settings: map[string]string{"ledger.takeover_after": "1h"}, // which would be a new epoch too
	})
	var before map[uint32]uint64
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		before = s.epochs(ctx)
		s.moveHalf(sharded)
		s.moveHalf(sparedShards)
		s.wantSoon(s.sellsAll(ctx, time.Now()))

		dead := s.nodeWithout(spared)
		struck := time.Now()
		dead.Kill()
		s.Confirmed(s.Buy(spared, 1))
		if dead.PID() != 0 {
			t.Error("the node was not dead for long enough")
		}
		market.Pause(ctx, outage-time.Since(struck))
		back := time.Now()
		dead.Start()
		s.wantAnswers(struck, back)
		s.cluster.WaitReady()
		s.wantSoon(s.sellsAll(ctx, time.Now()))
		market.Pause(ctx, afterwards)
	})
	s.wantEpochsKept(before)
	s.keepsItsPromises()
}

// wantSoon wants everything to be sold again soon after a fault.
func (s *site) wantSoon(took time.Duration) {
	s.t.Helper()
	s.t.Logf("all sold again after %v", took)
	if took > hard*sellWithin {
		s.t.Errorf("all sold again only after %v", took)
	}
}

// homes are the nodes of a Cluster on which a product's shards lie, by the hash
// tag of their bucket.
func (s *site) homes(product uint32) map[string]*server.RedisServer {
	s.t.Helper()
	homes := make(map[string]*server.RedisServer)
	for _, node := range s.cluster.Nodes() {
		for key := range strings.FieldsSeq(node.Must("KEYS", fmt.Sprintf("*:shard:%d:*", product))) {
			homes[key[strings.IndexByte(key, '{'):strings.IndexByte(key, '}')+1]] = node
		}
	}
	return homes
}

// moveHalf moves every other shard of a product to the next node. Each is on the
// move until somebody has looked for it at its old home: instances look for
// moves by themselves, too, and might otherwise meet none.
func (s *site) moveHalf(product uint32) {
	s.t.Helper()
	homes := s.homes(product)
	for i, tag := range slices.Sorted(maps.Keys(homes)) {
		if i%2 == 0 {
			from := homes[tag]
			to := s.cluster.After(from)
			slot, asked := s.cluster.Slot(tag), from.Said("ASK")
			s.cluster.BeginMigration(slot, from, to)
			s.cluster.MoveKeys(slot, from, to)
			market.Eventually(s.t, "somebody is sent after a shard", func(context.Context) bool { return from.Said("ASK") > asked })
			s.cluster.FinishMigration(slot, from, to)
		}
	}
}

// nodeWithout is a node that has shards, and none of this product.
func (s *site) nodeWithout(product uint32) *server.RedisServer {
	s.t.Helper()
	spare := slices.Collect(maps.Values(s.homes(product)))
	for _, node := range s.homes(sharded) {
		if !slices.Contains(spare, node) {
			return node
		}
	}
	s.t.Fatalf("product %d is on every node", product)
	return nil
}

// wantEpochsKept wants no ledger to have been rebuilt.
func (s *site) wantEpochsKept(before map[uint32]uint64) {
	s.t.Helper()
	if now := s.epochs(s.t.Context()); !maps.Equal(before, now) {
		s.t.Errorf("ledgers that lost nothing were rebuilt: epochs were %v, are %v", before, now)
	}
}
