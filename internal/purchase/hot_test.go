package purchase_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/purchase"
	"seckill/internal/sale"
	"seckill/test/rig"
)

// budgetTooHot is the budget of allocations for a refused claim.
const budgetTooHot = 0

// holding is a ledger that accepts the first claims, reports no units left, and then
// hangs.
type holding struct {
	ledger.Ledger
	calls chan struct{} // has room for the first call
	end   chan struct{}
}

func (h *holding) Do(_ context.Context, req ledger.Request) (ledger.Reply, error) {
	select {
	case h.calls <- struct{}{}:
	default:
		<-h.end
		return ledger.Reply{}, ledger.ErrNotExecuted
	}
	claim := req.Write.(ledger.Reserve).Claims[0]
	return ledger.Reply{Outcome: ledger.OutcomeApplied, Epoch: req.Shard.Epoch, Result: ledger.Result{
		Verdicts: []ledger.Verdict{{Code: ledger.VerdictAccepted, OrderNo: claim.OrderNo}},
	}}, nil
}

// crowded is a stage whose line is as long as it may be without units.
func crowded(tb testing.TB) (*purchase.Stage, *sale.Sale) {
	tb.Helper()
	const batch = 2
	log := slog.New(slog.DiscardHandler)
	catalog := sale.NewCatalog(products{{
		ID: 1, Group: 1, Name: "p", Currency: "CNY", PriceCents: 1, PerUserLimit: 1, Shards: 1, Epoch: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
	}})
	rig.Must(tb, catalog.Refresh(tb.Context()))
	refused := make(chan struct{}, 1)
	keeper := &holding{calls: make(chan struct{}, 1), end: make(chan struct{})}
	stage := purchase.New(keeper, sale.NewClock(func(context.Context) (time.Time, error) { return time.Now(), nil }, log), purchase.Options{
		QueueSize: 1024, MaxBatch: batch, Timeout: time.Minute, Random: rand.Uint64,
		Lane: ledger.LaneOptions{CallTimeout: time.Minute},
		Reports: reports{tooHot: func(purchase.TooHot) {
			select {
			case refused <- struct{}{}:
			default:
			}
		}},
	})
	tb.Cleanup(stage.Close)
	tb.Cleanup(func() { close(keeper.end) })
	on := catalog.Find(1)
	_, err := stage.Buy(on, purchase.Claim{Buyer: "first", Quantity: 1})
	rig.Must(tb, err)
	for range 10 * batch { // more than the lanes and the line take
		go stage.Buy(on, purchase.Claim{Buyer: "waiting", Quantity: 1})
	}
	<-refused
	rig.Until(tb, "nobody gets in any more", func() bool {
		ended := make(chan error, 1)
		go func() {
			_, err := stage.Buy(on, purchase.Claim{Buyer: "another", Quantity: 1})
			ended <- err
		}()
		select {
		case err := <-ended:
			return code(err) == seckill.CodeTooHot
		case <-time.After(50 * time.Millisecond): // it was admitted
			return false
		}
	})
	return stage, on
}

func refuseOne(tb testing.TB, stage *purchase.Stage, on *sale.Sale) {
	_, err := stage.Buy(on, purchase.Claim{Buyer: "late", Quantity: 1})
	if refusal, _ := err.(*seckill.Error); refusal == nil || refusal.Code != seckill.CodeTooHot {
		tb.Fatalf("answered %v", err)
	}
}

func TestBuy_TooHotKeepsItsAllocBudget(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates itself; budgets are measured without it")
		return
	}
	stage, on := crowded(t)
	if got := testing.AllocsPerRun(1000, func() { refuseOne(t, stage, on) }); got > budgetTooHot {
		t.Errorf("refusing a claim allocates %v times, budget %d", got, budgetTooHot)
	}
}

func BenchmarkTooHot(b *testing.B) {
	stage, on := crowded(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			refuseOne(b, stage, on)
		}
	})
}
