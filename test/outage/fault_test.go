package outage

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
)

// memory is one of the two places where a promise is until the store has it.
type memory string

const (
	ofNothing  memory = ""
	ofLedger   memory = "ledger"
	ofInstance memory = "instance"
	// outOfReach is a ledger that is away for so long that the store may take
	// products over. It forgets nothing. But the store sells without knowing what
	// only this ledger and a dead instance know, and that may fail when it turns up
	// (protocol 5).
	outOfReach memory = "ledger, for a while"
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
	"Redis killed": {outOfReach, func(c *campaign, ctx context.Context) {
		c.redis.Kill()
		c.pause(ctx)
		c.redis.Start()
	}},
	"Redis frozen": {outOfReach, func(c *campaign, ctx context.Context) {
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
	"Redis away until the store takes over": {outOfReach, (*campaign).loseReach},
	"clock of Redis set back":               {ofNothing, (*campaign).setClockBack},
	// The instances forget too, and have their journals.
	"power cut of everything": {ofLedger, (*campaign).cutPower},
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
	// With a broker its partitions move.
	"instance replaced": {ofNothing, func(c *campaign, ctx context.Context) {
		e := c.engines[c.rng.IntN(len(c.engines))]
		e.MustStop()
		c.pause(ctx)
		e.Start()
	}},
	"worker dead and recovered":  {ofInstance, (*campaign).killAndRecover},
	"store takes a product over": {ofNothing, (*campaign).takeOver},
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
}

// faultsOf are what can happen to a site.
func faultsOf(sentinel, broker bool) map[string]fault {
	faults := maps.Clone(faultsOfAll)
	if sentinel {
		maps.Copy(faults, faultsOfSentinel)
	} else {
		maps.Copy(faults, faultsOfAlone)
	}
	if broker {
		maps.Copy(faults, faultsOfBroker)
	}
	return faults
}

// chosenFaults are those of the faults whose names contain one of the words; all
// of them without a word. A word that no name contains ends the test.
func chosenFaults(t *testing.T, faults map[string]fault, words string) map[string]fault {
	t.Helper()
	if strings.TrimSpace(words) == "" {
		return faults
	}
	chosen := make(map[string]fault)
	for word := range strings.SplitSeq(strings.ToLower(words), ",") {
		found := false
		for name, f := range faults {
			if strings.Contains(strings.ToLower(name), strings.TrimSpace(word)) {
				chosen[name], found = f, true
			}
		}
		if !found {
			t.Fatalf("%s: no fault of this site is called %q; there are %q", faultsEnv, word, slices.Sorted(maps.Keys(faults)))
		}
	}
	return chosen
}
