package order_test

import (
	"fmt"
	"testing"
	"time"

	"seckill"
	"seckill/test/rig"
)

// A list reads only the ledgers in which entries wait. It also has parked
// claims of a sale that ended long ago.
func TestList_ReadsOnlyLedgersWithWaitingEntries(t *testing.T) {
	d := newFixture(t)
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
	if asked := d.Rig.Ledger.Calls("Held") - before; asked != 1 {
		t.Errorf("%d ledgers were read, want only that of the waiting claim: letters are in the store", asked)
	}
	status := make(map[seckill.OrderNo]seckill.OrderStatus, len(listed.Orders))
	for _, o := range listed.Orders {
		status[o.OrderNo] = o.Status
	}
	if len(status) != 10 || listed.Partial || status[parked] != seckill.OrderQueued || status[waiting] != seckill.OrderQueued {
		t.Errorf("listed %v", status)
	}
	for _, no := range stored {
		if status[no] != seckill.OrderPending {
			t.Errorf("order %s is listed as %s", no, status[no])
		}
	}
}

// Letters of other buyers and other products cause no reads of ledgers.
func TestList_LettersOfOthersReadNoLedger(t *testing.T) {
	d := newFixture(t)
	p := d.Open(t, 1, 200)
	var buyers []string
	for i := range 150 {
		buyers = append(buyers, fmt.Sprint("buyer", i))
	}
	d.Rig.Buy(t, p, buyers...)
	d.park(t, true)
	for id := range uint32(5) {
		d.Open(t, id+2, 5)
	}
	before := d.Rig.Ledger.Calls("Held")
	listed, err := d.List(t.Context(), "buyer7", seckill.OrderNo{}, 20)
	rig.Must(t, err)
	if asked := d.Rig.Ledger.Calls("Held") - before; asked != 0 {
		t.Errorf("%d ledgers were read", asked)
	}
	if len(listed.Orders) != 1 || listed.Orders[0].Reason != seckill.ReasonRetrying && listed.Orders[0].Reason != seckill.ReasonDead {
		t.Errorf("listed %+v", listed.Orders)
	}
}

// inTime checks that a read is answered within a second. It takes the best of
// several tries, because the machine may be busy.
func inTime(t *testing.T, what string, read func() error) {
	t.Helper()
	const within, tries = time.Second, 4
	var took time.Duration
	var err error
	for range tries {
		began := time.Now()
		err = read()
		if took = time.Since(began); err == nil && took <= within {
			return
		}
	}
	t.Errorf("%s was answered after %s: %v", what, took, err)
}

// While the ledger is away, orders in the store are shown, in a partial list. A
// buyer without orders in the store gets busy, not an empty list.
func TestLedgerAway_StoredOrdersAreShownAndOthersAreBusy(t *testing.T) {
	d := newFixture(t)
	d.ReadWithin = 0 // the default
	p := d.Open(t, 1, 5)
	stored := d.Rig.Buy(t, p, "bob")[0]
	d.ConfirmAll(t)
	waiting := d.Rig.Buy(t, p, "eve")[0]
	for name, outage := range map[string]func() (end func()){
		"refused":   func() func() { d.Rig.Ledger.FailBefore("Held", -1); return d.Rig.Ledger.Heal },
		"no answer": func() func() { return d.Rig.Ledger.Block("Held") },
	} {
		t.Run(name, func(t *testing.T) {
			end := outage()
			defer end()
			inTime(t, "the list with a stored order", func() error {
				listed, err := d.List(t.Context(), "bob", seckill.OrderNo{}, 20)
				if err == nil && (len(listed.Orders) != 1 || listed.Orders[0].OrderNo != stored || !listed.Partial) {
					t.Errorf("listed %+v", listed)
				}
				return err
			})
			for what, read := range map[string]func() error{
				"list":   func() error { _, err := d.List(t.Context(), "eve", seckill.OrderNo{}, 20); return err },
				"find":   func() error { _, err := d.Find(t.Context(), "eve", waiting); return err },
				"cancel": func() error { _, err := d.CancelOwn(t.Context(), "eve", waiting); return err },
				"pay":    func() error { _, err := d.BeginPayment(t.Context(), "eve", waiting, "purse"); return err },
			} {
				inTime(t, what, func() error { rig.Refused(t, read(), seckill.CodeBusy); return nil })
			}
			inTime(t, "the stored order", func() error {
				o, err := d.Find(t.Context(), "bob", stored)
				if err == nil && o.OrderNo != stored {
					t.Errorf("found %+v", o)
				}
				return err
			})
		})
	}
}

