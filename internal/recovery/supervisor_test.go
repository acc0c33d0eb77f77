package recovery

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
	"seckill/internal/background"
	"seckill/internal/ledger"
	"seckill/internal/notify"
	"seckill/internal/queue"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/virtual"
)

func TestACrowdInFrontOfOneProductTakesOnePlace(t *testing.T) {
	requests := NewRequests()
	for range 2 * requestsMost {
		requests.RequestRecovery(1, ledger.ErrLost)
	}
	requests.RequestRecovery(2, ledger.ErrLost)
	requests.RequestRecovery(1, queue.ErrLost) // the operator is to hear of it
	requests.RequestRecovery(1, ledger.ErrLost)
	for _, want := range []request{{1, queue.ErrLost}, {2, ledger.ErrLost}} {
		if got, ok := requests.take(); !ok || got.product != want.product || !errors.Is(got.cause, want.cause) {
			t.Errorf("took %v %t, want %v", got, ok, want)
		}
	}
	if got, ok := requests.take(); ok {
		t.Errorf("took %v, want nothing", got)
	}
}

// shelf is a store that has products.
type shelf []seckill.Product

func (shelf) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (s shelf) CurrentProducts(context.Context) ([]seckill.Product, error) { return s, nil }

// What the queue lost is many products': the alert names them instead of none.
func TestAnAlertNamesTheProductsThatAreRecovered(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	shelf := shelf{{ID: 3}, {ID: 5, Epoch: 1, Strategy: seckill.StrategyDirect}} // not preheated; without a ledger
	for id := range uint32(12) {
		shelf = append(shelf, seckill.Product{ID: 7001 + id, Epoch: 2, Strategy: seckill.StrategyAsync})
	}
	supervisor := &Supervisor{
		Catalog: sale.NewCatalog(shelf), Duties: background.NewDuties(notify.NoBoard{}), Alerts: alert.New("", logger, func(alert.Kind) {}),
		Logger: logger, Repeated: alert.NewThrottledLog(logger, time.Now),
	}
	rig.Must(t, supervisor.Catalog.Refresh(t.Context()))
	supervisor.handle(t.Context(), request{0, queue.ErrLost})
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
	s := NewRequests()
	for range 2 {
		s.LedgerLost(1)
		if got, ok := s.take(); !ok || got.product != 1 || got.grave() {
			t.Errorf("took %v %t", got, ok)
		}
		s.LedgerLost(1)
		s.done(1)
		if got, ok := s.take(); ok {
			t.Errorf("took %v, which was being looked at", got)
		}
	}
}

func TestTroublesThatWaitAreBounded(t *testing.T) {
	requests := NewRequests()
	for product := range uint32(2 * requestsMost) {
		requests.RequestRecovery(product+1, ledger.ErrLost)
	}
	if len(requests.waiting) != requestsMost {
		t.Errorf("%d wait, want %d", len(requests.waiting), requestsMost)
	}
}

func TestATroubleThatIsRaisedDuringALookIsLookedAtAfterIt(t *testing.T) {
	requests := NewRequests()
	requests.RequestRecovery(1, ledger.ErrLost)
	if _, ok := requests.take(); !ok {
		t.Fatal("nothing to take")
	}
	requests.RequestRecovery(1, ledger.ErrLost)
	if _, ok := requests.take(); ok {
		t.Error("one product is looked at twice at once")
	}
	requests.done(1)
	if _, ok := requests.take(); !ok {
		t.Error("what was raised during the look is forgotten")
	}
}

func TestAProductThatTakesLongDoesNotHoldUpTheOthers(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		requests := NewRequests()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		seen := make(chan uint32, 3)
		go requests.watch(ctx, func(ctx context.Context, one request) {
			seen <- one.product
			if one.product == 1 {
				<-ctx.Done()
			}
		})
		for product := range uint32(3) {
			requests.RequestRecovery(product+1, ledger.ErrLost)
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
		requests := NewRequests()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for product := range uint32(requestsMost) {
			requests.RequestRecovery(product+1, ledger.ErrLost)
		}
		var looks atomic.Int64
		go requests.watch(ctx, func(context.Context, request) { looks.Add(1) })
		synctest.Wait() // without any time passing
		if looks.Load() != requestsMost {
			t.Errorf("%d looks, want %d", looks.Load(), requestsMost)
		}
	})
}

func TestACrowdMakesNoBusyLoop(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		requests := NewRequests()
		ctx, stop := context.WithTimeout(t.Context(), 10*lookPause-lookPause/2)
		defer stop()
		looks := 0
		requests.RequestRecovery(1, ledger.ErrLost)
		requests.watch(ctx, func(context.Context, request) {
			looks++
			requests.RequestRecovery(1, ledger.ErrLost) // the crowd is still there
		})
		if looks != 10 { // one at the start of each pause, none at the end of the last
			t.Errorf("%d looks within ten pauses", looks)
		}
	})
}
