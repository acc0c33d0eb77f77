package sale_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

// round refreshes the catalogue and clock, as their loops do, and makes one
// round of a keeper.
func round(t *testing.T, r *rig.Rig, k *sale.Keeper) error {
	t.Helper()
	rig.Must(t, r.Clock.Sync(t.Context()))
	rig.Must(t, r.Catalog.Refresh(t.Context()))
	return k.Round(t.Context())
}

func keeper(r *rig.Rig) *sale.Keeper {
	return sale.NewKeeper(r.Lifecycle, 10*time.Minute, func(uint32) {}, recoverWith(r.Lifecycle))
}

// recoverWith recovers at once what a keeper found lost; in a server that is
// done aside from its rounds, which show how it went.
func recoverWith(lifecycle *sale.Lifecycle) func(uint32) {
	return func(product uint32) { _, _ = lifecycle.RecoverIfLost(context.Background(), product) }
}

// live checks that the ledger is open at the store's epoch, and returns the
// product.
func live(t *testing.T, r *rig.Rig, id uint32) seckill.Product {
	t.Helper()
	p := r.Stored(t, id)
	if f := r.Figures(t, p); f.Epoch != p.Epoch || !f.Open || p.Rebuilding || f.State != p.State {
		t.Fatalf("the ledger is %+v, the product %+v", f, p)
	}
	return p
}

func TestPreheatIsSafeToRepeat(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 7)
	if f := r.Figures(t, p); f.Available != 7 || f.Limit != 1 || p.Epoch != 1 {
		t.Fatalf("figures are %+v at epoch %d", f, p.Epoch)
	}
	r.Buy(t, p, "a")
	again, err := r.Lifecycle.Preheat(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if again.Epoch != p.Epoch || r.Figures(t, p).Marked != 1 {
		t.Errorf("a second preheat changed the epoch to %d, figures %+v", again.Epoch, r.Figures(t, p))
	}
}

func TestPreheatRefusesWhatItCannotDo(t *testing.T) {
	r := rig.New(t)
	_, err := r.Lifecycle.Preheat(t.Context(), 9, rig.Operator)
	rig.Refused(t, err, seckill.CodeNotFound)
	r.Product(t, 1, 5)
	_, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Refused(t, err, seckill.CodeWrongState) // never preheated
	_, err = r.Lifecycle.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	_, err = r.Lifecycle.Preheat(t.Context(), 1, rig.Operator)
	rig.Refused(t, err, seckill.CodeWrongState)
}

func TestTheKeeperPreheatsLeadBeforeTheStart(t *testing.T) {
	r := rig.New(t)
	r.Product(t, 1, 5, func(p *seckill.Product) { p.StartsAt = r.Time.Now().Add(11 * time.Minute) })
	k := keeper(r)
	rig.Must(t, round(t, r, k))
	if p := r.Stored(t, 1); p.Epoch != 0 {
		t.Fatalf("preheated too early, at epoch %d", p.Epoch)
	}
	r.Time.Advance(90 * time.Second)
	rig.Must(t, round(t, r, k))
	rig.Must(t, round(t, r, k))
	if p := live(t, r, 1); p.Epoch != 1 {
		t.Errorf("epoch is %d after two rounds, want 1", p.Epoch)
	}
}

func TestTheKeeperAnnouncesStartAndEndOnce(t *testing.T) {
	r := rig.New(t)
	r.Product(t, 1, 5)
	ended := 0
	k := sale.NewKeeper(r.Lifecycle, time.Minute, func(uint32) { ended++ }, recoverWith(r.Lifecycle))
	for range 3 {
		rig.Must(t, round(t, r, k))
	}
	r.Time.Advance(2 * time.Hour)
	for range 3 {
		rig.Must(t, round(t, r, k))
	}
	events, err := r.Store.Events(t.Context(), 0, 100)
	rig.Must(t, err)
	var kinds []seckill.EventKind
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	if fmt.Sprint(kinds) != "[sale.created sale.started sale.ended]" || ended != 1 {
		t.Errorf("events are %v, onEnded was called %d times", kinds, ended)
	}
	// Another instance, or the next process, has batchers of its own to stop.
	other := 0
	k = sale.NewKeeper(r.Lifecycle, time.Minute, func(uint32) { other++ }, recoverWith(r.Lifecycle))
	for range 3 {
		rig.Must(t, round(t, r, k))
	}
	if other != 1 {
		t.Errorf("another keeper was told %d times", other)
	}
}

