package sale_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/test/rig"
)

// A rebuild may take minutes: rounds go on beside it, and ask for it again until
// it is done.
func TestARebuildHoldsUpNoRound(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	rig.Must(t, r.Ledger.Close(t.Context(), ledger.ShardOf(&p, 0)))
	unblock := r.Ledger.Block("Install")
	var rebuilding sync.WaitGroup
	var once sync.Once
	asked := 0
	k := sale.NewKeeper(r.Lifecycle, time.Minute, func(uint32) {}, func(product uint32) {
		asked++
		once.Do(func() { rebuilding.Go(func() { recoverWith(r.Lifecycle)(product) }) })
	})
	rig.Must(t, round(t, r, k))
	rig.Until(t, "the rebuild is under way", func() bool { return r.Ledger.Calls("Install") > 1 })
	r.Product(t, 2, 5, rig.Strategy(seckill.StrategyDirect))
	rig.Must(t, round(t, r, k))
	if r.Stored(t, 2).Epoch != 1 {
		t.Error("another product was not opened")
	}
	unblock()
	rebuilding.Wait()
	if live(t, r, 1).Epoch != 2 || asked < 2 {
		t.Errorf("it was asked for %d times", asked)
	}
}

func TestShardsAreBuiltSideBySide(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 100, rig.Shards(16))
	before := r.Ledger.Calls("Install")
	unblock := r.Ledger.Block("Install")
	done := make(chan error, 1)
	go func() {
		_, err := r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
		done <- err
	}()
	rig.Until(t, "eight shards are built at once", func() bool { return r.Ledger.Calls("Install") == before+8 })
	unblock()
	rig.Must(t, <-done)
	if p := r.Stored(t, 1); p.Epoch != 2 || r.Figures(t, p).Available != 100 {
		t.Errorf("epoch %d, %d units free", p.Epoch, r.Figures(t, p).Available)
	}
}

// alerts are those that a lifecycle has raised.
type alerts []error

func (a *alerts) Raise(_ alert.Kind, _ uint32, err error) { *a = append(*a, err) }

// One failure is what a failover in the middle costs; from the second on an
// operator hears of it, and the duty's rounds show it from the first.
func TestARebuildThatFailsAgainIsTold(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	var told alerts
	lifecycle := sale.NewLifecycle(sale.LifecycleOptions{
		Store: r.Store, Ledger: r.Ledger, Queue: r.Queue, Catalog: r.Catalog, Clock: r.Clock, Lanes: r.Lanes, Mover: r.Mover, Logger: quiet,
		Strategies: []seckill.Strategy{seckill.StrategyAsync},
		Alerts:     &told,
	})
	k := sale.NewKeeper(lifecycle, time.Minute, func(uint32) {}, recoverWith(lifecycle))
	r.LoseJournal(t)
	r.Ledger.FailBefore("Install", 3)
	for tries, want := range []int{0, 1, 2} {
		if err := round(t, r, k); !errors.Is(err, rig.ErrLedger) {
			t.Errorf("round %d hides that the product is not recovered: %v", tries, err)
		}
		if len(told) != want {
			t.Errorf("told %d times after %d tries, want %d", len(told), tries+1, want)
		}
	}
	rig.Must(t, round(t, r, k))
	live(t, r, 1)
	r.LoseJournal(t)
	if len(told) != 2 || !slices.ContainsFunc(told, func(err error) bool { return errors.Is(err, rig.ErrLedger) }) {
		t.Errorf("told %v", told)
	}
}

// A master may be away while every product is to be recovered: those on it must
// not take the places of the others for long, nor be closed in vain.
func TestWhatCannotBeReadIsNotDrained(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	rig.Must(t, r.Store.BeginRebuild(t.Context(), 1, p.Epoch))
	r.Ledger.FailBefore("Read", -1)
	_, err := r.Lifecycle.RecoverIfLost(t.Context(), 1)
	rig.Refused(t, err, seckill.CodeBusy)
	if r.Ledger.Calls("Close") != 0 || r.Stored(t, 1).Epoch != p.Epoch {
		t.Error("something was closed, or an epoch spent")
	}
	r.Ledger.Heal()
	if recovered, err := r.Lifecycle.RecoverIfLost(t.Context(), 1); err != nil || !recovered {
		t.Errorf("recovered %t, %v", recovered, err)
	}
	live(t, r, 1)
}

// However long a rebuild takes, nobody else begins one meanwhile.
func TestTheTurnIsKeptForAsLongAsARebuildTakes(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	r.LoseJournal(t)
	unblock := r.Ledger.Block("Install")
	before := r.Ledger.Calls("Install")
	done := make(chan error, 1)
	go func() {
		_, err := newInstance(r, "a").RecoverIfLost(context.Background(), 1)
		done <- err
	}()
	rig.Until(t, "the rebuild is under way", func() bool { return r.Ledger.Calls("Install") > before })
	const most = 3 * time.Second // of the five that a turn lasts; it is renewed after a third
	for range 2 {
		renewed := r.Store.Calls("AcquireLease")
		r.Time.Advance(most)
		rig.Until(t, "the turn is renewed", func() bool { return r.Store.Calls("AcquireLease") > renewed })
	}
	if held, err := r.Store.AcquireLease(t.Context(), "rebuild:1", "b", 5*time.Second); err != nil || held {
		t.Errorf("another has the turn: %t, %v", held, err)
	}
	unblock()
	rig.Must(t, <-done)
}
