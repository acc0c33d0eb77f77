package order_test

import (
	"fmt"
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
	if asked := d.Rig.Ledger.Calls("Held") - before; asked != 1 {
		t.Errorf("%d ledgers were asked, want that of the claim that waits: letters are in the store", asked)
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

// Letters of other people and other products ask no ledger, however many are open.
func TestList_ManyLettersAskNoLedger(t *testing.T) {
	d := newDesk(t)
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
		t.Errorf("%d ledgers were asked", asked)
	}
	if len(listed.Orders) != 1 || listed.Orders[0].Reason != seckill.ReasonRetrying && listed.Orders[0].Reason != seckill.ReasonDead {
		t.Errorf("listed %+v", listed.Orders)
	}
}

// inTime holds that a read is answered within a second. A loaded machine may
// hold up a try, so the best of some counts.
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

// While the ledger is away, an order is shown as long as the store has it, in a
// list that says that it is partial; a buyer of whom it has none is not told
// that there is none.
func TestWithTheLedgerAwayWhatIsStoredIsShownAndTheRestIsBusy(t *testing.T) {
	d := newDesk(t)
	d.ReadWithin = 0 // as usual
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
			inTime(t, "the list of who has one", func() error {
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
			inTime(t, "who has one", func() error {
				o, err := d.Find(t.Context(), "bob", stored)
				if err == nil && o.OrderNo != stored {
					t.Errorf("found %+v", o)
				}
				return err
			})
		})
	}
}

// While the store is away, an order is shown as long as the ledger can tell
// that it waits, in a list that says that it is partial; of any other only the
// store knows what became of it.
func TestWithTheStoreAwayWhatWaitsIsShownAndTheRestIsBusy(t *testing.T) {
	d := newDesk(t)
	d.ReadWithin = 0 // as usual
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
			inTime(t, "who waits", func() error {
				o, err := d.Find(t.Context(), "bob", waiting)
				if err == nil && (o.OrderNo != waiting || o.Status != seckill.OrderQueued) {
					t.Errorf("found %+v", o)
				}
				return err
			})
			inTime(t, "the list of who waits", func() error {
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
			inTime(t, "the list of who has none there", func() error {
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

// A ledger that was set back has entries again that the store has had for long.
// Nobody notices it until a lane calls; from then on it is closed, and with the
// store away nobody can tell what became of such an order.
func TestWithTheStoreAwayALedgerInDoubtIsNotBelieved(t *testing.T) {
	d := newDesk(t)
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

// What a worker here has in hand the store may have, and others may have paid
// it: with the store away nobody here can tell.
func TestWithTheStoreAwayWhatMayBeStoredIsBusy(t *testing.T) {
	d := newDesk(t)
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
		t.Errorf("the worker was asked %d times with the store there", asked)
	}
	for _, method := range []string{"Order", "LetterByOrder", "Letters", "SearchOrders", "OrdersByNo"} {
		d.Rig.Store.FailBefore(method, 100)
	}
	rig.Refused(t, status("bob", nos[0]), seckill.CodeBusy)
	rig.Must(t, status("eve", nos[1]))
	undecided = seckill.OrderNo{}
	rig.Must(t, status("bob", nos[0]))
}

// The answer of the ledger may be older than the acknowledgement, and so older
// than the end of the doubt.
func TestADoubtThatEndsWhileTheLedgerIsAskedCounts(t *testing.T) {
	d := newDesk(t)
	no := d.Rig.Buy(t, d.Open(t, 1, 5), "bob")[0]
	asked := 0
	d.MayBeStored = func(seckill.OrderNo) bool { asked++; return asked == 1 }
	d.Rig.Store.FailBefore("Order", 100)
	_, err := d.Find(t.Context(), "bob", no)
	rig.Refused(t, err, seckill.CodeBusy)
}
