package sale_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// mei stops sales.
var mei = store.Actor{Name: "mei", Reason: "wrong price"}

// storeAway has the store fail, and the catalogues notice.
func storeAway(t *testing.T, r *rig.Rig, catalogs ...*sale.Catalog) {
	t.Helper()
	r.Store.FailBefore(storetest.AnyMethod, storetest.Always)
	for _, c := range catalogs {
		if err := c.Refresh(t.Context()); err == nil {
			t.Fatal("the store is not away")
		}
	}
}

// elsewhere is the lifecycle at another instance, which has read the store once.
func elsewhere(t *testing.T, r *rig.Rig) (*sale.Lifecycle, *sale.Catalog) {
	t.Helper()
	c := sale.NewCatalog(r.Store)
	rig.Must(t, c.Refresh(t.Context()))
	return sale.NewLifecycle(sale.LifecycleOptions{
		Store: r.Store, Ledger: r.Ledger, Queue: r.Queue, Catalog: c, Clock: r.Clock, Lanes: r.Lanes, Logger: quiet,
		Strategies: []seckill.Strategy{seckill.StrategyAsync}, Apart: true,
	}), c
}

// stop has the ledger alone stop a sale.
func stop(t *testing.T, d *sale.Lifecycle, product uint32, state seckill.SaleState) {
	t.Helper()
	p, err := d.SetState(t.Context(), product, state, mei)
	rig.Must(t, err)
	if p.State != state || !p.Instructed {
		t.Fatalf("the answer is state %s, instructed %v", p.State, p.Instructed)
	}
}

// lines are the audit lines of a product with an action.
func lines(t *testing.T, r *rig.Rig, product uint32, action string) (found []store.AuditLine) {
	t.Helper()
	all, err := r.Store.Audit(t.Context(), store.AuditFilter{ProductID: product, Limit: 100})
	rig.Must(t, err)
	for _, line := range all {
		if line.Action == action {
			found = append(found, line)
		}
	}
	return found
}

// wantState wants store, ledger and catalogue to agree, and nothing to wait.
func wantState(t *testing.T, r *rig.Rig, product uint32, state seckill.SaleState) {
	t.Helper()
	p := r.Stored(t, product)
	terms := r.Catalog.Find(product).Terms()
	if p.State != state || terms.State != state || terms.Instructed || r.Lifecycle.InstructionsWaiting() != 0 {
		t.Errorf("the store has %s, the terms %s (instructed %v), %d wait, want %s", p.State, terms.State, terms.Instructed, r.Lifecycle.InstructionsWaiting(), state)
	}
	for i := range p.LedgerShards() {
		f, err := r.Embedded.Read(t.Context(), ledger.ShardOf(&p, i))
		rig.Must(t, err)
		if f.State != state || f.Instruction.ID != "" || !f.Open {
			t.Errorf("shard %d has %s, open %v, and instruction %+v", i, f.State, f.Open, f.Instruction)
		}
	}
}

func TestSetState_LedgerStopsTheSaleWhileTheStoreIsAway(t *testing.T) {
	for name, shape := range map[string]func(*seckill.Product){"one shard": rig.Limit(1), "four shards": rig.Shards(4)} {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			p := r.Open(t, 1, 40, shape)
			r.Buy(t, p, "ann")
			other, seen := elsewhere(t, r)
			storeAway(t, r, r.Catalog, seen)
			stop(t, r.Lifecycle, 1, seckill.SalePaused)
			stop(t, r.Lifecycle, 1, seckill.SalePaused) // said again
			for _, buyer := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				if v := r.Reserve(t, p, r.Claim(1, buyer)); v[0].Code != ledger.VerdictPaused {
					t.Errorf("%s was answered %d", buyer, v[0].Code)
				}
			}
			rig.Must(t, other.FindInstructions(t.Context()))
			if now := seen.Find(1).Terms(); now.State != seckill.SalePaused || !now.Instructed {
				t.Errorf("another instance sees %s", now.State)
			}
			if err := r.Lifecycle.CarryInstructions(t.Context()); err == nil {
				t.Error("it was carried to a store that is away")
			}
			_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SaleOpen, mei)
			rig.Refused(t, err, seckill.CodeBusy)

			r.Store.Heal()
			rig.Must(t, other.CarryInstructions(t.Context()))
			rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
			wantState(t, r, 1, seckill.SalePaused)
			audit := lines(t, r, 1, "product.pause")
			if len(audit) != 1 || audit[0].Actor != "mei" || audit[0].Reason != "wrong price" || !strings.Contains(audit[0].Detail, "given 20") {
				t.Errorf("the audit has %+v", audit)
			}
			_, err = other.SetState(t.Context(), 1, seckill.SaleOpen, mei)
			rig.Must(t, err)
			rig.Must(t, r.Catalog.Refresh(t.Context()))
			wantState(t, r, 1, seckill.SaleOpen)
			r.Buy(t, p, "bob")
			storetest.CheckPromises(t, r.Store, 1)
		})
	}
}

