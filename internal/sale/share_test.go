package sale_test

import (
	"strings"
	"testing"

	"seckill"
	"seckill/internal/stats"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// shareBalance checks, at rest, that ledger and store have what the share
// leaves to each: I5 and the stock that confirms may take.
func shareBalance(t *testing.T, r *rig.Rig) {
	t.Helper()
	figures, err := r.Store.Figures(t.Context(), 1)
	rig.Must(t, err)
	p := figures.Product
	f := r.Figures(t, p)
	if got, want := f.Available+f.Marked, p.Offered-p.ShareLeft-figures.Fallback; got != want {
		t.Errorf("I5: the ledger has %d units, want %d", got, want)
	}
	if f.Available != p.Allottable() {
		t.Errorf("the ledger has %d free units, the store %d for it", f.Available, p.Allottable())
	}
	if figures.OpenChanges != 0 {
		t.Errorf("%d changes are open", figures.OpenChanges)
	}
	storetest.CheckPromises(t, r.Store, 1)
}

func shareLeft(t *testing.T, r *rig.Rig, want int64) {
	t.Helper()
	if left := r.Stored(t, 1).ShareLeft; left != want {
		t.Errorf("the share has %d units left, want %d", left, want)
	}
}

func TestTheShareIsNeverAllotted(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 10, rig.Share(0.3))
	if f := r.Figures(t, p); f.Available != 7 || f.Allotted != 7 {
		t.Fatalf("the ledger has %+v", f)
	}
	r.Buy(t, p, "a", "b")
	nos := r.Sell(t, p, "c", "d")
	r.ConfirmAll(t)
	shareBalance(t, r)
	s, err := r.Desk.Stats(t.Context(), 1)
	rig.Must(t, err)
	if s.Fallback != (stats.Units{Available: 1, Reserved: 2}) || s.Ledger != (stats.Units{Available: 5, Reserved: 2}) {
		t.Errorf("stats are %+v", s)
	}
	// Neither is it after a recovery, and the share's orders leave no marks.
	r.LoseJournal(t)
	p, err = r.Desk.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if f := r.Figures(t, p); f.Available != 5 || f.Marked != 2 {
		t.Errorf("the recovered ledger has %+v", f)
	}
	_, err = r.Store.Cancel(t.Context(), nos[0], "test", rig.Operator)
	rig.Must(t, err)
	shareLeft(t, r, 2)
	shareBalance(t, r)
}

func TestAShareMovesOnceTheLedgerIsSoldOut(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 4, rig.Share(0.5))
	no := r.Sell(t, p, "a")[0]
	r.Buy(t, p, "b")
	rig.Must(t, r.Desk.MoveShares(t.Context()))
	shareLeft(t, r, 1) // the ledger has a unit

	r.Buy(t, p, "c")
	on := r.Catalog.Find(1)
	raise(on)
	for range 2 {
		rig.Must(t, r.Desk.MoveShares(t.Context()))
	}
	shareLeft(t, r, 0)
	if on.SoldOut() {
		t.Error("the flag stands over a free unit")
	}
	r.Buy(t, p, "d")
	r.ConfirmAll(t)
	shareBalance(t, r)

	// What returns later moves later.
	_, err := r.Store.Cancel(t.Context(), no, "test", rig.Operator)
	rig.Must(t, err)
	rig.Must(t, r.Catalog.Refresh(t.Context()))
	rig.Must(t, r.Desk.MoveShares(t.Context()))
	r.Buy(t, p, "e")
	r.ConfirmAll(t)
	shareBalance(t, r)
	if p := r.Stored(t, 1); p.Stock != 0 || p.Offered != 4 {
		t.Errorf("the product is %+v", p)
	}
}

// The share is not taken away from under the store, and the operator is told so.
func TestAStockDecreaseLeavesTheShareAndSaysSo(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 10, rig.Share(0.5))
	decrease := func(units int64, change string, code seckill.Code, says string) {
		t.Helper()
		_, err := r.Desk.ChangeStock(t.Context(), 1, -units, change, rig.Operator)
		rig.Refused(t, err, code)
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%d fewer: %v", units, err)
		}
	}
	decrease(6, "more than the ledger has", seckill.CodeBadRequest,
		"the stock is 10, of which 5 are the fallback share: no more than 5 can be taken away, not 6")
	r.Buy(t, p, "a", "b", "c")
	decrease(3, "more than is free there", seckill.CodeWrongState,
		"fewer than 3 units are free in the ledger; the 5 of the fallback share, which the store keeps, cannot be taken away")
	_, err := r.Desk.ChangeStock(t.Context(), 1, -2, "what is free there", rig.Operator)
	rig.Must(t, err)
	r.ConfirmAll(t)
	shareLeft(t, r, 5)
	shareBalance(t, r)
}

// A share that dies on its way reaches the ledger once.
func TestAShareThatDiesOnItsWayArrivesOnce(t *testing.T) {
	for name, fail := range map[string]func(r *rig.Rig){
		"before it is taken":          func(r *rig.Rig) { r.Store.FailBefore("TakeShare", 1) },
		"after it is taken":           func(r *rig.Rig) { r.Store.FailAfter("TakeShare", 1) },
		"before the ledger":           func(r *rig.Rig) { r.Ledger.FailBefore("Do", 1000) },
		"after the ledger":            func(r *rig.Rig) { r.Store.FailBefore("FinishStockChange", 1) },
		"after the store's last word": func(r *rig.Rig) { r.Store.FailAfter("FinishStockChange", 1) },
	} {
		for _, rebuilt := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", with a recovery"}[rebuilt], func(t *testing.T) {
				r := rig.New(t)
				p := r.Open(t, 1, 4, rig.Share(0.5))
				r.Buy(t, p, "a", "b")
				r.ConfirmAll(t)
				fail(r)
				ctx, cancel := shortly(t)
				_, err := r.Desk.MoveShare(ctx, 1)
				cancel()
				if err == nil {
					t.Fatal("the fault did not strike")
				}
				r.Store.Heal()
				r.Ledger.Heal()
				if r.Restart(t); rebuilt {
					_, err := r.Desk.Recover(t.Context(), 1, rig.Operator)
					rig.Must(t, err)
				}
				rig.Must(t, r.Desk.FinishStockChanges(t.Context(), 10))
				rig.Must(t, r.Catalog.Refresh(t.Context()))
				rig.Must(t, r.Desk.MoveShares(t.Context()))
				shareLeft(t, r, 0)
				shareBalance(t, r)
			})
		}
	}
}

func TestAShareStaysWhileTheLedgerIsDownOrBeingRebuilt(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 2, rig.Share(0.5))
	r.Buy(t, p, "a")
	r.Ledger.FailBefore("Read", 1)
	_, err := r.Desk.MoveShare(t.Context(), 1)
	rig.Refused(t, err, seckill.CodeBusy)
	rig.Must(t, r.Store.SetRebuilding(t.Context(), 1, p.Epoch, true))
	moved, err := r.Desk.MoveShare(t.Context(), 1)
	rig.Must(t, err)
	if moved {
		t.Error("the share moved to a ledger that is being rebuilt")
	}
	shareLeft(t, r, 1)
}
