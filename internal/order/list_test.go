package order_test

import (
	"testing"
	"time"

	"seckill"
	"seckill/test/rig"
)

// A list asks the ledgers in which something can wait, not every one of the
// catalogue; and it still has what waits on the ladder of a sale long over.
func TestAListAsksOnlyTheLedgersInWhichSomethingWaits(t *testing.T) {
	d := newDesk(t)
	parked := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	d.park(t, true)
	var stored []seckill.OrderNo
	for id := range uint32(8) {
		stored = append(stored, d.Rig.Buy(t, d.Open(t, id+2, 5), "bob")...)
	}
	d.ConfirmAll(t)
	d.Time.Advance(3 * time.Hour)
	rig.Must(t, d.Rig.Catalog.Refresh(t.Context()))
	rig.Must(t, d.Rig.Clock.Sync(t.Context()))
	waiting := d.Rig.Buy(t, d.Open(t, 20, 5), "bob")[0]

	before := d.Rig.Ledger.Calls("Held")
	listed, err := d.List(t.Context(), "bob", seckill.OrderNo{}, 20)
	rig.Must(t, err)
	if asked := d.Rig.Ledger.Calls("Held") - before; asked != 2 {
		t.Errorf("%d ledgers were asked, want those of the letter and of the claim that waits", asked)
	}
	status := make(map[seckill.OrderNo]seckill.OrderStatus, len(listed))
	for _, o := range listed {
		status[o.OrderNo] = o.Status
	}
	if len(listed) != 10 || status[parked] != seckill.OrderQueued || status[waiting] != seckill.OrderQueued {
		t.Errorf("listed %v", status)
	}
	for _, no := range stored {
		if status[no] != seckill.OrderPending {
			t.Errorf("order %s is listed as %s", no, status[no])
		}
	}

	d.Rig.Store.FailBefore("Letters", 1)
	if _, err := d.List(t.Context(), "bob", seckill.OrderNo{}, 20); err == nil {
		t.Error("the list hides the outage")
	}
}
