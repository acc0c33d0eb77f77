package worker_test

import (
	"testing"

	"seckill"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// doubted checks whether the worker says that the store may have the orders.
func (c *crew) doubted(t *testing.T, want bool, nos ...seckill.OrderNo) {
	t.Helper()
	for _, no := range nos {
		if c.worker.MayBeStored(no) != want {
			t.Errorf("order %s may be stored: %v, want %v", no, !want, want)
		}
	}
}

// inDoubt waits until the store may have an order.
func (c *crew) inDoubt(t *testing.T, no seckill.OrderNo) {
	t.Helper()
	rig.Until(t, "the store may have the order", func() bool { return c.worker.MayBeStored(no) })
}

// certain waits until an order is in no doubt.
func (c *crew) certain(t *testing.T, no seckill.OrderNo) {
	t.Helper()
	rig.Until(t, "the order is in no doubt", func() bool { return !c.worker.MayBeStored(no) })
}

// tried waits for two more transactions: the first may have begun before.
func (c *crew) tried(t *testing.T) {
	t.Helper()
	calls := c.Store.Calls("Confirm")
	rig.Until(t, "the worker has tried again", func() bool { return c.Store.Calls("Confirm") >= calls+2 })
}

// Orders must stay readable while the store is away.
func TestWhatWasSurelyNotCommittedIsInNoDoubt(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T, c *crew){
		"the store is dead": func(_ *testing.T, c *crew) { c.Store.FailBefore("Confirm", storetest.Always) },
		"the store hangs":   func(_ *testing.T, c *crew) { c.Store.Block("Confirm") },
		"the store is short": func(t *testing.T, c *crew) {
			c.Exec(t, `UPDATE tb_seckill_product SET stock = 1, version = version + 1 WHERE id = 1`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t)
			nos := c.Buy(t, c.Open(t, 1, 10), "a", "b")
			fault(t, c)
			c.start(t)
			rig.Until(t, "the worker has them in hand", func() bool { return c.Store.Calls("Confirm") >= 1 })
			c.doubted(t, false, nos...)
			if name != "the store hangs" {
				c.tried(t)
			}
			c.doubted(t, false, nos...)
			c.Store.Heal()
		})
	}
}

// A later try that surely changed nothing says nothing of the one whose reply
// was lost.
func TestALostReplyIsADoubtUntilTheOrderIsAcknowledged(t *testing.T) {
	c := newCrew(t)
	p := c.Open(t, 1, 10)
	nos := c.Buy(t, p, "a", "b")
	c.Store.FailAfter("Confirm", storetest.Always)
	c.start(t)
	c.inDoubt(t, nos[0])
	c.doubted(t, true, nos...)
	c.Store.FailBefore("Confirm", storetest.Always)
	later := c.Buy(t, p, "c")
	c.tried(t)
	c.doubted(t, true, nos...)
	c.doubted(t, false, later...)
	c.Store.Heal()
	c.drained(t)
	for _, no := range append(nos, later...) {
		c.certain(t, no)
	}
	c.statuses(t, seckill.OrderPending, append(nos, later...)...)
}

// The store has it, so that it is not queued, whatever the queue says.
func TestWhatIsConfirmedAndNotAcknowledgedIsADoubt(t *testing.T) {
	c := newCrew(t)
	no := c.Buy(t, c.Open(t, 1, 10), "a")[0]
	const always = 1 << 30
	c.queue.set(&c.queue.failAck, always)
	c.start(t)
	c.inDoubt(t, no)
	c.tried(t)
	c.doubted(t, true, no)
	c.queue.set(&c.queue.failAck, 0)
	c.drained(t)
	c.certain(t, no)
}

// What a stop hands back another worker settles. This one does not hear of it,
// and forgets it when it joins again.
func TestAStoppedWorkerKeepsItsDoubtsUntilItJoinsAgain(t *testing.T) {
	c := newCrew(t)
	no := c.Buy(t, c.Open(t, 1, 10), "a")[0]
	c.Store.FailAfter("Confirm", storetest.Always)
	c.start(t)
	c.inDoubt(t, no)
	c.stop()
	c.doubted(t, true, no)

	stopped := c.worker
	c.Store.Heal()
	c.enlist(func(o *worker.Options) { o.Name = "another" })
	c.start(t)
	c.drained(t)
	c.stop()
	c.worker = stopped
	c.doubted(t, true, no)
	c.start(t)
	c.certain(t, no)
}
