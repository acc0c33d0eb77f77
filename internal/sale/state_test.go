package sale_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/test/rig"
)

// crowd buys on lanes of its own until stopped, and counts what was accepted.
func crowd(t *testing.T, r *rig.Rig, p seckill.Product) (accepted *atomic.Int64, stop func()) {
	accepted = &atomic.Int64{}
	ctx, cancel := context.WithCancel(t.Context())
	var buyers sync.WaitGroup
	for i := range 4 {
		lane := ledger.NewLane(r.Ledger, ledger.ShardOf(&p, 0), ledger.LaneOptions{})
		buyers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				claim := r.Claim(p.ID, fmt.Sprintf("crowd-%d-%d", i, n))
				result, err := lane.Do(ctx, ledger.Reserve{Claims: []seckill.Claim{claim}, Currency: "CNY", Name: "x"})
				if err == nil && result.Verdicts[0].Code == ledger.VerdictAccepted {
					accepted.Add(1)
				}
			}
		})
	}
	return accepted, func() { cancel(); buyers.Wait() }
}

func TestAPauseAnsweredWithoutErrorSellsNothingMore(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 1_000_000)
	accepted, stop := crowd(t, r, p)
	for range 10 {
		before := accepted.Load()
		rig.Until(t, "the crowd buys", func() bool { return accepted.Load() > before })
		_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
		rig.Must(t, err)
		// What was decided before may be counted after: the ledger tells.
		sold := r.Figures(t, p).Marked
		for range 20 {
			if now := r.Figures(t, p).Marked; now != sold {
				t.Fatalf("%d units were sold after the pause", now-sold)
			}
		}
		_, err = r.Lifecycle.SetState(t.Context(), 1, seckill.SaleOpen, rig.Operator)
		rig.Must(t, err)
	}
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	stop()
	if v := r.Reserve(t, p, r.Claim(1, "late")); v[0].Code != ledger.VerdictEnded {
		t.Errorf("an ended sale answered %d", v[0].Code)
	}
	_, err = r.Lifecycle.SetState(t.Context(), 1, seckill.SaleOpen, rig.Operator)
	rig.Refused(t, err, seckill.CodeWrongState)
	if state := r.Catalog.Find(1).Terms().State; state != seckill.SaleEnded {
		t.Errorf("the catalogue says %s", state)
	}
}

func TestAStateThatTheLedgerMissedIsToldAgain(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	r.Ledger.FailBefore("SetState", 1)
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
	rig.Refused(t, err, seckill.CodeBusy)
	if !errors.Is(err, rig.ErrLedger) {
		t.Errorf("the cause is lost: %v", err)
	}
	if f := r.Figures(t, p); f.State != seckill.SaleOpen {
		t.Fatal("the fault did not strike")
	}
	rig.Must(t, round(t, r, keeper(r)))
	if f := r.Figures(t, p); f.State != seckill.SalePaused {
		t.Errorf("the ledger is %s", f.State)
	}
}

func TestTheSameStateAgainIsToldAgain(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	r.Ledger.FailBefore("SetState", 1)
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
	rig.Refused(t, err, seckill.CodeBusy)
	_, err = r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
	rig.Must(t, err)
	if f := r.Figures(t, p); f.State != seckill.SalePaused {
		t.Errorf("the ledger is %s", f.State)
	}
}

func TestAProductThatWasNeverPreheatedCanBePausedToo(t *testing.T) {
	r := rig.New(t)
	r.Product(t, 1, 5)
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
	rig.Must(t, err)
	p, err := r.Lifecycle.Preheat(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if f := r.Figures(t, p); f.State != seckill.SalePaused {
		t.Errorf("the ledger is %s", f.State)
	}
}

func TestAKeeperGoesOnPastASaleInTrouble(t *testing.T) {
	r := rig.New(t)
	for id := range uint32(3) {
		r.Product(t, id+1, 5)
	}
	r.Ledger.FailBefore("Install", 1) // whichever sale comes first: they are kept side by side
	k := keeper(r)
	if err := round(t, r, k); err == nil {
		t.Error("the round hides the trouble")
	}
	open := 0
	for id := range uint32(3) {
		f, err := r.Ledger.Read(t.Context(), ledger.Shard{Product: id + 1, Group: id + 1})
		rig.Must(t, err)
		if f.Open {
			open++
		}
	}
	if open != 2 {
		t.Errorf("%d of 3 sales are open, want all but the one in trouble", open)
	}
	rig.Must(t, round(t, r, k))
	for id := range uint32(3) {
		live(t, r, id+1)
	}
}

func TestCreateRefusesWhatCannotBeServed(t *testing.T) {
	r := rig.New(t)
	good := r.Product(t, 1, 5)
	plain := sale.NewLifecycle(sale.LifecycleOptions{
		Store: r.Store, Catalog: r.Catalog, Logger: slog.New(slog.DiscardHandler), Strategies: []seckill.Strategy{seckill.StrategyAsync},
	})
	for name, change := range map[string]func(*seckill.Product){
		"a strategy without parts": func(p *seckill.Product) { p.Strategy = seckill.StrategyDirect },
		"a fallback to the store":  rig.FallBack,
		"no name":                  func(p *seckill.Product) { p.Name = "" },
	} {
		p := good
		p.ID, p.Group = 2, 2
		change(&p)
		_, err := plain.Create(t.Context(), p, rig.Operator)
		if seckill.CodeOf(err) != seckill.CodeBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}
