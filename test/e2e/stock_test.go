package e2e

import (
	"testing"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

// A change can add or remove units. It removes only free units, all that it
// names or none.
func TestStock_ChangeDuringSaleCountsOnce(t *testing.T) {
	t.Parallel()
	overEach(t, stockChangeDuringSaleCountsOnce)
}

func stockChangeDuringSaleCountsOnce(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 4, PerUserLimit: 4}))
	operator, bob, cat := e.Operator(), e.Buyer("bob"), e.Buyer("cat")
	buy(t, e.Buyer("ann"), 1, engine.Purchase{Quantity: 4})
	_, err := claim(t, bob, 1, engine.Purchase{Quantity: 1})
	refused(t, "buy a sold unit", err, seckill.CodeSoldOut)

	for range 2 {
		if change, err := operator.ChangeStock(t.Context(), 1, 3, "delivery"); err != nil || change.Status != "done" {
			t.Fatalf("a delivery: %+v (%v)", change, err)
		}
	}
	settled(t, e, 1, "three units came", func(f api.Stats) bool { return f.Offered == 7 && free(f) == 3 && f.Store.Stock == 3 })
	buyAsSoonAsFree(t, bob, 1)

	_, err = operator.ChangeStock(t.Context(), 1, -3, "damaged")
	refused(t, "remove sold units", err, seckill.CodeBadRequest)
	_, err = operator.ChangeStock(t.Context(), 1, -2, "delivery")
	refused(t, "another change under a known id", err, seckill.CodeWrongState)
	for range 2 {
		if change, err := operator.ChangeStock(t.Context(), 1, -2, "returned to sender"); err != nil || change.Status != "done" {
			t.Fatalf("take the rest away: %+v (%v)", change, err)
		}
	}
	settled(t, e, 1, "the rest is gone", func(f api.Stats) bool {
		return f.Offered == 5 && free(f) == 0 && reserved(f) == 5 && f.Store.Stock == 0 && f.Store.Pending == 5
	})
	_, err = claim(t, cat, 1, engine.Purchase{Quantity: 1})
	refused(t, "buy removed units", err, seckill.CodeSoldOut)
	balanced(t, e, 1)
}
