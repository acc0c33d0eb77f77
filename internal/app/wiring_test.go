package app

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/config"
	"seckill/internal/ledger"
	"seckill/internal/purchase"
	"seckill/internal/sale"
	"seckill/internal/store"
	"seckill/test/rig"
)

// listening counts the heartbeats that reach the ledger, by lane.
type listening struct {
	ledger.Ledger
	mu     sync.Mutex
	beats  map[ledger.ProcessID]int
	closed map[ledger.ProcessID]bool // lanes whose shard is said to be closed, beside an error
}

var errPartAway = errors.New("a part of the ledger is away")

func (l *listening) Heartbeat(ctx context.Context, beats []ledger.Beat) ([]ledger.Outcome, error) {
	outcomes, err := l.Ledger.Heartbeat(ctx, beats)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, beat := range beats {
		l.beats[beat.Process]++
		if l.closed == nil {
			continue
		}
		outcomes[i], err = 0, errPartAway
		if l.closed[beat.Process] {
			outcomes[i] = ledger.OutcomeClosed
		}
	}
	return outcomes, err
}

// least is how often the lane was heard that was heard least.
func (l *listening) least(lanes []ledger.Beat) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	least := math.MaxInt
	for _, lane := range lanes {
		least = min(least, l.beats[lane.Process])
	}
	return least
}

// running is an instance with one open sale.
type running struct {
	*parts
	heard *listening
	sale  *sale.Sale
}

func run(t *testing.T, stock int64) *running {
	t.Helper()
	t.Parallel() // they wait for duties
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Shop.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	r := &running{}
	started(t, cfg, func(p *parts) {
		r.parts, r.heard = p, &listening{Ledger: p.ledger, beats: make(map[ledger.ProcessID]int)}
		p.heartbeat.Ledger = r.heard
	})
	now := time.Now()
	_, err := r.lifecycle.Create(t.Context(), seckill.Product{
		ID: 1, Group: 1, Name: "product", PriceCents: 999, Currency: "CNY", Stock: stock, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
	}, rig.Operator)
	rig.Must(t, err)
	_, err = r.lifecycle.Preheat(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	r.sale = r.catalog.Find(1)
	return r
}

func (r *running) figures(t *testing.T) ledger.Figures {
	t.Helper()
	f, err := r.ledger.Read(t.Context(), r.sale.Shard(0))
	rig.Must(t, err)
	return f
}

func (r *running) buy(t *testing.T, buyer string) seckill.OrderNo {
	t.Helper()
	bought, err := r.stage.Buy(r.sale, purchase.Claim{Buyer: buyer, Quantity: 1})
	rig.Must(t, err)
	return bought.OrderNo
}

func TestAStockChangeThatACrashLeftOpenIsFinishedByItself(t *testing.T) {
	r := run(t, 5)
	for _, change := range []store.StockChange{{ID: "up", Delta: 3}, {ID: "down", Delta: -2}} {
		change.ProductID, change.Actor = 1, rig.Operator
		_, err := r.store.BeginStockChange(t.Context(), change)
		rig.Must(t, err)
	}
	rig.Until(t, "nothing is left open", func() bool {
		due, err := r.store.StockChangesDue(t.Context(), 10)
		rig.Must(t, err)
		return len(due) == 0
	})
	p, err := r.store.Product(t.Context(), 1)
	rig.Must(t, err)
	if f := r.figures(t); p.Stock != 6 || f.Available != 6 {
		t.Errorf("%d units in the store, %d in the ledger", p.Stock, f.Available)
	}
}

func TestAShardThatIsClosedIsRecoveredByTheKeeper(t *testing.T) {
	r := run(t, 5)
	rig.Until(t, "the keeper has seen the sale preheated", func() bool {
		events, err := r.store.Events(t.Context(), 0, 10)
		rig.Must(t, err)
		return slices.ContainsFunc(events, func(e seckill.Event) bool { return e.Kind == seckill.EventSaleStarted })
	})
	epoch := r.sale.Terms().Epoch
	rig.Must(t, r.ledger.Close(t.Context(), r.sale.Shard(0)))
	rig.Until(t, "the shard is open under the next epoch", func() bool {
		f := r.figures(t)
		return f.Open && f.Epoch == epoch+1 && r.sale.Terms().Epoch == f.Epoch
	})
	r.buy(t, "bob")
}

func TestAPromiseIsForgottenOnceTheStoreHasIt(t *testing.T) {
	r := run(t, 5)
	r.buy(t, "bob")
	if r.promises.Len() != 1 {
		t.Errorf("%d promises are remembered, want bob's", r.promises.Len())
	}
	rig.Until(t, "the promise is kept", func() bool { return r.promises.Len() == 0 })
}

func TestAUnitThatReturnsLowersTheSoldOutFlag(t *testing.T) {
	r := run(t, 1)
	no := r.buy(t, "bob")
	rig.Until(t, "the order is confirmed", func() bool {
		o, err := r.orders.Find(t.Context(), "bob", no)
		rig.Must(t, err)
		return o.Status == seckill.OrderPending
	})
	r.sale.RaiseSoldOut(time.Now().Add(time.Hour)) // it does not fall by itself while this test runs
	_, err := r.orders.CancelOwn(t.Context(), "bob", no)
	rig.Must(t, err)
	rig.Until(t, "the flag is lowered", func() bool { return !r.sale.SoldOut() })
	r.buy(t, "eve")
}

func onSale(uint32) bool { return true }

func TestEveryLaneBeatsAgainAndAgain(t *testing.T) {
	r := run(t, 5)
	r.buy(t, "bob")
	_, err := r.lifecycle.ChangeStock(t.Context(), 1, 1, "up", rig.Operator)
	rig.Must(t, err)
	buying, other := r.stage.Beats(), r.lanes.Beats(onSale)
	if len(buying) == 0 || len(other) == 0 {
		t.Fatalf("%d lanes of the stage, %d others", len(buying), len(other))
	}
	rig.Until(t, "each was heard twice", func() bool { return r.heard.least(append(buying, other...)) >= 2 })
}

func TestWhatAPartOfTheLedgerAnsweredIsHeard(t *testing.T) {
	r := run(t, 5)
	r.buy(t, "bob")
	_, err := r.lifecycle.ChangeStock(t.Context(), 1, 1, "up", rig.Operator)
	rig.Must(t, err)
	told, untold := r.stage.Beats()[0].Process, r.lanes.Beats(onSale)[0].Process
	r.heard.mu.Lock()
	r.heard.closed = map[ledger.ProcessID]bool{told: true}
	r.heard.mu.Unlock()
	if err := r.heartbeat.Round(t.Context()); !errors.Is(err, errPartAway) {
		t.Errorf("the beat: %v", err)
	}
	is := func(process ledger.ProcessID) func(ledger.Beat) bool {
		return func(b ledger.Beat) bool { return b.Process == process }
	}
	if slices.ContainsFunc(r.stage.Beats(), is(told)) {
		t.Error("a lane that was told of its end beats on")
	}
	if !slices.ContainsFunc(r.lanes.Beats(onSale), is(untold)) {
		t.Error("a lane that was told nothing beats no more")
	}
}