// sold sells 3 of 5 units: one paid, one pending, one cancelled and released
// nowhere yet, one more still queued.
func sold(t *testing.T, r *rig.Rig, p seckill.Product) (queued seckill.OrderNo) {
	t.Helper()
	claim := r.Claim(p.ID, "keyed")
	claim.Key = "k1"
	r.Reserve(t, p, claim)
	nos := r.Buy(t, p, "pending", "cancelled")
	r.ConfirmAll(t)
	_, err := r.Store.Cancel(t.Context(), nos[1], "test", rig.Operator)
	rig.Must(t, err)
	return r.Buy(t, p, "queued")[0]
}

func TestRecoverKeepsMarksKeysLimitsAndState(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	sold(t, r, p)
	r.ConfirmAll(t)
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
	rig.Must(t, err)
	p, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	live(t, r, 1)
	f := r.Figures(t, p)
	if p.Epoch != 2 || f.Marked != 3 || f.Available != 2 || f.State != seckill.SalePaused || f.Limit != 1 {
		t.Fatalf("after the recovery: epoch %d, %+v", p.Epoch, f)
	}
	_, err = r.Lifecycle.SetState(t.Context(), 1, seckill.SaleOpen, rig.Operator)
	rig.Must(t, err)

	keyed := r.Claim(1, "keyed")
	keyed.Key = "k1"
	verdicts := r.Reserve(t, p, r.Claim(1, "pending"), keyed, r.Claim(1, "cancelled"))
	for i, want := range []ledger.VerdictCode{ledger.VerdictOverLimit, ledger.VerdictRepeated, ledger.VerdictAccepted} {
		if verdicts[i].Code != want {
			t.Errorf("claim %d was answered %d, want %d", i, verdicts[i].Code, want)
		}
	}
}

// The journal is replaced by an empty one while the store knows better.
func TestALostJournalIsRecoveredByTheKeeperAndNothingIsOversold(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	sold(t, r, p) // the queued one is lost with the journal
	r.LoseJournal(t)
	k := keeper(r)
	rig.Must(t, round(t, r, k))
	p = live(t, r, 1)
	if f := r.Figures(t, p); f.Marked != 2 || f.Available != 3 {
		t.Fatalf("after the recovery: %+v", f)
	}
	for i, verdict := range r.Reserve(t, p, r.Claim(1, "keyed"), r.Claim(1, "pending")) {
		if verdict.Code != ledger.VerdictOverLimit {
			t.Errorf("buyer %d bought beyond the limit: %d", i, verdict.Code)
		}
	}
	r.Buy(t, p, "x", "y", "z")
	if v := r.Reserve(t, p, r.Claim(1, "one too many")); v[0].Code != ledger.VerdictSoldOut {
		t.Errorf("oversold: %d", v[0].Code)
	}
	r.ConfirmAll(t)
	storetest.CheckPromises(t, r.Store, 1)
	rig.Must(t, round(t, r, k))
	if again := r.Stored(t, 1); again.Epoch != p.Epoch {
		t.Errorf("a live ledger was recovered again")
	}
}

// Whoever raised it by hand, the ledger promises what the store then refuses.
func TestALimitThatIsNotTheProductsIsMendedByTheKeeper(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5, rig.Limit(2))
	r.Buy(t, p, "a")
	r.ConfirmAll(t)
	k := keeper(r)
	r.Ledger.Lie(func(f *ledger.Figures) {
		if f.Epoch == p.Epoch {
			f.Limit = 5
		}
	})
	for range 2 {
		rig.Must(t, round(t, r, k))
	}
	mended := live(t, r, 1)
	if f := r.Figures(t, mended); mended.Epoch != p.Epoch+1 || f.Limit != 2 || f.Marked != 1 {
		t.Errorf("epoch %d, figures %+v", mended.Epoch, f)
	}
}

