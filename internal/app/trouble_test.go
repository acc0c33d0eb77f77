package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/ledger"

	"seckill/internal/queue"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/virtual"
)

func TestACrowdInFrontOfOneProductTakesOnePlace(t *testing.T) {
	troubles := newTroubles()
	for range 2 * troubleMost {
		troubles.raise(trouble{1, ledger.ErrLost})
	}
	troubles.raise(trouble{2, ledger.ErrLost})
	troubles.raise(trouble{1, queue.ErrLost}) // the operator is to hear of it
	troubles.raise(trouble{1, ledger.ErrLost})
	for _, want := range []trouble{{1, queue.ErrLost}, {2, ledger.ErrLost}} {
		if got, ok := troubles.take(); !ok || got.product != want.product || !errors.Is(got.err, want.err) {
			t.Errorf("took %v %t, want %v", got, ok, want)
		}
	}
	if got, ok := troubles.take(); ok {
		t.Errorf("took %v, want nothing", got)
	}
}

// What the queue lost is many products': the alert names them instead of none.
func TestAnAlertNamesTheProductsThatAreRecovered(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	shelf := &shelf{products: []seckill.Product{{ID: 3}, {ID: 5, Epoch: 1, Strategy: seckill.StrategyDirect}}} // not preheated; without a ledger
	for id := range uint32(12) {
		shelf.products = append(shelf.products, seckill.Product{ID: 7001 + id, Epoch: 2, Strategy: seckill.StrategyAsync})
	}
	p := &parts{log: logger, complaints: alert.NewThrottledLog(logger, time.Now), alerter: alert.New("", logger, func(alert.Kind) {}), catalog: sale.NewCatalog(shelf), signals: newSignals()}
	rig.Must(t, p.catalog.Refresh(t.Context()))
	p.seeTo(t.Context(), trouble{0, queue.ErrLost})
	text := log.String()
	for _, says := range []string{"every product with a ledger (7001, 7002,", "7010, 2 more) is being recovered by itself", queue.ErrLost.Error()} {
		if !strings.Contains(text, says) {
			t.Errorf("the log does not say %q: %s", says, text)
		}
	}
	if strings.Contains(text, "product=0") {
		t.Errorf("the log names product 0: %s", text)
	}
}

// The keeper sees a product lost with every round of a recovery.
func TestWhatIsBeingRecoveredIsNotRaisedByTheKeeperAgain(t *testing.T) {
	s := newSignals()
	for range 2 {
		s.lost(1)
		if got, ok := s.troubles.take(); !ok || got.product != 1 || got.grave() {
			t.Errorf("took %v %t", got, ok)
		}
		s.lost(1)
		s.troubles.done(1)
		if got, ok := s.troubles.take(); ok {
			t.Errorf("took %v, which was being looked at", got)
		}
	}
}

func TestTroublesThatWaitAreBounded(t *testing.T) {
	troubles := newTroubles()
	for product := range uint32(2 * troubleMost) {
		troubles.raise(trouble{product + 1, ledger.ErrLost})
	}
	if len(troubles.waiting) != troubleMost {
		t.Errorf("%d wait, want %d", len(troubles.waiting), troubleMost)
	}
}

func TestATroubleThatIsRaisedDuringALookIsLookedAtAfterIt(t *testing.T) {
	troubles := newTroubles()
	troubles.raise(trouble{1, ledger.ErrLost})
	if _, ok := troubles.take(); !ok {
		t.Fatal("nothing to take")
	}
	troubles.raise(trouble{1, ledger.ErrLost})
	if _, ok := troubles.take(); ok {
		t.Error("one product is looked at twice at once")
	}
	troubles.done(1)
	if _, ok := troubles.take(); !ok {
		t.Error("what was raised during the look is forgotten")
	}
}

func TestAProductThatTakesLongDoesNotHoldUpTheOthers(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		troubles := newTroubles()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		seen := make(chan uint32, 3)
		go troubles.watch(ctx, func(ctx context.Context, one trouble) {
			seen <- one.product
			if one.product == 1 {
				<-ctx.Done()
			}
		})
		for product := range uint32(3) {
			troubles.raise(trouble{product + 1, ledger.ErrLost})
		}
		synctest.Wait()
		if len(seen) != 3 {
			t.Errorf("%d products are looked at, want 3", len(seen))
		}
	})
}

// After a loss of everything thousands of products are looked at: the pause after
// each look is that product's alone.
func TestTroubles_PauseHoldsUpNoOtherProduct(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		troubles := newTroubles()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for product := range uint32(troubleMost) {
			troubles.raise(trouble{product + 1, ledger.ErrLost})
		}
		var looks atomic.Int64
		go troubles.watch(ctx, func(context.Context, trouble) { looks.Add(1) })
		synctest.Wait() // without any time passing
		if looks.Load() != troubleMost {
			t.Errorf("%d looks, want %d", looks.Load(), troubleMost)
		}
	})
}

func TestACrowdMakesNoBusyLoop(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		troubles := newTroubles()
		ctx, stop := context.WithTimeout(t.Context(), 10*troublePause-troublePause/2)
		defer stop()
		looks := 0
		troubles.raise(trouble{1, ledger.ErrLost})
		troubles.watch(ctx, func(context.Context, trouble) {
			looks++
			troubles.raise(trouble{1, ledger.ErrLost}) // the crowd is still there
		})
		if looks != 10 { // one at the start of each pause, none at the end of the last
			t.Errorf("%d looks within ten pauses", looks)
		}
	})
}
