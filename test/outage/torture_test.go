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
	// queueEnv is the queue.kind; unset, it is the outbox.
	queueEnv = "SECKILL_TORTURE_QUEUE"
	// reportEnv is the file to which its report goes.
	reportEnv = "SECKILL_TORTURE_REPORT"

	shortest = 300 * time.Millisecond // fault
	longest  = 4 * time.Second
	restMost = 5 * time.Second // between two
	// keepMost bounds the wait for the store, or for counts that balance.
	keepMost = 30 * time.Second
	// answerMost is what a request may take to be answered, and heard. An instance
	// that is idle notices a loss in less.
	answerMost = 2 * time.Second
	// mendOneIn is after how many losses the campaign waits, on average, until one
	// is mended, so that there is a time without a doubt. The others meet whatever
	// comes next half mended.
	mendOneIn = 2
)

// campaign is a site and what is done to it.
type campaign struct {
	*site
	rng    *rand.Rand
	struck map[string]int
	// lost is what lost promises since every one of them was last in the store: a
	// ledger that was set back, or an instance that died with its memory. The
	// other of the two may lose them for good.
	lost memory
	// kept is the instant up to which every promise is known to be in the store.
	kept time.Time
	// spared counts faults that did not happen because the store did not follow.
	spared int
	// losses of the ledger, and after how many of them the site was seen whole
	// before the next one.
	losses, mended int
}

// memory is one of the two places where a promise is until the store has it.
type memory string

const (
	ofNothing  memory = ""
	ofLedger   memory = "ledger"
	ofInstance memory = "instance"
)

// fault is something that happens, and is over when it returns. What forgets
// nothing is no excuse for a promise that fails: a Redis that syncs every
// command before it answers has all of them when it is killed or frozen.
type fault struct {
	forgets memory
	strike  func(c *campaign, ctx context.Context)
}

// faultsOfAlone are what can happen to a Redis that is alone, by name.
var faultsOfAlone = map[string]fault{
	"Redis killed": {ofNothing, func(c *campaign, ctx context.Context) {
		c.redis.Kill()
		c.pause(ctx)
		c.redis.Start()
	}},
	"Redis frozen": {ofNothing, func(c *campaign, ctx context.Context) {
		c.redis.Pause()
		c.pause(ctx)
		c.redis.Resume()
	}},
	"Redis flushed": {ofLedger, func(c *campaign, ctx context.Context) {
		c.redis.FlushAll()
		c.pause(ctx)
	}},
	"Redis restored from a backup": {ofLedger, func(c *campaign, ctx context.Context) {
		backup := c.redis.Snapshot()
		c.pause(ctx)
		c.redis.Kill()
		c.redis.Restore(backup)
		c.redis.Start()
	}},
}

// faultsOfSentinel are what can happen to a master with a replica.
var faultsOfSentinel = map[string]fault{
	"master lost with writes": {ofLedger, func(c *campaign, ctx context.Context) {
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
	}},
	"master replaced": {ofLedger, func(c *campaign, ctx context.Context) {
		old := c.sentinel.Master()
		c.sentinel.WaitSynced()
		c.sentinel.Failover()
		c.sentinel.WaitDemoted(old)
	}},
	"master frozen": {ofLedger, func(c *campaign, ctx context.Context) {
		old := c.sentinel.Master()
		old.Pause()
		c.sentinel.WaitFailover(old)
		old.Resume()
		c.sentinel.WaitDemoted(old)
		c.sentinel.WaitSynced()
	}},
	"everything flushed": {ofLedger, func(c *campaign, ctx context.Context) {
		c.sentinel.Master().FlushAll()
		c.pause(ctx)
	}},
}

// faultsOfAll are what can happen to any site.
var faultsOfAll = map[string]fault{
	"store killed": {ofNothing, func(c *campaign, ctx context.Context) {
		c.maria.Kill()
		c.pause(ctx)
		c.maria.Start()
	}},
	"store frozen": {ofNothing, func(c *campaign, ctx context.Context) {
		c.maria.Pause()
		c.pause(ctx)
		c.maria.Resume()
	}},
	"instance killed": {ofInstance, func(c *campaign, ctx context.Context) {
		i := c.rng.IntN(len(c.engines))
		c.engines[i].Kill()
		c.pause(ctx)
		c.engines[i].Start()
	}},
	"network to Redis bad": {ofNothing, func(c *campaign, ctx context.Context) {
		way := c.toRedis[c.rng.IntN(len(c.toRedis))]
		ills[c.rng.IntN(len(ills))].strike(way)
		c.pause(ctx)
		way.Heal()
	}},
	"network to the store bad": {ofNothing, func(c *campaign, ctx context.Context) {
		way := c.toStore[c.rng.IntN(len(c.toStore))]
		ills[c.rng.IntN(len(ills))].strike(way)
		c.pause(ctx)
		way.Heal()
	}},
}