// The ledger may have stopped the sale and lost its answer: the error must not say
// that nothing happened.
func TestSetState_UnknownWhileNeitherStoreNorLedgerAnswers(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	storeAway(t, r, r.Catalog)
	r.Ledger.FailAfter("Instruct", 1)
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, mei)
	rig.Refused(t, err, seckill.CodeBusy)
	for _, says := range []string{"unknown", "the sale may be stopped: send it again"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
	if v := r.Reserve(t, p, r.Claim(1, "late")); v[0].Code != ledger.VerdictPaused {
		t.Errorf("answered %d: the ledger was told", v[0].Code)
	}
	stop(t, r.Lifecycle, 1, seckill.SalePaused) // sent again
	r.Store.Heal()
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	wantState(t, r, 1, seckill.SalePaused)
}

// A keeper that has read the store before the outage must not undo it, nor a
// rebuild that has.
func TestSetState_OldNewsFromTheStoreDoNotReopen(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	r.Store.FailBefore("SetState", storetest.Always) // by this way alone it is away
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	_, _ = r.Ledger.SetState(t.Context(), ledger.ShardOf(&p, 0), seckill.SaleOpen, p.Version+10)
	other, _ := elsewhere(t, r)
	rig.Must(t, sale.NewKeeper(other, time.Hour, func(uint32) {}, func(uint32) {}).Round(t.Context()))
	if v := r.Reserve(t, p, r.Claim(1, "late")); v[0].Code != ledger.VerdictPaused {
		t.Errorf("answered %d after old news", v[0].Code)
	}
	if other.InstructionsWaiting() != 1 {
		t.Error("the keeper has not found the instruction")
	}
	_, built := other.Recover(t.Context(), 1, rig.Operator)
	if built == nil {
		t.Error("a sale was opened, and its instruction not written")
	}
	r.Store.Heal()
	rebuilt, err := other.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if v := r.Reserve(t, rebuilt, r.Claim(1, "later")); v[0].Code != ledger.VerdictPaused {
		t.Errorf("answered %d after a rebuild", v[0].Code)
	}
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	wantState(t, r, 1, seckill.SalePaused)
}

// The ledger hears the store's state before it forgets the instruction: in between
// older news would be obeyed.
func TestCarryInstructions_OldNewsFindNoGap(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	storeAway(t, r, r.Catalog)
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	r.Store.Heal()
	for _, method := range []string{"SetState", "Settle"} {
		r.Ledger.Before(method, func() {
			_, _ = r.Embedded.SetState(t.Context(), ledger.ShardOf(&p, 0), seckill.SaleOpen, p.Version)
			if f := r.Figures(t, p); f.State != seckill.SalePaused {
				t.Errorf("before %s the sale is %s", method, f.State)
			}
		})
	}
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	_, _ = r.Embedded.SetState(t.Context(), ledger.ShardOf(&p, 0), seckill.SaleOpen, p.Version)
	wantState(t, r, 1, seckill.SalePaused)
}

// A keeper's news of before a rebuild reach the shard between its install and its
// opening. The state in the store is the one of the snapshot.
func TestRecover_OldNewsFindNoGap(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, mei)
	rig.Must(t, err)
	p.Epoch++
	r.Ledger.Before("Open", func() {
		_, _ = r.Embedded.SetState(t.Context(), ledger.ShardOf(&p, 0), seckill.SaleOpen, p.Version)
	})
	_, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	wantState(t, r, 1, seckill.SalePaused)
}

// The ledger loses the instruction with everything else. The instance that took it
// still knows.
func TestSetState_InstructionOutlivesTheLedger(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	storeAway(t, r, r.Catalog)
	stop(t, r.Lifecycle, 1, seckill.SaleEnded)
	r.LoseJournal(t)
	r.Store.Heal()
	recovered, err := r.Lifecycle.RecoverIfLost(t.Context(), 1)
	rig.Must(t, err)
	if !recovered {
		t.Fatal("nothing was lost")
	}
	wantState(t, r, 1, seckill.SaleEnded)
	if len(lines(t, r, 1, "product.end")) != 1 {
		t.Error("the audit does not say who ended it")
	}
}