// A store that was set back knows a lower epoch than the ledger, which must
// not sell from what another past has left there.
func TestAStoreBehindItsLedgerGoesAboveIt(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	for range 2 {
		var err error
		p, err = r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
	}
	r.Buy(t, p, "a", "b", "c")
	r.ConfirmAll(t)
	r.Exec(t, `DELETE FROM tb_seckill_order`)
	r.Exec(t, `UPDATE tb_seckill_product SET epoch = 1 WHERE id = 1`)
	rig.Must(t, r.Catalog.Refresh(t.Context()))
	rig.Must(t, round(t, r, keeper(r)))
	if p := live(t, r, 1); p.Epoch != 4 || r.Figures(t, p).Marked != 0 {
		t.Errorf("epoch %d, figures %+v", p.Epoch, r.Figures(t, p))
	}
}

// A ledger that is far above its store is gone above in one step.
func TestAnEpochFarAboveTheStoresCostsOneEpoch(t *testing.T) {
	const far = 4_000_000
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	r.Buy(t, p, "a")
	r.ConfirmAll(t)
	opened := r.Store.Calls("OpenEpoch")
	r.Ledger.Lie(func(f *ledger.Figures) {
		if f.Epoch == p.Epoch {
			f.Epoch = far
		}
	})
	rig.Must(t, round(t, r, keeper(r)))
	if n := r.Store.Calls("OpenEpoch") - opened; n != 1 {
		t.Errorf("%d epochs were opened", n)
	}
	if p := live(t, r, 1); p.Epoch != far+1 || r.Figures(t, p).Marked != 1 {
		t.Errorf("epoch %d, figures %+v", p.Epoch, r.Figures(t, p))
	}
}

// overtakenLedger has a higher epoch than the one that is installed.
type overtakenLedger struct{ *rig.Ledger }

func (l overtakenLedger) Install(_ context.Context, a ledger.Allotment, _ iter.Seq2[ledger.Mark, error]) (uint64, error) {
	return a.Shard.Epoch + 7, nil
}

func TestARebuildThatWasOvertakenSaysSo(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	lifecycle := sale.NewLifecycle(sale.LifecycleOptions{
		Store: r.Store, Ledger: overtakenLedger{r.Ledger}, Queue: r.Queue, Catalog: r.Catalog, Clock: r.Clock, Lanes: r.Lanes,
		Logger: slog.New(slog.DiscardHandler),
	})
	_, err := lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Refused(t, err, seckill.CodeBusy)
	if want := fmt.Sprintf("it has epoch %d", p.Epoch+8); !strings.Contains(err.Error(), want) {
		t.Errorf("%v, without %q", err, want)
	}
	if now := r.Stored(t, 1); !now.Rebuilding {
		t.Error("the product is not due for the next try")
	}
}

// From the opening on units are sold, confirmed and perhaps lost again. A request
// for that, made while the rebuild ends, is not the rebuild's to take back.
func TestRecover_KeepsARequestOfAfterTheRebuild(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	open, opened := r.Ledger.Block("Open"), r.Ledger.Calls("Open")
	defer open()
	rebuilt := make(chan error, 1)
	go func() {
		_, err := r.Lifecycle.Recover(context.Background(), 1, rig.Operator)
		rebuilt <- err
	}()
	rig.Until(t, "the ledger is about to open", func() bool { return r.Ledger.Calls("Open") > opened })
	rig.Must(t, r.Store.BeginRebuild(t.Context(), 1, p.Epoch+1))
	open()
	rig.Must(t, <-rebuilt)
	if now := r.Stored(t, 1); now.Epoch != p.Epoch+1 || !now.Rebuilding {
		t.Errorf("the product has epoch %d, rebuilding %v", now.Epoch, now.Rebuilding)
	}
	rig.Must(t, round(t, r, keeper(r)))
	if now := live(t, r, 1); now.Epoch != p.Epoch+2 {
		t.Errorf("the product that is due was rebuilt to epoch %d", now.Epoch)
	}
}

