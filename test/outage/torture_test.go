package outage

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
)

const (
	// tortureEnv is how long a campaign lasts; unset, there is none.
	tortureEnv = "SECKILL_TORTURE"
	// topologyEnv is "sentinel" for a Redis that fails over; unset, it is alone.
	topologyEnv = "SECKILL_TORTURE_TOPOLOGY"
	// reportEnv is the file to which its report goes.
	reportEnv = "SECKILL_TORTURE_REPORT"

	shortest = 300 * time.Millisecond // fault
	longest  = 4 * time.Second
	restMost = 5 * time.Second // between two
	// drainMost bounds the wait for the queue before a ledger loses something
	// while the memory of an instance is gone: both together may lose an order.
	drainMost = 20 * time.Second
)

// campaign is a site and what is done to it.
type campaign struct {
	*site
	rng    *rand.Rand
	struck map[string]int
	// forgot is set when an instance died with what it remembered of its answers.
	forgot bool
}

// fault is something that happens, and is over when it returns.
type fault func(c *campaign, ctx context.Context)

// faultsOfAlone are what can happen to a Redis that is alone, by name.
var faultsOfAlone = map[string]fault{
	"Redis killed": func(c *campaign, ctx context.Context) {
		c.redis.Kill()
		c.pause(ctx)
		c.redis.Start()
	},
	"Redis frozen": func(c *campaign, ctx context.Context) {
		c.redis.Pause()
		c.pause(ctx)
		c.redis.Resume()
	},
	"Redis flushed": func(c *campaign, ctx context.Context) {
		c.drain(ctx)
		c.redis.FlushAll()
		c.pause(ctx)
	},
	"Redis restored from a backup": func(c *campaign, ctx context.Context) {
		c.drain(ctx)
		backup := c.redis.Snapshot()
		c.pause(ctx)
		c.redis.Kill()
		c.redis.Restore(backup)
		c.redis.Start()
	},
}

// faultsOfSentinel are what can happen to a master with a replica.
var faultsOfSentinel = map[string]fault{
	"master lost with writes": func(c *campaign, ctx context.Context) {
		c.drain(ctx)
		master := c.sentinel.Master()
		c.sentinel.WaitSynced()
		c.sentinel.Detach(master)
		c.pause(ctx)
		master.Kill()
		c.sentinel.WaitFailover(master)
		master.Start()
		c.sentinel.Attach(master)
		c.sentinel.WaitDemoted(master)
		c.sentinel.WaitSynced()
	},
	"master replaced": func(c *campaign, ctx context.Context) {
		c.drain(ctx)
		old := c.sentinel.Master()
		c.sentinel.WaitSynced()
		c.sentinel.Failover()
		c.sentinel.WaitDemoted(old)
	},
	"master frozen": func(c *campaign, ctx context.Context) {
		c.drain(ctx)
		old := c.sentinel.Master()
		old.Pause()
		c.sentinel.WaitFailover(old)
		old.Resume()
		c.sentinel.WaitDemoted(old)
		c.sentinel.WaitSynced()
	},
	"everything flushed": func(c *campaign, ctx context.Context) {
		c.drain(ctx)
		c.sentinel.Master().FlushAll()
		c.pause(ctx)
	},
}

// faultsOfAll are what can happen to any site.
var faultsOfAll = map[string]fault{
	"store killed": func(c *campaign, ctx context.Context) {
		c.maria.Kill()
		c.pause(ctx)
		c.maria.Start()
	},
	"store frozen": func(c *campaign, ctx context.Context) {
		c.maria.Pause()
		c.pause(ctx)
		c.maria.Resume()
	},
	"instance killed": func(c *campaign, ctx context.Context) {
		i := c.rng.IntN(len(c.engines))
		c.engines[i].Kill()
		c.forgot = true
		c.pause(ctx)
		c.engines[i].Start()
	},
	"network to Redis bad": func(c *campaign, ctx context.Context) {
		way := c.toRedis[c.rng.IntN(len(c.toRedis))]
		ills[c.rng.IntN(len(ills))].strike(way)
		c.pause(ctx)
		way.Heal()
	},
	"network to the store bad": func(c *campaign, ctx context.Context) {
		way := c.toStore[c.rng.IntN(len(c.toStore))]
		ills[c.rng.IntN(len(ills))].strike(way)
		c.pause(ctx)
		way.Heal()
	},
}

// pause lets a fault last for a while.
func (c *campaign) pause(ctx context.Context) {
	market.Pause(ctx, shortest+time.Duration(c.rng.Int64N(int64(longest-shortest))))
}

