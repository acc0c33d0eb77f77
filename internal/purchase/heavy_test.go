package purchase_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/purchase"
	"seckill/test/rig"
)

// saying is a ledger with one verdict for every claim.
type saying struct {
	ledger.Ledger
	code ledger.VerdictCode
}

func (s saying) Do(_ context.Context, req ledger.Request) (ledger.Reply, error) {
	verdicts := make([]ledger.Verdict, len(req.Write.(ledger.Reserve).Claims))
	for i := range verdicts {
		verdicts[i].Code = s.code
	}
	return ledger.Reply{Outcome: ledger.OutcomeApplied, Epoch: req.Shard.Epoch, Result: ledger.Result{Verdicts: verdicts, Free: 1}}, nil
}

// A buyer with so many returned orders that the ledger must check them later gets
// too_hot. A buyer over the bound gets a final refusal without Retry-After.
func TestBuy_BuyerWithManyReturns(t *testing.T) {
	for code, want := range map[ledger.VerdictCode]seckill.Code{
		ledger.VerdictUndecided: seckill.CodeTooHot,
		ledger.VerdictRefused:   seckill.CodeWrongState,
	} {
		hot := make(chan purchase.TooHot, 1)
		c := newFixture(t, 1)
		stage := purchase.New(saying{c.Ledger, code}, c.Clock, purchase.Options{
			QueueSize: 10, MaxBatch: 10, Timeout: 5 * time.Second, Random: func() uint64 { return 1 },
			Reports: reports{tooHot: func(why purchase.TooHot) { hot <- why }},
		})
		t.Cleanup(stage.Close)
		_, err := stage.Buy(c.on, purchase.Claim{Buyer: "a", Quantity: 1, Key: "k"})
		rig.Refused(t, err, want)
		var refusal *seckill.Error
		if !errors.As(err, &refusal) || refusal.RetryAfter != 0 || (refusal.Detail != "") != (code == ledger.VerdictRefused) {
			t.Errorf("%+v", refusal)
		}
		if code == ledger.VerdictUndecided {
			if why := <-hot; why != purchase.TooHotMarks {
				t.Errorf("too hot because of %s", why)
			}
		}
	}
}
