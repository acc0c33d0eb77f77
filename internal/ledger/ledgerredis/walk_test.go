package ledgerredis

import (
	"cmp"
	"strconv"
	"testing"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/test/server"
)

// A walk over the marks meets every mark that exists during the whole walk, even if the hash
// moves to another process with another order.
func TestWalk_CompleteIfTheServerChanges(t *testing.T) {
	t.Parallel()
	const buyers = 600
	alone := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	cluster := server.Cluster(t, server.ClusterOptions{})
	for name, c := range map[string]struct {
		addrs  []string
		change func(r *rig)
	}{
		"by a restart": {[]string{alone.Addr()}, func(*rig) { alone.Kill(); alone.Start() }},
		"by a move": {cluster.Addrs(), func(r *rig) {
			slot := cluster.Slot(r.ledger.keys.mark(r.shard))
			from := cluster.Owner(slot)
			to := cluster.After(from)
			cluster.MigrateSlot(slot, from, to)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, opened(t, Options{Place: redisclient.Place{Addrs: c.addrs}}))
			r.shard.Epoch = 2
			if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: r.shard, Available: 1, Limit: 1}, marksOf(1, buyers)); err != nil {
				t.Fatal(err)
			}
			change := func() {
				c.change(r)
				r.eventually("the ledger answers", func() bool {
					_, err := r.ledger.Read(r.ctx(), r.shard)
					return err == nil
				})
			}
			named, counted := map[string]bool{}, int64(0)
			err := r.ledger.EachBuyer(r.ctx(), []Group{{ID: 1, Shards: 1}}, func(_ uint32, buyer string) {
				if len(named) == 0 {
					change()
				}
				named[buyer] = true
			}, func(_ uint32, err error) { t.Error(err) })
			if err != nil {
				t.Error(err)
			}
			for cursor := ""; cursor != "0"; {
				first := cursor == ""
				step, err := r.ledger.auditStep(r.ctx(), r.shard, cmp.Or(cursor, "0"), strconv.Itoa(scanCount/8))
				if err != nil {
					t.Fatal(err)
				}
				if cursor, counted = step.next, counted+step.found.orders; first {
					change()
				}
			}
			if len(named) != buyers || counted < buyers {
				t.Errorf("of %d buyers %d were named, and %d orders counted", buyers, len(named), counted)
			}
		})
	}
}
