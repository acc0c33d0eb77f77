package ledgerredis

import (
	"context"
	"testing"
	"time"

	"seckill/internal/ledger"
	"seckill/test/server"
)

// With cluster-require-full-coverage no, the products of the other masters are
// sold on.
func TestAMasterThatIsAwayStopsItsOwnProductsOnly(t *testing.T) {
	t.Parallel()
	cluster := server.Cluster(t, server.ClusterOptions{Args: []string{"--cluster-require-full-coverage", "no"}})
	r := newRig(t, opened(t, Options{Addrs: cluster.Addrs()}))
	owner := func(s ledger.Shard) *server.RedisServer { return cluster.Owner(cluster.Slot(r.ledger.keys.shard(s))) }
	gone := owner(r.shard)
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))

	other := *r
	for other.shard.Product++; owner(ledger.Shard{Product: other.shard.Product, Group: other.shard.Product}) == gone; other.shard.Product++ {
	}
	other.shard.Group = other.shard.Product
	if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: other.shard, Available: 10, Limit: 5}, nil); err != nil {
		t.Fatal(err)
	}
	if ok, err := r.ledger.Open(r.ctx(), other.shard); err != nil || !ok {
		t.Fatal(ok, err)
	}
	gone.Kill()
	for i := range uint64(3) {
		other.expect(ledger.OutcomeApplied, i+1, i, reserve(other.claim("bob", "")))
	}
	other.sold(3)
	ctx, cancel := context.WithTimeout(r.ctx(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.ledger.Do(ctx, r.request(2, 1, reserve(r.claim("cat", "")))); err == nil {
		t.Error("a dead master answered")
	}
}
