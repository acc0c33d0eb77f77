package ledgerredis

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/test/server"
)

// oneMasterDown returns a Cluster of which one master is down: a rig on it, and one on a product of
// another master. With cluster-require-full-coverage no, products of the other masters can be
// sold.
func oneMasterDown(t *testing.T) (gone, alive *rig, kill func()) {
	t.Helper()
	gone, alive, master := twoMasters(t)
	return gone, alive, master.Kill
}

// twoMasters is the same, before the master is stopped.
func twoMasters(t *testing.T) (gone, alive *rig, master *server.RedisServer) {
	t.Helper()
	cluster := server.Cluster(t, server.ClusterOptions{Args: []string{"--cluster-require-full-coverage", "no"}})
	r := newRig(t, opened(t, Options{Place: redisclient.Place{Addrs: cluster.Addrs()}}))
	owner := func(s ledger.Shard) *server.RedisServer { return cluster.Owner(cluster.Slot(r.ledger.keys.shard(s))) }
	master = owner(r.shard)
	other := *r
	for other.shard.Product++; owner(ledger.Shard{Product: other.shard.Product, Group: other.shard.Product}) == master; other.shard.Product++ {
	}
	other.shard.Group = other.shard.Product
	if _, err := r.ledger.Install(r.ctx(), ledger.Allotment{Shard: other.shard, Available: 10, Limit: 5}, nil); err != nil {
		t.Fatal(err)
	}
	if ok, err := r.ledger.Open(r.ctx(), other.shard); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return r, &other, master
}

func TestCluster_DeadMasterStopsOnlyItsOwnProducts(t *testing.T) {
	t.Parallel()
	r, other, kill := oneMasterDown(t)
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	kill()
	for i := range uint64(3) {
		other.expect(ledger.OutcomeApplied, i+1, i, reserve(other.claim("bob", "")))
	}
	other.wantSold(3)
	ctx, cancel := context.WithTimeout(r.ctx(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.ledger.Do(ctx, r.request(2, 1, reserve(r.claim("cat", "")))); err == nil {
		t.Error("a dead master answered")
	}
}

// A lane must learn of a loss even if another master is down.
func TestCluster_DeadMasterDoesNotAffectHeartbeatsOfOthers(t *testing.T) {
	t.Parallel()
	r, other, kill := oneMasterDown(t)
	other.expect(ledger.OutcomeApplied, 1, 0, reserve(other.claim("bob", "")))
	kill()
	beat := func(of *rig, seen uint64) ledger.Beat {
		return ledger.Beat{Shard: of.shard, Process: of.process, Seen: seen}
	}
	beats := []ledger.Beat{beat(r, 0), beat(other, 1), beat(other, 9)}
	want := []ledger.Outcome{0, ledger.OutcomeApplied, ledger.OutcomeLost}
	got, err := r.ledger.Heartbeat(r.ctx(), beats)
	if err == nil || !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v and an error: %v", got, want, err)
	}
	// Figures of all buckets are incomplete, and return an error well before the caller's
	// deadline, with the known part.
	outbox := r.ledger.outbox()
	ctx := r.ctx()
	if _, err := outbox.Stats(ctx, 0); err == nil || ctx.Err() != nil {
		t.Errorf("stats: %v, %v", err, ctx.Err())
	}
	if _, err := outbox.Waiting(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("waiting: %v, %v", err, ctx.Err())
	}
	c, err := outbox.Consumer(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := c.Receive(ctx, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ack(ctx, batch, batch[0].ID); err != nil {
		t.Fatal(err)
	}
	if carried, err := outbox.HighestWitness(ctx); err == nil || ctx.Err() != nil || !slices.Equal(carried, ids(batch)) {
		t.Errorf("witnesses %v, want %v and an error: %v, %v", carried, ids(batch), err, ctx.Err())
	}
}

// While the first bucket's master is down, products of the others can be sold, so the instance
// is ready.
func TestPing_SucceedsIfOneMasterOfTheClusterWorks(t *testing.T) {
	t.Parallel()
	cluster := server.Cluster(t, server.ClusterOptions{Args: []string{"--cluster-require-full-coverage", "no"}})
	l := opened(t, Options{Place: redisclient.Place{Addrs: cluster.Addrs()}})
	owner := func(key string) *server.RedisServer { return cluster.Owner(cluster.Slot(key)) }
	ping := func(what string, ready bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond) // the time that /readyz has
		defer cancel()
		if err := l.Ping(ctx); (err == nil) != ready {
			t.Errorf("%s: %v", what, err)
		}
	}
	first := owner(l.keys.queue(0))
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	for owner(l.keys.shard(shard)) == first {
		shard.Product, shard.Group = shard.Product+1, shard.Group+1
	}
	other := owner(l.keys.shard(shard))
	ping("all masters work", true)
	if _, err := l.Install(t.Context(), ledger.Allotment{Shard: shard, Available: 10, Limit: 5}, nil); err != nil {
		t.Fatal(err)
	}
	first.Pause()
	ping("the first bucket's master is away", true)
	first.Resume()
	ping("all masters work again", true)
	for _, node := range cluster.Nodes() {
		if node != first {
			node.Pause()
		}
	}
	ping("the first bucket's master is alone", true)
	first.Kill()
	other.Resume()
	ping("the first bucket's master is dead, and another one works again", true)
}

// A product's unacknowledged entries are on its own master, so another master that is down does
// not matter.
func TestStats_NeedOnlyTheProductsMaster(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*server.RedisServer){
		"frozen": func(s *server.RedisServer) { s.Pause() },
		"dead":   func(s *server.RedisServer) { s.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			r, other, master := twoMasters(t)
			other.expect(ledger.OutcomeApplied, 1, 0, reserve(other.claim("bob", "")))
			r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
			stop(master)
			stats := func(of *rig) (queue.Stats, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // the timeout of an operator's page
				defer cancel()
				return of.ledger.outbox().Stats(ctx, of.shard.Product)
			}
			if got, err := stats(other); err == nil {
				t.Errorf("without knowing its home: %+v", got)
			}
			r.ledger.opt.Home = func(product uint32) (group uint32, shards int, known bool) { return product, 1, product != 0 }
			if got, err := stats(other); err != nil || got.Reservations != 1 {
				t.Errorf("on a living master: %+v, %v", got, err)
			}
			if got, err := stats(r); err == nil {
				t.Errorf("on the unavailable master: %+v", got)
			}
		})
	}
}

