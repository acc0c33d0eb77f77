package adoption_test

import (
	"context"
	"fmt"
	"testing"

	"seckill/internal/adoption"
	"seckill/internal/ledger"
	"seckill/internal/store"
	"seckill/test/rig"
)

// hesitant is a ledger that decides some claims of every adoption, and leaves
// the others undecided.
type hesitant struct {
	ledger.Writer
	most  int
	steps int
}

func (h *hesitant) Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error) {
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

// A promise that the ledger has not decided is neither adopted nor lost.
func TestWhatIsLeftUndecidedIsAdoptedInAnotherStep(t *testing.T) {
	for most, want := range map[int]int{0: 1, 1: 5, 2: 3, 5: 1} {
		t.Run(fmt.Sprint("steps of ", most), func(t *testing.T) {
			r := rig.New(t)
			p := r.Open(t, 1, 10)
			lanes := &hesitant{Writer: r.Lanes, most: most}
			adopter := &adoption.Adopter{Store: r.Store, Lanes: lanes, Now: r.Time.Now}
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
