package worker_test

import (
	"testing"

	"seckill"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// checkMayBeStored checks MayBeStored of the orders.
func (c *fixture) checkMayBeStored(t *testing.T, want bool, nos ...seckill.OrderNo) {
	t.Helper()
	for _, no := range nos {
		if c.worker.MayBeStored(no) != want {
			t.Errorf("order %s may be stored: %v, want %v", no, !want, want)
		}
	}
}

// waitMayBeStored waits until the store may have the order.
func (c *fixture) waitMayBeStored(t *testing.T, no seckill.OrderNo) {
	t.Helper()
	rig.Until(t, "the store may have the order", func() bool { return c.worker.MayBeStored(no) })
}

// waitAcknowledged waits until the order is acknowledged.
func (c *fixture) waitAcknowledged(t *testing.T, no seckill.OrderNo) {
	t.Helper()
	rig.Until(t, "the order is acknowledged", func() bool { return !c.worker.MayBeStored(no) })
}

// waitRetried waits for two more transactions, because the first may have begun
// before.
func (c *fixture) waitRetried(t *testing.T) {
	t.Helper()
	calls := c.Store.Calls("Confirm")
	rig.Until(t, "the worker has tried again", func() bool { return c.Store.Calls("Confirm") >= calls+2 })
}

// Orders must stay readable while the store is away.
func TestMayBeStored_FalseIfNothingWasCommitted(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T, c *fixture){
		"the store is dead": func(_ *testing.T, c *fixture) { c.Store.FailBefore("Confirm", storetest.Always) },
		"the store hangs":   func(_ *testing.T, c *fixture) { c.Store.Block("Confirm") },
		"the store is short": func(t *testing.T, c *fixture) {
			c.Exec(t, `UPDATE tb_seckill_product SET stock = 1, version = version + 1 WHERE id = 1`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFixture(t)
			nos := c.Buy(t, c.Open(t, 1, 10), "a", "b")
			fault(t, c)
			c.start(t)
			rig.Until(t, "the worker has them in hand", func() bool { return c.Store.Calls("Confirm") >= 1 })
			c.checkMayBeStored(t, false, nos...)
			if name != "the store hangs" {
				c.waitRetried(t)
			}
			c.checkMayBeStored(t, false, nos...)
			c.Store.Heal()
		})
	}
}

// A later try that fails says nothing about an earlier one whose reply was
// lost.
func TestMayBeStored_TrueAfterALostReplyUntilAcknowledged(t *testing.T) {
	c := newFixture(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Store.FailAfter("Confirm", storetest.Always)
	c.start(t)
	c.waitMayBeStored(t, nos[0])
	c.checkMayBeStored(t, true, nos...)
	c.Store.FailBefore("Confirm", storetest.Always)
	later := c.Buy(t, p, "c")
	c.waitRetried(t)
	c.checkMayBeStored(t, true, nos...)
	c.checkMayBeStored(t, false, later...)
	c.Store.Heal()
	c.waitDrained(t)
	for _, no := range append(nos, later...) {
		c.waitAcknowledged(t, no)
	}
	c.statuses(t, seckill.OrderPending, append(nos, later...)...)
}

// The store has the order, so it is not queued, even if the queue still has its
// entry.
func TestMayBeStored_TrueWhileConfirmedAndNotAcknowledged(t *testing.T) {
	c := newFixture(t)
	no := c.Buy(t, c.Open(t, 1, 10), "a")[0]
	const always = 1 << 30
	c.queue.set(&c.queue.failAck, always)
	c.start(t)
	c.waitMayBeStored(t, no)
	c.waitRetried(t)
	c.checkMayBeStored(t, true, no)
	c.queue.set(&c.queue.failAck, 0)
	c.waitDrained(t)
	c.waitAcknowledged(t, no)
}

// Another worker settles the entries that a stop hands back. The stopped worker
// does not learn of it, and forgets them when it joins again.
func TestMayBeStored_LastsUntilAStoppedWorkerJoinsAgain(t *testing.T) {
	c := newFixture(t)
	no := c.Buy(t, c.Open(t, 1, 10), "a")[0]
	c.Store.FailAfter("Confirm", storetest.Always)
	c.start(t)
	c.waitMayBeStored(t, no)
	c.stop()
	c.checkMayBeStored(t, true, no)

	stopped := c.worker
	c.Store.Heal()
	c.newWorker(func(o *worker.Options) { o.Name = "another" })
	c.start(t)
	c.waitDrained(t)
	c.stop()
	c.worker = stopped
	c.checkMayBeStored(t, true, no)
	c.start(t)
	c.waitAcknowledged(t, no)
}