// After a failed slot migration each node may say that the other has the slot. A call must not
// follow these redirections until its deadline, because calls to all buckets wait for it.
func TestCluster_DisputedSlotDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	cluster := server.Cluster(t, server.ClusterOptions{})
	r := newRig(t, opened(t, Options{Place: redisclient.Place{Addrs: cluster.Addrs()}}))
	r.expect(ledger.OutcomeApplied, 1, 0, reserve(r.claim("ann", "")))
	slot := cluster.Slot(r.ledger.keys.shard(r.shard))
	from := cluster.Owner(slot)
	to := cluster.After(from)
	setSlot := func(node *server.RedisServer, what ...string) {
		node.Must(append([]string{"CLUSTER", "SETSLOT", strconv.Itoa(slot)}, what...)...)
	}
	cluster.BeginMigration(slot, from, to)
	cluster.MoveKeys(slot, from, to)
	setSlot(to, "STABLE")
	setSlot(from, "NODE", to.Must("CLUSTER", "MYID"))

	const patience = 500 * time.Millisecond
	short, cancel := context.WithTimeout(r.ctx(), patience)
	defer cancel()
	if _, err := r.ledger.Read(short, r.shard); err == nil {
		t.Error("a slot without a node was read")
	}
	// A few redirections per try. In the end there is one try in 50 ms.
	if circles := from.Said("MOVED") + to.Said("MOVED"); circles == 0 || circles > 500 {
		t.Errorf("in %v, the nodes sent calls elsewhere %d times", patience, circles)
	}
	ctx := r.ctx()
	if _, err := r.ledger.outbox().Stats(ctx, 0); err == nil || ctx.Err() != nil {
		t.Errorf("stats: %v, %v", err, ctx.Err())
	}

	setSlot(to, "NODE", to.Must("CLUSTER", "MYID"))
	r.expect(ledger.OutcomeApplied, 2, 1, reserve(r.claim("bob", "")))
	r.wantSold(2)
}

// While a master with slots is down, nothing is known about every master. A fence fails,
// because notes of that master may be in flight, and the settings are unknown. A start succeeds
// without it, if the others are in order.
func TestEveryMaster_FailsWithoutAMasterThatHasSlots(t *testing.T) {
	t.Parallel()
	cluster := server.Cluster(t, server.ClusterOptions{Args: []string{"--cluster-require-full-coverage", "no"}})
	opt := Options{Place: redisclient.Place{Addrs: cluster.Addrs()}, Notes: "x:noted"}
	l := opened(t, opt)
	each := func(what string, want error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if masters, _, err := l.Fence(ctx, 1); !errors.Is(err, want) || err == nil && masters != len(cluster.Nodes()) {
			t.Errorf("%s: a fence at %d masters: %v, want %v", what, masters, err, want)
		}
		if _, err := l.Durability(ctx); !errors.Is(err, want) {
			t.Errorf("%s: durability: %v, want %v", what, err, want)
		}
		if err := l.CheckEviction(ctx); !errors.Is(err, want) {
			t.Errorf("%s: eviction: %v, want %v", what, err, want)
		}
	}
	away, evicting := cluster.Nodes()[1], cluster.Nodes()[2]
	each("all masters work", nil)
	away.Pause()
	each("one is frozen", ErrUnreached)
	opened(t, opt)
	evicting.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if err := l.CheckEviction(t.Context()); !errors.Is(err, ErrEvicts) {
		t.Errorf("one is frozen, another evicts: %v", err)
	}
	evicting.Must("CONFIG", "SET", "maxmemory-policy", "noeviction")
	away.Resume()
	each("it is back", nil)
	away.Kill()
	each("one is dead", ErrUnreached)
}

// A node without slots, such as a dead replica, does not matter.
func TestAddOwners_CountsMastersThatHaveSlots(t *testing.T) {
	const view = `txt:a 10.0.0.1:6379@16379,host myself,master - 0 0 1 connected 0-100 5000
b 10.0.0.2:6379@16379 master,fail? - 0 0 2 disconnected 101-4999 [5001->-a]
c 10.0.0.3:6379@16379 slave,fail b 0 0 2 disconnected
d 10.0.0.4:6379@16379 master - 0 0 0 connected [5001-<-b]
e 10.0.0.5:6379@16379 master,fail - 0 0 0 disconnected
`
	owners := make(map[string]bool)
	if self, master := addOwners(owners, view); self != "a" || !master {
		t.Errorf("this node is %q, master %v", self, master)
	}
	if want := map[string]bool{"a": true, "b": true}; !maps.Equal(owners, want) {
		t.Errorf("owners are %v, want %v", owners, want)
	}
	if self, master := addOwners(owners, "c 10.0.0.3:6379@16379 myself,slave b 0 0 2 connected\n"); self != "c" || master {
		t.Errorf("this node is %q, master %v", self, master)
	}
}
