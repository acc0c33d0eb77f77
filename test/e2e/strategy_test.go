package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
	"seckill/test/server"
)

const (
	// shardsOfAStory spread few units over many shards, so that most claims find
	// their home shard empty.
	shardsOfAStory = 3
)

// way is a strategy and the parts that the engine runs on.
type way struct {
	by      seckill.Strategy
	servers bool // Redis and MariaDB instead of embedded parts
}

// ways are all combinations that the tests run.
func ways() []way {
	var all []way
	for _, servers := range []bool{false, true} {
		for _, by := range []seckill.Strategy{
			seckill.StrategyAsync, seckill.StrategyDirect, seckill.StrategyDualWrite, seckill.StrategySharded,
		} {
			all = append(all, way{by: by, servers: servers})
		}
	}
	return all
}

func (w way) String() string {
	name := string(w.by)
	if w.servers {
		name += " on Redis and MariaDB"
	}
	return name
}

// overEach runs one story for each way, because the API and the promises are
// the same.
func overEach(t *testing.T, story func(t *testing.T, w way)) {
	t.Helper()
	over(t, ways(), story)
}

// overSome tells one story of every strategy, and of embedded parts as well as
// servers, but not of every pair of the two. It is for what happens after the sale
// or beside it: there the strategy decides little, and the parts have suites of
// their own that hold each of them to one contract.
func overSome(t *testing.T, story func(t *testing.T, w way)) {
	t.Helper()
	over(t, []way{
		{seckill.StrategyAsync, true}, {seckill.StrategyDirect, false}, {seckill.StrategyDualWrite, true}, {seckill.StrategySharded, false},
	}, story)
}

func over(t *testing.T, ways []way, story func(t *testing.T, w way)) {
	t.Helper()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			story(t, w)
		})
	}
}

// start runs an engine for the story. It shares the servers with other tests,
// but has its own prefix in Redis and its own database.
func (w way) start(t *testing.T, settings map[string]string) *engine.Engine {
	t.Helper()
	if w.servers {
		settings = engine.Join(onServers(t), settings)
	}
	return start(t, settings)
}

// onServers are the settings of an engine on its own prefix and database of
// shared servers. Its timeouts are long: the stories check answers and run many
// at once. Other tests check how fast the answers come.
func onServers(t *testing.T) map[string]string {
	t.Helper()
	return engine.Join(
		engine.OnRedis(server.SharedRedis(t).Addr()),
		engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)),
		map[string]string{"purchase.timeout": "10s"},
	)
}

// product sets the strategy of a product.
func (w way) product(p engine.Product) engine.Product {
	p.Strategy = string(w.by)
	if w.by == seckill.StrategySharded {
		p.Shards = shardsOfAStory
	}
	return p
}

// leavesToTheWorker reports whether a worker writes the accepted orders.
func (w way) leavesToTheWorker() bool {
	return w.by == seckill.StrategyAsync || w.by == seckill.StrategySharded
}

// free and reserved are units of the ledger or the store, whichever sells.
func free(f api.Stats) int64     { return f.Available() }
func reserved(f api.Stats) int64 { return f.Reserved() }

// An order that the ledger accepted is queued. An order that the store sold is
// pending at once.
func TestPurchase_StatusShowsTheSeller(t *testing.T) {
	t.Parallel()
	for name, servers := range map[string]bool{"embedded": false, "on Redis and MariaDB": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theAnswerTellsWhoSold(t, servers)
		})
	}
}

func theAnswerTellsWhoSold(t *testing.T, servers bool) {
	e := way{servers: servers}.start(t, nil)
	for i, want := range map[uint32]struct {
		by     seckill.Strategy
		status string
	}{
		1: {seckill.StrategyAsync, "queued"}, 2: {seckill.StrategyDirect, "pending"},
		3: {seckill.StrategyDualWrite, "queued"}, 4: {seckill.StrategySharded, "queued"},
	} {
		openSale(t, e, way{by: want.by}.product(engine.Product{ID: i, Stock: 10}))
		got := send(t, e, "POST", fmt.Sprintf("%s/api/v1/products/%d/orders", e.ShopURL, i), signedIn(t, "ann"), `{"quantity":1}`)
		if got.Status != http.StatusAccepted || member(t, got.Text, "status") != want.status {
			t.Errorf("%s: answered %d %s", want.by, got.Status, got.Text)
		}
	}
	eventually(t, "the dualwrite batch was tried at once", func() bool {
		return value(scrape(t, e), "seckill_dualwrite_batches_total", "result", "confirmed") == 1
	})
}

func TestEmbeddedLedger_CannotBeTakenOver(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	_, err := e.Operator().OpenSale(t.Context(), engine.Product{ID: 1, Stock: 10, Fallback: string(seckill.FallbackStore)})
	refused(t, "a product that falls back on the store", err, seckill.CodeBadRequest)
}
