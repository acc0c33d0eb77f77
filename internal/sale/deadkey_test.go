package sale_test

import (
	"fmt"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/order"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// Orders die, the ledger is lost, and is lost again: the key of each finds its
// order, nothing is sold or held for it, and the figures are those of a ledger
// that never heard of them.
func TestTheKeysOfDeadOrdersOutliveTheLedger(t *testing.T) {
	kinds := map[string][]func(*seckill.Product){
		"async":      {rig.Limit(2)},
		"dualwrite":  {rig.Limit(2), rig.Strategy(seckill.StrategyDualWrite)},
		"sharded":    {rig.Limit(2), rig.Shards(4)},
		"taken over": {rig.Limit(2), rig.FallBack},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			p := r.Open(t, 1, 40, kind...)
			keyed := func(buyer string) seckill.Claim {
				claim := r.Claim(1, buyer)
				claim.Key = "key of " + buyer
				return claim
			}
			var claims []seckill.Claim
			for i := range 5 {
				claims = append(claims, keyed(fmt.Sprint("buyer-", i)))
			}
			r.Reserve(t, p, claims...)
			r.ConfirmAll(t)
			if p.Fallback == seckill.FallbackStore { // what the store sold dies, too
				counted := keyed("counted")
				r.SellClaims(t, r.TakeOver(t, 1), counted)
				claims = append(claims, counted)
				var err error
				p, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
				rig.Must(t, err)
			}
			over := keyed("buyer-0") // fails, over the limit
			over.Key, over.Quantity = "too many", 2
			_, err := r.Store.Confirm(t.Context(), store.ConfirmRequest{ProductID: 1, Items: store.Items(&seckill.Entry{
				ProductID: 1, Group: 1, Epoch: p.Epoch, Limit: 2, Shard: seckill.HomeShard(&p, over.Buyer), Claims: []seckill.Claim{over},
			})})
			rig.Must(t, err)
			for _, claim := range claims {
				_, err := r.Store.Cancel(t.Context(), claim.OrderNo, "test", rig.Operator)
				rig.Must(t, err)
			}
			r.Reserve(t, p, keyed("live")) // and one that lives
			r.ConfirmAll(t)
			claims = append(claims, over)

			for loss := range 2 {
				if loss == 0 {
					r.LoseJournal(t)
				}
				p, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
				rig.Must(t, err)
				live(t, r, 1)
				for _, first := range claims {
					again := r.Claim(1, first.Buyer)
					again.Key = first.Key
					if got := r.Reserve(t, p, again)[0]; got.Code != ledger.VerdictRepeated || got.OrderNo != first.OrderNo {
						t.Errorf("%s after loss %d: %+v, want order %s", first.Key, loss, got, first.OrderNo)
					}
				}
				if f := r.Figures(t, p); f.Marked != 1 || f.Orders != 1 || f.Available != p.Stock || f.Releases != 0 {
					t.Errorf("after loss %d: %+v, %d are in stock", loss, f, p.Stock)
				}
			}
			// What was owed to the lost ledger is owed to nobody: the snapshot counted it.
			releaser := &order.Releaser{Store: r.Store, Lanes: r.Lanes, OnReleased: func(uint32) {}, OnTrouble: func(uint32, error) {}}
			rig.Must(t, releaser.Round(t.Context()))
			if f := r.Figures(t, p); f.Marked != 1 || f.Available != p.Stock {
				t.Errorf("after the releases: %+v", f)
			}
			storetest.CheckPromises(t, r.Store, 1)
			if depth := r.Depth(t, 1); depth != 0 {
				t.Errorf("%d claims are queued", depth)
			}
		})
	}
}
