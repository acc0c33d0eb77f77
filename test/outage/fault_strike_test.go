package outage

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
	"seckill/test/market"
)

const (
	// setBackMost is by how much a clock is set back at most. Sales have begun long
	// before.
	setBackMost = 10 * time.Minute
	// A product is recovered so long after its instance was killed: another worker
	// has not taken over all that the dead one held.
	recoverLeast, recoverMost = time.Second, 3 * time.Second
	// slowWorker has the workers of an instance hold each batch for a moment, so that
	// they have some when they die.
	slowWorker = "worker.after_receive~300ms"
)

// takeOver has an operator make the store the seller of one product with its
// limit group, or of all, and return them after a while. The ledger is there, so
// that no promise has an excuse (protocol 5). If ledger.return_after is shorter
// than the pause, the return is the site's own, and the recover one rebuild more.
func (c *campaign) takeOver(ctx context.Context) {
	ids := c.shuffled()
	if c.rng.IntN(2) == 0 {
		ids = ids[:1]
	}
	operator := c.anyOperator(nil)
	for _, id := range ids {
		c.order(ctx, "take a product over", func() error { _, err := operator.TakeOver(ctx, id); return err })
	}
	if c.rng.IntN(2) == 0 { // else the return may meet a takeover that is half done
		c.awaitSeller(ctx, api.SellerStore, ids...)
	}
	c.pause(ctx)
	for _, id := range ids {
		c.order(ctx, "return a product", func() error { _, err := operator.Recover(ctx, id); return err })
	}
}

// loseReach has Redis be away for longer than ledger.takeover_after: the store
// takes over by itself whatever falls back on it, and sells for a while. The
// products return by themselves; what comes next may meet that half done.
func (c *campaign) loseReach(ctx context.Context) {
	back := c.redis.Resume
	if c.rng.IntN(2) == 0 {
		c.redis.Kill()
		back = c.redis.Start
	} else {
		c.redis.Pause()
	}
	c.awaitSeller(ctx, api.SellerStore, c.falling()...)
	c.pause(ctx)
	back()
	if c.rng.IntN(2) == 0 {
		c.awaitSeller(ctx, api.SellerLedger, c.falling()...)
	}
}

// cutPower kills Redis, MariaDB and all instances at once. Redis syncs every
// command, so that a real cut would take nothing from it: the fault takes the last
// second of its file as well, which is what `everysec` may lose. The journal of
// promises must make up for that.
func (c *campaign) cutPower(ctx context.Context) {
	c.redis.HoldRewrites()
	recording, stop := context.WithCancel(ctx)
	defer stop()
	sizes := c.record(recording)
	market.Pause(ctx, unsynced)
	c.pause(ctx)
	cut := time.Now()
	c.killAll()
	lost := c.redis.CutAppended(sizes.at(cut.Add(-unsynced)))
	c.t.Logf("power cut: %d bytes of Redis are lost", lost)
	c.maria.Start()
	c.redis.Start()
	together := c.rng.IntN(2) == 0
	for _, e := range c.engines {
		e.StartArmed("")
		if !together { // the first may rebuild what a later one's journal has
			c.awaitReady(e)
		}
	}
	for _, e := range c.engines {
		c.awaitReady(e)
	}
}

func (c *campaign) awaitReady(e *engine.Engine) {
	if err := e.WaitReady(); err != nil {
		c.t.Fatalf("start an instance: %v", err)
	}
}

// setClockBack sets the clock of Redis back, and right again.
func (c *campaign) setClockBack(ctx context.Context) {
	by := time.Second + time.Duration(c.rng.Int64N(int64(setBackMost)))
	c.redis.MoveClock(-by)
	c.pause(ctx)
	c.redis.MoveClock(0)
}

// killAndRecover kills an instance, and has an operator recover a product before
// another worker has all that the dead one held. No promise may fail for it: a
// rebuild writes what is queued first (protocol 3).
func (c *campaign) killAndRecover(ctx context.Context) {
	victim := c.engines[c.rng.IntN(len(c.engines))]
	victim.Kill()
	market.Pause(ctx, recoverLeast+time.Duration(c.rng.Int64N(int64(recoverMost-recoverLeast))))
	operator := c.anyOperator(victim)
	for _, id := range c.shuffled()[:1+c.rng.IntN(2)] {
		c.order(ctx, "recover a product", func() error { _, err := operator.Recover(ctx, id); return err })
	}
	c.pause(ctx)
	if c.rng.IntN(2) == 0 {
		victim.Start()
		return
	}
	victim.StartArmed(slowWorker) // for the next time
	c.awaitReady(victim)
}

// shuffled are the products that have a ledger, in an order of the seed's.
func (c *campaign) shuffled() []uint32 {
	ids := c.ledgered()
	c.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// falling are the products that the store takes over by itself.
func (s *site) falling() (ids []uint32) {
	for _, id := range s.ledgered() {
		if s.Products[id].Fallback == string(seckill.FallbackStore) {
			ids = append(ids, id)
		}
	}
	return ids
}

// anyOperator is an operator at an instance that is not down.
func (c *campaign) anyOperator(down *engine.Engine) *engine.Operator {
	var up []*engine.Engine
	for _, e := range c.engines {
		if e != down && e.Plays(engine.RoleAdmin) {
			up = append(up, e)
		}
	}
	return up[c.rng.IntN(len(up))].Operator()
}

// order has an operator ask until it is done, for a while. A product that another
// instance is rebuilding is in the wrong state for it.
func (c *campaign) order(ctx context.Context, what string, ask func() error) {
	again := func(err error) bool {
		return !engine.Answered(err) || market.Temporary(err) || engine.CodeOf(err) == seckill.CodeWrongState
	}
	err := ask()
	for deadline := time.Now().Add(keepMost); err != nil && again(err) && time.Now().Before(deadline); err = ask() {
		if !market.Pause(ctx, keepPoll) {
			return
		}
	}
	switch {
	case err == nil:
	case again(err):
		c.t.Logf("%s: not done within %s: %v", what, keepMost, err)
	default:
		c.t.Errorf("%s: %v", what, err)
	}
}

// awaitSeller waits until products are sold by the store, or by the ledger.
func (c *campaign) awaitSeller(ctx context.Context, seller string, ids ...uint32) {
	began := time.Now()
	for _, id := range ids {
		for {
			figures, err := c.anyOperator(nil).Stats(ctx, id)
			if err == nil && figures.Seller == seller {
				break
			}
			if time.Since(began) > market.SettleWithin {
				c.t.Errorf("product %d is not sold by the %s within %s: %+v (%v)", id, seller, market.SettleWithin, figures, err)
				return
			}
			if !market.Pause(ctx, keepPoll) {
				return
			}
		}
	}
}
