package outage

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
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
	// faultsEnv names the faults that happen, or parts of their names, separated by
	// commas; unset, all do.
	faultsEnv = "SECKILL_TORTURE_FAULTS"
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

// pause lets a fault last for a while.
func (c *campaign) pause(ctx context.Context) {
	market.Pause(ctx, shortest+time.Duration(c.rng.Int64N(int64(longest-shortest))))
}

// befall has a fault happen. An entry that is lost with its ledger, when the
// instance that answered it is dead too, nobody can save; everything else must
// be. So between the two, whichever comes first, the campaign waits until the
// store has every promise; if that takes too long the second does not happen.
// Where the ledger is only away, promises of a dead instance may fail if the store
// took over before it had them, and no others.
func (c *campaign) befall(ctx context.Context, name string, f fault) {
	switch {
	case f.forgets == outOfReach && c.lost == ofInstance && !c.keepsSoon(ctx):
		c.Rebuild(c.falling()...)
	case f.forgets == ofLedger, f.forgets == ofInstance:
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
	if f.forgets == outOfReach {
		c.Away(c.falling()...)
	}
	f.strike(c, ctx)
	c.Back()
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

// keepsSoon reports whether the store has every promise that was answered so far,
// or has it soon: those of an instance that died, among them.
func (c *campaign) keepsSoon(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	if !c.stores(ctx, c.kept, time.Now()) {
		return false
	}
	c.lost = ofNothing
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
	sentinel, kind := os.Getenv(topologyEnv) == "sentinel", os.Getenv(queueEnv)
	faults := chosenFaults(t, faultsOf(sentinel, kind != "" && kind != "outbox"), os.Getenv(faultsEnv))
	c := &campaign{struck: make(map[string]int), site: open(t, plan{
		queue: kind, sentinel: sentinel, networks: true, ownStore: true, products: ample(duration), clock: !sentinel,
		// A Redis that is alone loses a second in a power cut. Under Sentinel, where
		// there is none, instances have their memory alone.
		settings: map[string]string{"promise.journal": strconv.FormatBool(!sentinel)},
		roles:    [][]string{nil, nil, {engine.RoleShop, engine.RoleWorker}},
		faults:   []string{"", "clock:+5m", "clock:-5m"}, // until they are killed
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
		all[i].StartsAt = time.Now().Add(-2 * setBackMost)
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
