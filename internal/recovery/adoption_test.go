package recovery_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/recovery"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// hesitantLedger decides some claims of every adoption, and leaves the others
// undecided.
type hesitantLedger struct {
	ledger.Writer
	most  int
	steps int
}

func (h *hesitantLedger) Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error) {
	h.steps++
	adopt := write.(ledger.Adopt)
	asked := len(adopt.Claims)
	adopt.Claims = adopt.Claims[:min(asked, h.most)]
	result, err := h.Writer.Do(ctx, shard, adopt)
	for err == nil && len(result.Verdicts) < asked {
		result.Verdicts = append(result.Verdicts, ledger.Verdict{Code: ledger.VerdictUndecided})
	}
	return result, err
}

// An undecided promise is neither adopted nor lost.
func TestAdopt_UndecidedClaimsAreAdoptedInAnotherStep(t *testing.T) {
	for most, want := range map[int]int{0: 1, 1: 5, 2: 3, 5: 1} {
		t.Run(fmt.Sprint("steps of ", most), func(t *testing.T) {
			r := rig.New(t)
			p := r.Open(t, 1, 10)
			lanes := &hesitantLedger{Writer: r.Lanes, most: most}
			adopter := &recovery.Adopter{Store: r.Store, Lanes: lanes, Now: r.Time.Now}
			var items []store.Item
			for i := range 5 {
				items = append(items, store.Item{
					Claim: r.Claim(1, fmt.Sprint("b-", i)), ProductID: 1, Group: 1, At: r.Time.Now(),
					PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: 1,
				})
			}
			out, err := adopter.Adopt(t.Context(), items)
			if (err != nil) != (most == 0) || len(out.Failed) > 0 || lanes.steps != want {
				t.Fatalf("%d steps, %d failed: %v", lanes.steps, len(out.Failed), err)
			}
			if f := r.Figures(t, p); most > 0 && (len(out.Adopted) != 5 || f.Orders != 5) {
				t.Errorf("%d adopted, the ledger has %d orders", len(out.Adopted), f.Orders)
			}
		})
	}
}

// While the store is the seller, it decides about old promises in their order:
// those that fit become orders, the others fail.
func TestAdopt_WritesWhileTheStoreIsTheSeller(t *testing.T) {
	for name, open := range map[string]bool{"open": true, "not open yet": false} {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			old := r.Open(t, 1, 3)
			_, err := r.Lifecycle.TakeOver(t.Context(), 1, rig.Operator)
			rig.Must(t, err)
			if open {
				r.Sell(t, r.TakeOver(t, 1), "of the store")
			}
			r.Ledger.FailBefore("Do", -1) // the ledger is away
			adopter := &recovery.Adopter{Store: r.Store, Lanes: r.Lanes, Now: r.Time.Now, ExpireAfter: time.Hour}
			var items []store.Item
			for i := range 4 {
				items = append(items, store.Item{
					Claim: r.Claim(1, fmt.Sprint("b-", i)), ProductID: 1, Group: 1, Epoch: old.Epoch, At: r.Time.Now(),
					PriceCents: old.PriceCents, Currency: old.Currency, Name: old.Name, Limit: 1,
				})
			}
			left := int(r.Stored(t, 1).Stock)
			out, err := adopter.Adopt(t.Context(), items)
			rig.Must(t, err)
			if len(out.Adopted) != left || len(out.Failed) != len(items)-left || out.Epoch != old.Epoch+1 {
				t.Fatalf("%d adopted and %d failed of %d units, epoch %d", len(out.Adopted), len(out.Failed), left, out.Epoch)
			}
			for i := range items {
				want := seckill.OrderPending
				if i >= left {
					want = seckill.OrderFailed
				}
				if got := r.Status(t, items[i].Claim.OrderNo); got != want {
					t.Errorf("promise %d of %d units is %s", i, left, got)
				}
			}
			if reason := out.Failed[0].Reason; reason != seckill.ReasonLost {
				t.Errorf("the reason is %q", reason)
			}
			storetest.CheckPromises(t, r.Store, 1)
		})
	}
}