// A rebuild that dies between any two of its steps is healed by the next round
// of a keeper, under a new epoch.
func TestARebuildThatDiesIsHealedByTheNextRound(t *testing.T) {
	steps := map[string]func(r *rig.Rig){
		"before the epoch":           func(r *rig.Rig) { r.Store.FailBefore("OpenEpoch", 1) },
		"after the epoch":            func(r *rig.Rig) { r.Store.FailAfter("OpenEpoch", 1) },
		"before the install":         func(r *rig.Rig) { r.Ledger.FailBefore("Install", 1) },
		"after the install":          func(r *rig.Rig) { r.Ledger.FailAfter("Install", 1) },
		"before the open":            func(r *rig.Rig) { r.Ledger.FailBefore("Open", 1) },
		"after the open":             func(r *rig.Rig) { r.Ledger.FailAfter("Open", 1) },
		"before the end":             func(r *rig.Rig) { r.Store.FailBefore("EndRebuild", 1) },
		"after the first request":    func(r *rig.Rig) { r.Store.FailAfter("BeginRebuild", 1) },
		"before the state was read":  func(r *rig.Rig) { r.Store.FailBefore("Product", 1) },
		"while the shard was closed": func(r *rig.Rig) { r.Ledger.FailBefore("Close", 1) },
	}
	for name, fail := range steps {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			p := r.Open(t, 1, 5)
			r.Buy(t, p, "a")
			r.ConfirmAll(t)
			fail(r)
			_, first := r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
			r.Store.Heal()
			r.Ledger.Heal()
			r.Restart(t)
			k := keeper(r)
			rig.Must(t, round(t, r, k))
			rig.Must(t, round(t, r, k))
			p = live(t, r, 1)
			if first != nil && p.Epoch == 1 && r.Figures(t, p).Marked != 1 {
				t.Errorf("after %v the product is at %d", first, p.Epoch)
			}
			if f := r.Figures(t, p); f.Marked != 1 || f.Available != 4 {
				t.Errorf("figures are %+v", f)
			}
			if v := r.Reserve(t, p, r.Claim(1, "a")); v[0].Code != ledger.VerdictOverLimit {
				t.Errorf("the mark is lost: %d", v[0].Code)
			}
		})
	}
}

func TestTheFirstPreheatThatDiesIsHealedToo(t *testing.T) {
	r := rig.New(t)
	r.Product(t, 1, 5)
	r.Ledger.FailBefore("Install", 1)
	_, err := r.Lifecycle.Preheat(t.Context(), 1, rig.Operator)
	rig.Refused(t, err, seckill.CodeBusy)
	if p := r.Stored(t, 1); p.Epoch != 1 || !p.Rebuilding {
		t.Fatalf("the product is %+v", p)
	}
	rig.Must(t, round(t, r, keeper(r)))
	if f := r.Figures(t, live(t, r, 1)); f.Available != 5 {
		t.Errorf("figures are %+v", f)
	}
}

// Two instances recover the same product at once, again and again, while
// buyers come: one of them wins each time, and the units add up.
func TestTwoRecoverersAtOnceAreHarmless(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 100)
	other := sale.NewLifecycle(sale.LifecycleOptions{
		Store: r.Store, Ledger: r.Ledger, Queue: r.Queue, Catalog: r.Catalog, Clock: r.Clock, Lanes: r.Lanes,
		Logger: slog.New(slog.DiscardHandler),
	})
	for i := range 5 {
		r.Buy(t, p, fmt.Sprintf("b-%d", i))
		r.ConfirmAll(t)
		var both sync.WaitGroup
		var won [2]error
		for k, lifecycle := range []*sale.Lifecycle{r.Lifecycle, other} {
			both.Go(func() { _, won[k] = lifecycle.Recover(t.Context(), 1, rig.Operator) })
		}
		both.Wait()
		if won[0] != nil && won[1] != nil {
			t.Fatalf("nobody recovered: %v, %v", won[0], won[1])
		}
		if p = r.Stored(t, 1); p.Rebuilding || !r.Figures(t, p).Open {
			rig.Must(t, round(t, r, keeper(r)))
		}
		p = live(t, r, 1)
		if f := r.Figures(t, p); f.Marked != int64(i+1) || f.Available+f.Marked != 100 {
			t.Fatalf("figures are %+v after %d orders", f, i+1)
		}
	}
}