// faultsOfBroker are what can happen to a broker. It may forget everything: the
// outbox is the record.
var faultsOfBroker = map[string]fault{
	"broker killed": {ofNothing, func(c *campaign, ctx context.Context) {
		c.broker.Kill()
		c.pause(ctx)
		c.broker.Start()
	}},
	"broker frozen": {ofNothing, func(c *campaign, ctx context.Context) {
		c.broker.Pause()
		c.pause(ctx)
		c.pause(ctx)
		c.broker.Resume()
	}},
	"broker emptied": {ofNothing, func(c *campaign, _ context.Context) { c.broker.Empty() }},
	"instance replaced": {ofNothing, func(c *campaign, _ context.Context) { // its partitions move
		e := c.engines[c.rng.IntN(len(c.engines))]
		e.MustStop()
		e.Start()
	}},
}

// pause lets a fault last for a while.
func (c *campaign) pause(ctx context.Context) {
	market.Pause(ctx, shortest+time.Duration(c.rng.Int64N(int64(longest-shortest))))
}

// befall has a fault happen. An entry that is lost with its ledger, when the
// instance that answered it is dead too, nobody can save; everything else must
// be. So between the two, whichever comes first, the campaign waits until the
// store has every promise; if that takes too long the second does not happen.
func (c *campaign) befall(ctx context.Context, name string, f fault) {
	if f.forgets != ofNothing {
		if c.lost != ofNothing && c.lost != f.forgets && !c.keep(ctx) {
			c.t.Logf("%s: spared, the store did not have every promise within %s", name, keepMost)
			c.spared++
			return
		}
		c.lost = f.forgets
	}
	if f.forgets == ofLedger {
		c.Lose(c.ledgered()...)
		c.losses++
	}
	f.strike(c, ctx)
	c.struck[name]++
	if f.forgets == ofLedger && c.rng.IntN(mendOneIn) == 0 {
		c.mend(ctx)
	}
}

// mend waits until a loss is mended: every promise has its row, and a count of
// every product that has a ledger balances.
func (c *campaign) mend(ctx context.Context) {
	if !c.keep(ctx) {
		c.t.Logf("the store did not have every promise within %s", keepMost)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keepMost)
	defer cancel()
	if !c.balances(ctx) {
		c.t.Logf("a ledger did not agree with the store within %s", keepMost)
		return
	}
	c.Mended()
	c.mended++
}

// keep waits until every promise so far has its row in the store, and reports
// whether it has.
func (c *campaign) keep(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, keepMost)
	defer cancel()
	mark := time.Now()
	market.Pause(ctx, answerMost) // what was asked for by then is answered
	if !c.stores(ctx, c.kept, mark) {
		return false
	}
	c.kept, c.lost = mark, ofNothing
	return true
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
	kind := os.Getenv(queueEnv)
	if kind != "" && kind != "outbox" {
		maps.Copy(faults, faultsOfBroker)
	}
	c := &campaign{struck: make(map[string]int), site: open(t, plan{
		queue: kind, sentinel: sentinel, networks: true, ownStore: true, products: ample(duration),
		roles:  [][]string{nil, nil, {engine.RoleShop, engine.RoleWorker}},
		faults: []string{"", "clock:+5m", "clock:-5m"}, // until they are killed
	})}
	c.rng = rand.New(rand.NewPCG(c.seed, 1<<34))
	before, began := c.epochs(t.Context()), time.Now()
	c.during(func(ctx context.Context) {
		names := slices.Sorted(maps.Keys(faults))
		for time.Since(began) < duration && !t.Failed() {
			market.Pause(ctx, time.Duration(c.rng.Int64N(int64(restMost))))
			name := names[c.rng.IntN(len(names))]
			t.Logf("%s of %s: %s", time.Since(began).Round(time.Second), duration, name)
			c.befall(ctx, name, faults[name])
		}
	})
	lasted := time.Since(began)
	t.Log("the faults are over: every open question is asked again")
	c.Settle()
	c.wantWhole()
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
	e := c.evidence()
	r := &report{
		seed: c.seed, lasted: lasted, faults: c.struck, spared: c.spared, answers: c.trace.counts(), acts: len(e.acts), orders: len(e.rows),
		losses: c.losses, mended: c.mended, failures: e.failures(), unheard: c.Unheard(),
	}
	r.buyers, r.findings = e.checkHistory()
	r.refusals = e.checkNoUndersell()
	r.findings = append(r.findings, r.refusals.findings...)
	for id, epoch := range c.epochs(c.t.Context()) {
		r.recoveries += int(epoch - before[id])
	}
	r.latencies(e.acts)
	return r
}
