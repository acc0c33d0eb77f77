package sale_test

import (
	"testing"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/ledger"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// A direct sale is run from its creation to its end with the ledger down.
func TestADirectSaleNeverAsksTheLedger(t *testing.T) {
	r := rig.New(t)
	for _, method := range []string{"Do", "Install", "Open", "Close", "SetState", "Read", "Held"} {
		r.Ledger.FailBefore(method, -1)
	}
	p := r.Open(t, 1, 5, rig.Strategy(seckill.StrategyDirect))
	if p.Epoch != 1 || p.Rebuilding {
		t.Fatalf("preheated: %+v", p)
	}
	nos := r.Sell(t, p, "a", "b")
	for range 2 { // the second one finds it preheated
		again, err := r.Lifecycle.Preheat(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
		if again.Epoch != 1 {
			t.Errorf("preheated again under epoch %d", again.Epoch)
		}
		rig.Must(t, round(t, r, keeper(r)))
	}
	for id, delta := range map[string]int64{"up": 4, "down": -2} {
		change, err := r.Lifecycle.ChangeStock(t.Context(), 1, delta, id, rig.Operator)
		rig.Must(t, err)
		if change.Status != store.ChangeDone {
			t.Errorf("%s is %s", id, change.Status)
		}
	}
	_, err := r.Store.Cancel(t.Context(), nos[0], "test", rig.Operator)
	rig.Must(t, err)
	s, err := r.Lifecycle.Stats(t.Context(), 1)
	rig.Must(t, err)
	if s.Seller != api.SellerStore || s.Available() != 6 || s.Reserved() != 1 || s.Ledger != (api.LedgerFigures{}) || s.Offered != 7 {
		t.Errorf("stats are %+v", s)
	}
	for _, state := range []seckill.SaleState{seckill.SalePaused, seckill.SaleOpen, seckill.SaleEnded} {
		_, err := r.Lifecycle.SetState(t.Context(), 1, state, rig.Operator)
		rig.Must(t, err)
	}
	result, err := r.Store.Sell(t.Context(), store.SellRequest{
		ProductID: 1, Epoch: 1, Claims: []seckill.Claim{r.Claim(1, "late")},
	})
	rig.Must(t, err)
	if result.Verdicts[0].Code != ledger.VerdictEnded {
		t.Errorf("an ended sale answered %d", result.Verdicts[0].Code)
	}
	rig.Must(t, round(t, r, keeper(r)))
	storetest.CheckPromises(t, r.Store, 1)
}

func TestADirectSaleHasNothingToRecover(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5, rig.Strategy(seckill.StrategyDirect))
	_, err := r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Refused(t, err, seckill.CodeWrongState)
	// A lost queue makes every product due for recovery; the keeper finds this one sound.
	rig.Must(t, r.Store.BeginRebuild(t.Context(), 1, p.Epoch))
	rig.Must(t, round(t, r, keeper(r)))
	if now := r.Stored(t, 1); now.Rebuilding || now.Epoch != p.Epoch {
		t.Errorf("the product is %+v", now)
	}
}

func TestADirectSaleWhosePreheatDiedIsOpened(t *testing.T) {
	r := rig.New(t)
	r.Product(t, 1, 5, rig.Strategy(seckill.StrategyDirect))
	r.Store.FailBefore("EndRebuild", 1)
	if _, err := r.Lifecycle.Preheat(t.Context(), 1, rig.Operator); err == nil {
		t.Fatal("the fault did not strike")
	}
	rig.Must(t, round(t, r, keeper(r)))
	if p := r.Stored(t, 1); p.Rebuilding || p.Epoch != 1 {
		t.Errorf("the product is %+v", p)
	}
}

func TestMoreStockOfADirectSaleLowersTheSoldOutFlag(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 0, rig.Strategy(seckill.StrategyDirect))
	on := r.Catalog.Find(1)
	raise(on)
	_, err := r.Lifecycle.ChangeStock(t.Context(), 1, 1, "more", rig.Operator)
	rig.Must(t, err)
	if on.SoldOut() {
		t.Error("the flag stands over a free unit")
	}
}
