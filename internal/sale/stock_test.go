package sale_test

import (
	"fmt"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// balance checks what store and ledger have at rest.
func balance(t *testing.T, r *rig.Rig, offered, free int64) {
	t.Helper()
	p := r.Stored(t, 1)
	f := r.Figures(t, p)
	if p.Offered != offered || p.Stock != free || f.Available != free || f.Available+f.Marked != offered {
		t.Errorf("store: offered %d, stock %d; ledger: %d free, %d marked; want %d offered, %d free",
			p.Offered, p.Stock, f.Available, f.Marked, offered, free)
	}
	due, err := r.Store.StockChangesDue(t.Context(), 10)
	rig.Must(t, err)
	if len(due) != 0 {
		t.Errorf("changes are open: %+v", due)
	}
	storetest.CheckPromises(t, r.Store, 1)
}

func opened(t *testing.T) *rig.Rig {
	t.Helper()
	r := rig.New(t)
	r.Buy(t, r.Open(t, 1, 10), "a", "b")
	r.ConfirmAll(t)
	return r
}

func TestStockGoesUpAndDownOncePerID(t *testing.T) {
	r := opened(t)
	for _, step := range []struct {
		id            string
		delta         int64
		offered, free int64
	}{
		{"up", 5, 15, 13}, {"up", 5, 15, 13}, {"down", -3, 12, 10}, {"down", -3, 12, 10}, {"all", -10, 2, 0},
	} {
		change, err := r.Lifecycle.ChangeStock(t.Context(), 1, step.delta, step.id, rig.Operator)
		rig.Must(t, err)
		if change.Status != "done" {
			t.Errorf("%s is %s", step.id, change.Status)
		}
		balance(t, r, step.offered, step.free)
	}
	_, err := r.Lifecycle.ChangeStock(t.Context(), 1, 6, "up", rig.Operator)
	rig.Refused(t, err, seckill.CodeWrongState) // the id is another change's
}

func TestAStockChangeThatIsNoneIsRefused(t *testing.T) {
	r := opened(t)
	for i, delta := range []int64{0, seckill.MaxStock + 1, -seckill.MaxStock - 1, -9} {
		_, err := r.Lifecycle.ChangeStock(t.Context(), 1, delta, fmt.Sprint(i), rig.Operator)
		rig.Refused(t, err, seckill.CodeBadRequest)
	}
	balance(t, r, 10, 8)
}

// Units that are promised and not confirmed yet are in the store's stock, and
// not free in the ledger: the ledger's word counts.
func TestPromisedUnitsCannotBeTakenAway(t *testing.T) {
	r := rig.New(t)
	r.Buy(t, r.Open(t, 1, 10), "a", "b", "c")
	for range 2 {
		_, err := r.Lifecycle.ChangeStock(t.Context(), 1, -8, "too many", rig.Operator)
		rig.Refused(t, err, seckill.CodeWrongState)
	}
	r.ConfirmAll(t)
	balance(t, r, 10, 7)
	_, err := r.Lifecycle.ChangeStock(t.Context(), 1, -7, "as many as are free", rig.Operator)
	rig.Must(t, err)
	balance(t, r, 3, 0)
}

// owed checks a change that is recorded and not finished: the operator must
// learn its id, and must not be told to make it again.
func owed(t *testing.T, change store.StockChange, delta int64) {
	t.Helper()
	if change.ID == "" || change.Delta != delta || change.Status != store.ChangeOpen {
		t.Fatalf("the change is %+v, want %+d open", change, delta)
	}
}

// A change that dies anywhere is finished by the duty, once.
func TestAStockChangeThatDiesIsFinishedOnce(t *testing.T) {
	points := map[string]struct {
		fail     func(r *rig.Rig)
		recorded bool // as far as the operator can be told
	}{
		"before it is recorded":       {func(r *rig.Rig) { r.Store.FailBefore("BeginStockChange", 1) }, false},
		"after it is recorded":        {func(r *rig.Rig) { r.Store.FailAfter("BeginStockChange", 1) }, false},
		"before the ledger":           {func(r *rig.Rig) { r.Ledger.FailBefore("Do", 1000) }, true},
		"after the ledger":            {func(r *rig.Rig) { r.Store.FailBefore("FinishStockChange", 1) }, true},
		"after the store's last word": {func(r *rig.Rig) { r.Store.FailAfter("FinishStockChange", 1) }, true},
	}
	for name, point := range points {
		for _, delta := range []int64{4, -4} {
			t.Run(fmt.Sprintf("%s by %d", name, delta), func(t *testing.T) {
				r := opened(t)
				point.fail(r)
				ctx, cancel := shortly(t)
				change, err := r.Lifecycle.ChangeStock(ctx, 1, delta, "change", rig.Operator)
				cancel()
				if point.recorded {
					rig.Must(t, err)
					owed(t, change, delta)
				} else if err == nil {
					t.Fatal("the fault did not strike")
				}
				r.Store.Heal()
				r.Ledger.Heal()
				r.Restart(t)
				rig.Must(t, r.Lifecycle.FinishStockChanges(t.Context(), 10))
				_, err = r.Lifecycle.ChangeStock(t.Context(), 1, delta, "change", rig.Operator) // the operator's repeat
				rig.Must(t, err)
				balance(t, r, 10+delta, 8+delta)
			})
		}
	}
}

// The ledger has taken the units under an epoch that a rebuild then replaced
// by the store's truth, which still has them: the change begins again.
func TestAStockChangeAcrossARebuildCountsOnce(t *testing.T) {
	for _, delta := range []int64{4, -4} {
		t.Run(fmt.Sprint(delta), func(t *testing.T) {
			r := opened(t)
			r.Store.FailBefore("FinishStockChange", 1)
			change, err := r.Lifecycle.ChangeStock(t.Context(), 1, delta, "change", rig.Operator)
			rig.Must(t, err)
			owed(t, change, delta)
			_, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
			rig.Must(t, err)
			rig.Must(t, r.Lifecycle.FinishStockChanges(t.Context(), 10))
			balance(t, r, 10+delta, 8+delta)
		})
	}
}

// Between the store's new epoch and the ledger's install the change is told to
// neither: it waits.
func TestAStockChangeWaitsForTheInstall(t *testing.T) {
	for _, delta := range []int64{4, -4} {
		t.Run(fmt.Sprint(delta), func(t *testing.T) {
			r := opened(t)
			r.Ledger.FailBefore("Install", 1)
			_, err := r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
			rig.Refused(t, err, seckill.CodeBusy)
			change, err := r.Lifecycle.ChangeStock(t.Context(), 1, delta, "change", rig.Operator)
			rig.Must(t, err)
			owed(t, change, delta)
			rig.Must(t, round(t, r, keeper(r)))
			rig.Must(t, r.Lifecycle.FinishStockChanges(t.Context(), 10))
			balance(t, r, 10+delta, 8+delta)
		})
	}
}

func TestOneProductsTroubleDoesNotHoldUpAnothersChange(t *testing.T) {
	r := opened(t)
	q := r.Open(t, 2, 10)
	rig.Must(t, r.Embedded.Close(t.Context(), ledger.ShardOf(&q, 0)))
	change, err := r.Lifecycle.ChangeStock(t.Context(), 2, 1, "stuck", rig.Operator)
	rig.Must(t, err)
	owed(t, change, 1)
	r.Store.FailBefore("FinishStockChange", 1)
	change, err = r.Lifecycle.ChangeStock(t.Context(), 1, 1, "free", rig.Operator)
	rig.Must(t, err)
	owed(t, change, 1)
	if r.Lifecycle.FinishStockChanges(t.Context(), 10) == nil {
		t.Error("the round hides the trouble")
	}
	due, err := r.Store.StockChangesDue(t.Context(), 10)
	rig.Must(t, err)
	if len(due) != 1 || due[0].ID != "stuck" {
		t.Errorf("changes due are %+v", due)
	}
}

func TestMoreStockLowersTheSoldOutFlag(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 1)
	r.Buy(t, p, "a")
	on := r.Catalog.Find(1)
	raise(on)
	_, err := r.Lifecycle.ChangeStock(t.Context(), 1, 1, "more", rig.Operator)
	rig.Must(t, err)
	if on.SoldOut() {
		t.Error("the flag stands over a free unit")
	}
	if v := r.Reserve(t, p, r.Claim(1, "b")); v[0].Code != ledger.VerdictAccepted {
		t.Errorf("the new unit was answered %d", v[0].Code)
	}
}