// pausingLedger lets another instance pause the sale between a rebuild's snapshot
// and its install.
type pausingLedger struct {
	*rig.Ledger
	pause func()
}

func (l *pausingLedger) Install(ctx context.Context, a ledger.Allotment, marks iter.Seq2[ledger.Mark, error]) (uint64, error) {
	l.pause()
	return l.Ledger.Install(ctx, a, marks)
}

func TestAPauseDuringARebuildHoldsInTheNewEpoch(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	hooked := &pausingLedger{Ledger: r.Ledger}
	rebuilder := sale.NewLifecycle(sale.LifecycleOptions{
		Store: r.Store, Ledger: hooked, Queue: r.Queue, Catalog: r.Catalog, Clock: r.Clock, Lanes: r.Lanes,
		Logger: slog.New(slog.DiscardHandler),
	})
	hooked.pause = func() { // the operator is at another instance, and hears no error
		_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SalePaused, rig.Operator)
		rig.Must(t, err)
	}
	p, err := rebuilder.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	if v := r.Reserve(t, p, r.Claim(1, "a")); v[0].Code != ledger.VerdictPaused {
		t.Errorf("a paused sale answered %d", v[0].Code)
	}
}

func TestRecover_EndsWithItsContext(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	open := r.Ledger.Block("Close")
	defer open()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := r.Lifecycle.Recover(ctx, 1, rig.Operator)
		ended <- err
	}()
	rig.Until(t, "the recovery closes the shards", func() bool { return r.Stored(t, 1).Rebuilding })
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("recovered within a context that had ended")
	}
	if p := r.Stored(t, 1); p.Epoch != 1 || !p.Rebuilding {
		t.Errorf("the product is %+v", p)
	}
}

func TestLifecycle_WaitsForAnotherChangeOnlyAsLongAsItsCaller(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	open := r.Ledger.Block("Install")
	var first sync.WaitGroup
	first.Go(func() { _, _ = r.Lifecycle.Recover(t.Context(), 1, rig.Operator) })
	rig.Until(t, "the recovery installs", func() bool { return r.Ledger.Calls("Install") == 2 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := r.Lifecycle.Patch(ctx, 1, store.ProductPatch{}, rig.Operator)
	rig.Refused(t, err, seckill.CodeBusy)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the cause is lost: %v", err)
	}
	open()
	first.Wait()
}

// While a sale may have promised something, other instances are given time to
// write it. Nobody waits for them before it, after it, or without them.
func TestOthersAreWaitedForOnlyWhileTheyMayHavePromised(t *testing.T) {
	for name, story := range map[string]struct {
		others, waits bool
		change        func(*seckill.Product)
	}{
		"alone":       {false, false, func(*seckill.Product) {}},
		"on sale":     {true, true, func(*seckill.Product) {}},
		"not begun":   {true, false, func(p *seckill.Product) { p.StartsAt = p.EndsAt.Add(-time.Minute) }},
		"all is over": {true, false, func(p *seckill.Product) { p.EndsAt = p.StartsAt.Add(time.Second) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t)
			r.Open(t, 1, 5, story.change)
			lifecycle := sale.NewLifecycle(sale.LifecycleOptions{
				Store: r.Store, Ledger: r.Ledger, Queue: r.Queue, Catalog: r.Catalog, Clock: r.Clock, Lanes: r.Lanes, Mover: r.Mover, Logger: quiet,
				Strategies: []seckill.Strategy{seckill.StrategyAsync}, Others: story.others,
			})
			looked, began := r.Store.Calls("Product"), time.Now()
			_, err := lifecycle.Recover(t.Context(), 1, rig.Operator)
			rig.Must(t, err)
			if took := time.Since(began); story.waits && took < time.Second {
				t.Errorf("it took %s", took)
			}
			// Before and after its turn, and before it opens.
			if looks := r.Store.Calls("Product") - looked; !story.waits && looks != 3 {
				t.Errorf("it looked %d times", looks)
			}
		})
	}
}