// drain waits until every order of before is in the store, if an instance has
// died since that was last so. An entry that is lost with its ledger, when the
// instance that answered it is dead too, nobody can save; everything else must
// be.
func (c *campaign) drain(ctx context.Context) {
	if !c.forgot {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainMost)
	defer cancel()
	mark := time.Now()
	for ; c.oldest(ctx) > time.Since(mark); market.Pause(ctx, 50*time.Millisecond) {
		if ctx.Err() != nil {
			c.t.Log("the queue did not drain")
			return
		}
	}
	c.forgot = false
}

// oldest is the age of the oldest order that waits for the store.
func (c *campaign) oldest(ctx context.Context) (age time.Duration) {
	for id := range c.Products {
		figures, err := c.Operator().Stats(ctx, id)
		if err != nil {
			return time.Hour
		}
		age = max(age, time.Duration(figures.Queue.OldestMS)*time.Millisecond)
	}
	return age
}

// TestTorture plays traffic and random faults from a seed for as long as the
// environment says, and checks everything afterwards.
func TestTorture(t *testing.T) {
	text := os.Getenv(tortureEnv)
	if text == "" {
		t.Skipf("%s is not set: see make torture", tortureEnv)
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", tortureEnv, err)
	}
	sentinel := os.Getenv(topologyEnv) == "sentinel"
	faults := maps.Clone(faultsOfAll)
	if sentinel {
		maps.Copy(faults, faultsOfSentinel)
	} else {
		maps.Copy(faults, faultsOfAlone)
	}
	c := &campaign{struck: make(map[string]int), site: open(t, plan{
		sentinel: sentinel, networks: true, ownStore: true, products: ample(duration),
		roles:  [][]string{nil, nil, {engine.RoleShop, engine.RoleWorker}},
		faults: []string{"", "clock:+5m", "clock:-5m"}, // until they are killed
	})}
	c.rng = rand.New(rand.NewPCG(c.seed, 1<<34))
	c.Lose(c.ledgered()...)
	before, began := c.epochs(t.Context()), time.Now()
	c.during(func(ctx context.Context) {
		names := slices.Sorted(maps.Keys(faults))
		for time.Since(began) < duration && !t.Failed() {
			market.Pause(ctx, time.Duration(c.rng.Int64N(int64(restMost))))
			name := names[c.rng.IntN(len(names))]
			t.Logf("%s of %s: %s", time.Since(began).Round(time.Second), duration, name)
			faults[name](c, ctx)
			c.struck[name]++
		}
	})
	lasted := time.Since(began)
	t.Log("the faults are over: every open question is asked again")
	c.Settle()
	t.Log("what is left is sold, and all is paid; that takes about a third of the time so far")
	c.SellOut()
	t.Log("the history is checked")
	r := c.look(before, lasted)
	defer func() { r.write(t, t.Failed()) }()
	for _, finding := range r.findings {
		t.Error(finding)
	}
	c.Check()
}

// amplePerSecond is more than the crowd buys of one product.
const amplePerSecond = 8

// ample are the products, two of them with so many units that nobody can
// honestly be told that they are sold out.
func ample(duration time.Duration) []engine.Product {
	all := products()
	for i := range all {
		switch all[i].ID {
		case sharded, asyncThree:
			all[i].Stock = 500 + amplePerSecond*int64(duration.Seconds())
		}
	}
	return all
}

// look checks the history of a site at rest.
func (c *campaign) look(before map[uint32]uint64, lasted time.Duration) *report {
	c.t.Helper()
	db := c.tables(c.t)
	defer db.Close()
	acts, rows := c.trace.all(), readRows(c.t, db)
	r := &report{
		seed: c.seed, lasted: lasted, faults: c.struck, answers: c.trace.counts(), acts: len(acts), orders: len(rows),
	}
	forgets := func(product uint32) bool { return product != direct }
	var found []string
	r.buyers, found = checkHistory(c.Products, forgets, acts, rows)
	r.findings = append(r.findings, found...)
	r.refusals, found = checkNoUndersell(c.offeredAtLeast(), acts, rows)
	r.findings = append(r.findings, found...)
	for id, epoch := range c.epochs(c.t.Context()) {
		r.recoveries += int(epoch - before[id])
	}
	r.latencies(acts)
	return r
}

// offeredAtLeast is what was on offer at every moment, whatever operators did.
func (s *site) offeredAtLeast() map[uint32]int64 {
	offered := make(map[uint32]int64)
	for id, p := range s.Products {
		offered[id] = p.Stock - s.TakenAway(id)
	}
	return offered
}
