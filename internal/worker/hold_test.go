package worker_test

import (
	"slices"
	"testing"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// Many entries of a product that the store does not know raise an alert, and
// other products go on.
func TestHold_UnknownProductDoesNotStopOthers(t *testing.T) {
	c := newFixture(t)
	p, q := c.Open(t, 1, 2000), c.Open(t, 2, 10)
	var stuck []seckill.OrderNo
	for _, buyer := range buyers("b", 1100) {
		stuck = append(stuck, c.Buy(t, p, buyer)...)
	}
	c.Exec(t, `UPDATE tb_seckill_product SET id = 99 WHERE id = 1`)
	c.start(t)
	others := c.Buy(t, q, "a", "b")
	rig.Until(t, "the other product is served", func() bool { return c.Depth(t, 2) == 0 })
	c.statuses(t, seckill.OrderPending, others...)
	if calls := c.Store.Calls("Confirm"); calls > 200 {
		t.Errorf("%d transactions were tried for the product in trouble", calls)
	}
	rig.Until(t, "an operator is alerted", func() bool {
		return slices.Contains(c.alerted(), alert.NoProduct)
	})
	if letters := c.letters(t); len(letters) != 0 || c.Depth(t, 1) != int64(len(stuck)) {
		t.Errorf("%d claims were parked, %d are queued", len(letters), c.Depth(t, 1))
	}
	c.Exec(t, `UPDATE tb_seckill_product SET id = 1 WHERE id = 99`)
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, stuck...)
	storetest.CheckPromises(t, c.Store, 1)
}