// Everybody who took the instruction is gone. The ledger still has it, and an
// instance that starts when the store is back obeys before it has written it.
func TestFindInstructions_AStartKnowsWhatTheLedgerKept(t *testing.T) {
	for _, strategy := range []seckill.Strategy{seckill.StrategyAsync, seckill.StrategyDirect} {
		t.Run(string(strategy), func(t *testing.T) {
			r := rig.New(t)
			r.Open(t, 1, 5, rig.Strategy(strategy))
			storeAway(t, r, r.Catalog)
			stop(t, r.Lifecycle, 1, seckill.SalePaused)
			r.Store.Heal()
			r.Catalog = sale.NewCatalog(r.Store)
			r.Restart(t)
			rig.Must(t, r.Catalog.Refresh(t.Context()))
			rig.Must(t, r.Lifecycle.FindInstructions(t.Context()))
			rig.Must(t, r.Catalog.Refresh(t.Context())) // the store has it open
			if now := r.Catalog.Find(1).Terms(); now.Window(r.Clock.Now()) != seckill.CodePaused {
				t.Errorf("its door says %q", now.Window(r.Clock.Now()))
			}
			s, err := r.Lifecycle.Stats(t.Context(), 1)
			rig.Must(t, err)
			if s.State != "paused" || s.Status != seckill.StatusPaused {
				t.Errorf("its stats say %s, %s", s.State, s.Status)
			}
			rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
			wantState(t, r, 1, seckill.SalePaused)
			rig.Must(t, r.Catalog.Refresh(t.Context()))
			_, err = r.Lifecycle.SetState(t.Context(), 1, seckill.SaleOpen, mei)
			rig.Must(t, err)
			wantState(t, r, 1, seckill.SaleOpen)
		})
	}
}

// Nothing that is carried late undoes what an operator said afterwards.
func TestSetState_WhatIsCarriedLateUndoesNoLaterWord(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	other, seen := elsewhere(t, r)
	storeAway(t, r, r.Catalog, seen)
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	rig.Must(t, other.FindInstructions(t.Context())) // it knows, and is late
	r.Store.Heal()
	third, _ := elsewhere(t, r) // it does not know yet, and must look first
	_, err := third.SetState(t.Context(), 1, seckill.SaleOpen, mei)
	rig.Must(t, err)
	rig.Must(t, other.CarryInstructions(t.Context()))
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	wantState(t, r, 1, seckill.SaleOpen)
	if paused, resumed := len(lines(t, r, 1, "product.pause")), len(lines(t, r, 1, "product.resume")); paused != 1 || resumed != 1 {
		t.Errorf("the audit has %d pauses and %d resumes", paused, resumed)
	}

	storeAway(t, r, r.Catalog, seen)
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	stop(t, r.Lifecycle, 1, seckill.SaleEnded)
	_, err = r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, mei)
	rig.Refused(t, err, seckill.CodeWrongState)
	r.Store.Heal()
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	wantState(t, r, 1, seckill.SaleEnded)
}

// A pause that the store took, and whose answer was lost, is one pause.
func TestSetState_LostAnswerOfTheStoreIsOnePause(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	r.Store.FailAfter("SetState", 1)
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	wantState(t, r, 1, seckill.SalePaused)
	if got := lines(t, r, 1, "product.pause"); len(got) != 1 {
		t.Errorf("the audit has %+v", got)
	}
}

// A store that hangs keeps nobody from stopping a sale, nor does a rebuild that
// waits for it. If the ledger is away too, the answer is busy and nothing is left.
func TestSetState_AnswersInTime(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	gate := r.Store.Block("SetState")
	began := time.Now()
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("answered after %s", took)
	}
	gate.Open()
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SaleOpen, mei)
	rig.Must(t, err)

	storeAway(t, r, r.Catalog)
	r.Ledger.FailBefore("Instruct", 1)
	_, err = r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, mei)
	rig.Refused(t, err, seckill.CodeBusy)
	r.Store.Heal()
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	wantState(t, r, 1, seckill.SaleOpen)
	r.Buy(t, p, "ann")
}

// A sale that the store has taken over is paused when both are back.
func TestSetState_ReachesASaleThatWasTakenOver(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5, rig.FallBack)
	r.TakeOver(t, 1)
	storeAway(t, r, r.Catalog)
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	r.Store.Heal()
	r.Ledger.FailBefore("Settle", 1) // the ledger is away again
	if err := r.Lifecycle.CarryInstructions(t.Context()); err == nil {
		t.Fatal("the fault did not strike")
	}
	wantState(t, r, 1, seckill.SalePaused)
	r.Ledger.FailBefore("Read", storetest.Always)
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SaleOpen, mei) // the store sells without the ledger
	rig.Must(t, err)
	r.Ledger.Heal()
	p, err := r.Lifecycle.Recover(t.Context(), 1, rig.Operator) // the ledger still keeps it
	rig.Must(t, err)
	rig.Until(t, "it sells again", func() bool {
		rig.Must(t, round(t, r, keeper(r)))
		rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
		return r.Reserve(t, p, r.Claim(1, "ann"))[0].Code == ledger.VerdictAccepted
	})
	wantState(t, r, 1, seckill.SaleOpen)
}

