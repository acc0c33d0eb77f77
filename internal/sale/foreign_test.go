package sale_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/test/rig"
)

// foreignLedger may be another store's.
type foreignLedger struct {
	*rig.Ledger
	theirs atomic.Bool
}

func (l *foreignLedger) CheckStore(context.Context) error {
	if l.theirs.Load() {
		return fmt.Errorf("%w: for the test", ledger.ErrOtherStore)
	}
	return nil
}

func (l *foreignLedger) Rebind(ctx context.Context, _ ...ledger.Shard) error {
	return l.CheckStore(ctx)
}

func TestOfALedgerOfAnotherStoreNothingIsRebuilt(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5)
	l := &foreignLedger{Ledger: r.Ledger}
	desk := sale.NewDesk(sale.DeskOptions{
		Store: r.Store, Ledger: l, Queue: r.Queue, Catalog: r.Catalog, Clock: r.Clock, Lanes: r.Lanes, Mover: r.Mover, Logger: quiet,
		Strategies: []seckill.Strategy{seckill.StrategyAsync, seckill.StrategyDirect},
	})
	k := sale.NewKeeper(desk, 10*time.Minute, func(uint32) {}, recoverWith(desk))
	r.Product(t, 2, 5)
	r.Product(t, 3, 5, rig.Strategy(seckill.StrategyDirect))
	rig.Must(t, r.Ledger.Close(t.Context(), ledger.ShardOf(&p, 0))) // as if it were lost
	closed, installed := r.Ledger.Calls("Close"), r.Ledger.Calls("Install")

	l.theirs.Store(true)
	for range 3 {
		if err := round(t, r, k); !errors.Is(err, ledger.ErrOtherStore) {
			t.Fatalf("the round ended with %v", err)
		}
	}
	for name, move := range map[string]func() error{
		"recover": func() error { _, err := desk.Recover(t.Context(), 1, rig.Operator); return err },
		"preheat": func() error { _, err := desk.Preheat(t.Context(), 2, rig.Operator); return err },
		"trouble": func() error { _, err := desk.RecoverIfLost(t.Context(), 1); return err },
	} {
		if err := move(); !errors.Is(err, ledger.ErrOtherStore) || !seckill.CodeBusy.In(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := r.Ledger.Calls("Close") + r.Ledger.Calls("Install"); n != closed+installed {
		t.Errorf("%d calls changed the ledger", n-closed-installed)
	}
	if r.Stored(t, 1).Epoch != p.Epoch || r.Stored(t, 2).Epoch != 0 || r.Stored(t, 3).Epoch != 1 {
		t.Errorf("epochs are %d, %d and %d", r.Stored(t, 1).Epoch, r.Stored(t, 2).Epoch, r.Stored(t, 3).Epoch)
	}

	l.theirs.Store(false)
	rig.Must(t, round(t, r, k))
	if live(t, r, 1).Epoch != p.Epoch+1 || live(t, r, 2).Epoch != 1 {
		t.Error("what was left alone is not rebuilt once it is ours again")
	}
}