// While the store is away, an order that still waits in the ledger is shown, in
// a partial list. Any other order is busy, because only the store knows its
// state.
func TestStoreAway_WaitingOrdersAreShownAndOthersAreBusy(t *testing.T) {
	d := newFixture(t)
	d.ReadWithin = 0 // the default
	p := d.Open(t, 1, 5)
	confirmed := d.Rig.Buy(t, p, "bob", "eve")
	d.ConfirmAll(t)
	waiting := d.Rig.Buy(t, d.Open(t, 2, 5), "bob")[0]
	for name, outage := range map[string]func(){
		"refused": func() {
			for _, method := range []string{"Order", "LetterByOrder", "Letters", "SearchOrders", "OrdersByNo"} {
				d.Rig.Store.FailBefore(method, 100)
			}
		},
		"no answer": func() { d.Rig.Store.Block("Order"); d.Rig.Store.Block("Letters") },
	} {
		t.Run(name, func(t *testing.T) {
			outage()
			defer d.Rig.Store.Heal()
			inTime(t, "the waiting order", func() error {
				o, err := d.Find(t.Context(), "bob", waiting)
				if err == nil && (o.OrderNo != waiting || o.Status != seckill.OrderQueued) {
					t.Errorf("found %+v", o)
				}
				return err
			})
			inTime(t, "the list with a waiting order", func() error {
				listed, err := d.List(t.Context(), "bob", seckill.OrderNo{}, 10)
				if err == nil && (len(listed.Orders) != 1 || listed.Orders[0].OrderNo != waiting || !listed.Partial) {
					t.Errorf("listed %+v", listed)
				}
				return err
			})
			for buyer, no := range map[string]seckill.OrderNo{"bob": confirmed[0], "eve": waiting} {
				inTime(t, buyer, func() error {
					_, err := d.Find(t.Context(), buyer, no)
					rig.Refused(t, err, seckill.CodeBusy)
					return nil
				})
			}
			inTime(t, "the list without a waiting order", func() error {
				_, err := d.List(t.Context(), "eve", seckill.OrderNo{}, 10)
				rig.Refused(t, err, seckill.CodeBusy)
				return nil
			})
		})
	}
	d.ReadWithin = unhurried
	if o, err := d.Find(t.Context(), "bob", confirmed[0]); err != nil || o.Status != seckill.OrderPending {
		t.Errorf("after the outage: %+v, %v", o, err)
	}
}

// A ledger that was set back has old entries again. It closes when a lane
// notices. While the store is away, the state of such an order is unknown.
func TestStoreAway_LedgerThatWasSetBackIsBusy(t *testing.T) {
	d := newFixture(t)
	waiting := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	rig.Must(t, d.Rig.Ledger.Close(t.Context(), d.Rig.Catalog.Find(1).Shard(0)))
	if o, err := d.Find(t.Context(), "bob", waiting); err != nil || o.Status != seckill.OrderQueued {
		t.Errorf("with the store: %+v, %v", o, err)
	}
	for _, method := range []string{"Order", "LetterByOrder", "Letters", "SearchOrders", "OrdersByNo"} {
		d.Rig.Store.FailBefore(method, 100)
	}
	_, err := d.Find(t.Context(), "bob", waiting)
	rig.Refused(t, err, seckill.CodeBusy)
	_, err = d.List(t.Context(), "bob", seckill.OrderNo{}, 10)
	rig.Refused(t, err, seckill.CodeBusy)
}

// The store may have an order that a worker here has in hand, and it may be
// paid there. While the store is away, its state is unknown.
func TestStoreAway_OrderThatMayBeStoredIsBusy(t *testing.T) {
	d := newFixture(t)
	nos := d.Rig.Buy(t, d.Open(t, 1, 5), "bob", "eve")
	var undecided seckill.OrderNo
	asked := 0
	d.MayBeStored = func(no seckill.OrderNo) bool { asked++; return no == undecided }
	status := func(buyer string, no seckill.OrderNo) error {
		o, err := d.Find(t.Context(), buyer, no)
		if err == nil && o.Status != seckill.OrderQueued {
			t.Errorf("found %+v", o)
		}
		listed, listErr := d.List(t.Context(), buyer, seckill.OrderNo{}, 10)
		if seckill.CodeBusy.In(err) != seckill.CodeBusy.In(listErr) || listErr == nil && len(listed.Orders) != 1 {
			t.Errorf("found with %v, listed %+v with %v", err, listed, listErr)
		}
		return err
	}
	undecided = nos[0]
	rig.Must(t, status("bob", nos[0]))
	if asked != 0 {
		t.Errorf("the worker was called %d times while the store was there", asked)
	}
	for _, method := range []string{"Order", "LetterByOrder", "Letters", "SearchOrders", "OrdersByNo"} {
		d.Rig.Store.FailBefore(method, 100)
	}
	rig.Refused(t, status("bob", nos[0]), seckill.CodeBusy)
	rig.Must(t, status("eve", nos[1]))
	undecided = seckill.OrderNo{}
	rig.Must(t, status("bob", nos[0]))
}

// The reply of the ledger may be older than the acknowledgement, and so older
// than the end of MayBeStored.
func TestStoreAway_OrderThatMayHaveBeenStoredBeforeTheReadIsBusy(t *testing.T) {
	d := newFixture(t)
	no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	asked := 0
	d.MayBeStored = func(seckill.OrderNo) bool { asked++; return asked == 1 }
	d.Rig.Store.FailBefore("Order", 100)
	_, err := d.Find(t.Context(), "bob", no)
	rig.Refused(t, err, seckill.CodeBusy)
}
