package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"seckill"
	"seckill/internal/stats"
	"seckill/test/engine"
)

// shardsOfAStory spread a sharded story's few units thin: most claims find
// their home shard empty.
const shardsOfAStory = 3

// overEach tells one story of every way to sell: the API is the same, and so
// are the promises.
func overEach(t *testing.T, story func(t *testing.T, by seckill.Strategy)) {
	t.Helper()
	for _, by := range []seckill.Strategy{
		seckill.StrategyAsync, seckill.StrategyDirect, seckill.StrategyDualWrite, seckill.StrategySharded,
	} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			story(t, by)
		})
	}
}

// soldBy is the product with a strategy.
func soldBy(by seckill.Strategy, p engine.Product) engine.Product {
	if p.Strategy = string(by); by == seckill.StrategySharded {
		p.Shards = shardsOfAStory
	}
	return p
}

// free and reserved are units, whoever sells them.
func free(f stats.Stats) int64     { return f.Ledger.Available + f.Fallback.Available }
func reserved(f stats.Stats) int64 { return f.Ledger.Reserved + f.Fallback.Reserved }

// TestTheAnswerTellsWhoSold: a promise of the ledger is queued, an order of the
// store is pending at once.
func TestTheAnswerTellsWhoSold(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	for i, want := range map[uint32]struct {
		by     seckill.Strategy
		status string
	}{
		1: {seckill.StrategyAsync, "queued"}, 2: {seckill.StrategyDirect, "pending"},
		3: {seckill.StrategyDualWrite, "queued"}, 4: {seckill.StrategySharded, "queued"},
	} {
		openSale(t, e, soldBy(want.by, engine.Product{ID: i, Stock: 10}))
		got := send(t, e, "POST", fmt.Sprintf("%s/api/v1/products/%d/orders", e.ShopURL, i), signedIn(t, "ann"), `{"quantity":1}`)
		if got.Status != http.StatusAccepted || member(t, got.Text, "status") != want.status {
			t.Errorf("%s: answered %d %s", want.by, got.Status, got.Text)
		}
	}
	eventually(t, "the dualwrite batch was tried at once", func() bool {
		return value(scrape(t, e), "seckill_dualwrite_batches_total", "result", "confirmed") == 1
	})
}

// TestAnEmbeddedLedgerHasNoShare: it cannot fail apart from its store.
func TestAnEmbeddedLedgerHasNoShare(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	_, err := e.Operator().OpenSale(t.Context(), engine.Product{ID: 1, Stock: 10, FallbackShare: 0.5})
	refused(t, "a share beside an embedded ledger", err, seckill.CodeBadRequest)
}