// An instance that is cut off from the store remembers a pause that another one has
// carried, and that was resumed since. To pause again is a new instruction.
func TestSetState_SecondPauseOfAnInstanceThatWasCutOffStands(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 10)
	other, seen := elsewhere(t, r)
	storeAway(t, r, r.Catalog)
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	r.Store.Heal() // for the other one
	rig.Must(t, seen.Refresh(t.Context()))
	rig.Must(t, other.CarryInstructions(t.Context()))
	_, err := other.SetState(t.Context(), 1, seckill.SaleOpen, mei)
	rig.Must(t, err)
	r.Buy(t, p, "ann")

	storeAway(t, r, r.Catalog)
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	stop(t, r.Lifecycle, 1, seckill.SalePaused) // said again: no third one
	r.Store.Heal()
	rig.Must(t, seen.Refresh(t.Context()))
	rig.Must(t, other.FindInstructions(t.Context()))
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	rig.Must(t, other.CarryInstructions(t.Context()))
	rig.Must(t, r.Catalog.Refresh(t.Context()))
	wantState(t, r, 1, seckill.SalePaused)
	if got := lines(t, r, 1, "product.pause"); len(got) != 2 {
		t.Errorf("the audit has %+v", got)
	}
}

// An operator pauses at an instance that does not know yet of the end in the ledger.
func TestSetState_PauseOfASaleThatTheLedgerEndedIsRefused(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	other, seen := elsewhere(t, r)
	storeAway(t, r, r.Catalog, seen)
	stop(t, r.Lifecycle, 1, seckill.SaleEnded)
	_, err := other.SetState(t.Context(), 1, seckill.SalePaused, mei)
	rig.Refused(t, err, seckill.CodeWrongState)
	if now := seen.Find(1).Terms(); now.State != seckill.SaleEnded || other.InstructionsWaiting() != 1 {
		t.Errorf("the other instance has it %s, and %d wait", now.State, other.InstructionsWaiting())
	}
	r.Store.Heal()
	rig.Must(t, other.CarryInstructions(t.Context()))
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	wantState(t, r, 1, seckill.SaleEnded)
}

// The one look that news of a change causes fails. Only that look finds an
// instruction on a direct product while the store answers: the keeper reads no
// ledger of it.
func TestFindInstructions_LooksAgainAfterAFailedLook(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 10, rig.Strategy(seckill.StrategyDirect))
	other, seen := elsewhere(t, r)
	rig.Must(t, other.FindInstructions(t.Context())) // the search of the start
	storeAway(t, r, r.Catalog)
	stop(t, r.Lifecycle, 1, seckill.SalePaused)
	r.Store.Heal() // for the other one
	rig.Must(t, seen.Refresh(t.Context()))
	seen.Suspect(1)
	r.Ledger.FailBefore("Read", 1)
	rig.Refused(t, other.FindInstructions(t.Context()), seckill.CodeBusy)
	rig.Must(t, other.FindInstructions(t.Context()))
	if got := seen.Find(1).Terms().State; got != seckill.SalePaused {
		t.Errorf("the other instance has it %s", got)
	}
	rig.Must(t, other.CarryInstructions(t.Context()))
	rig.Must(t, r.Lifecycle.CarryInstructions(t.Context()))
	wantState(t, r, 1, seckill.SalePaused)
}

// Everybody who knew is gone, and the store is back when the sale would be over.
// The audit must say who ended it.
func TestFindInstructions_LooksAtASaleThatIsOverForADay(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	storeAway(t, r, r.Catalog)
	stop(t, r.Lifecycle, 1, seckill.SaleEnded)
	r.Store.Heal()
	for _, step := range []struct {
		after time.Duration
		lines int
	}{{25 * time.Hour, 0}, {23 * time.Hour, 1}} {
		r.Clock = sale.NewClock(func(context.Context) (time.Time, error) { return p.EndsAt.Add(step.after), nil }, quiet)
		rig.Must(t, r.Clock.Sync(t.Context()))
		started, _ := elsewhere(t, r)
		rig.Must(t, started.CarryInstructions(t.Context()))
		if got := lines(t, r, 1, "product.end"); len(got) != step.lines {
			t.Errorf("%s after the end the audit has %+v", step.after, got)
		}
	}
}
