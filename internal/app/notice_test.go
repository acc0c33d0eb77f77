package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/config"
	"seckill/internal/notify"
	"seckill/internal/notify/notifyredis"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/server"
	"seckill/test/virtual"
)

// started runs an instance until the test ends.
func started(t *testing.T, cfg *config.Config, change func(*parts)) *App {
	t.Helper()
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	change(a.parts)
	runs(t, a)
	return a
}

// runs runs an instance until the test's end.
func runs(t *testing.T, a *App) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// claims sends a claim of one unit of product 1, under a key, and returns the
// order's number or the code of the refusal.
func (a *App) claims(t *testing.T, buyer, key string) string {
	t.Helper()
	token, err := a.parts.signer.Sign(buyer, time.Now().Add(time.Hour))
	rig.Must(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.ShopURL()+"/api/v1/products/1/orders", strings.NewReader(`{"quantity":1}`))
	rig.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	rig.Must(t, err)
	defer res.Body.Close()
	var answer struct {
		OrderNo string `json:"order_no"`
		Code    string `json:"code"`
	}
	rig.Must(t, json.NewDecoder(res.Body).Decode(&answer))
	return answer.OrderNo + answer.Code
}

// Two instances sell one product. What the ledger tells of its buyers reaches
// the second late, and in its place nothing else does. Whoever bought the last
// unit at the first and repeats the claim at the second must find the order all
// the same, though the ledger has told the second that all is sold.
func TestTheBuyerOfTheLastUnitIsNotToldSoldOutElsewhere(t *testing.T) {
	redis, maria := server.Redis(t, server.RedisOptions{}), server.SharedMariaDB(t)
	cfg := sharedSettings(t, redis.Addr(), maria.NewDatabase(t), nil)
	proxy := server.Proxy(t, redis.Addr())
	first := started(t, cfg, func(*parts) {})
	second := started(t, cfg, func(p *parts) { // it listens by the proxy, and asks the ledger as ever
		p.board = notifyredis.New(notifyredis.Options{
			Place: redisclient.Place{Addrs: []string{proxy.Addr()}}, Prefix: p.redisKeys(), Name: p.name, Logger: p.log,
		})
	})
	now := time.Now()
	_, err := first.parts.lifecycle.Create(t.Context(), seckill.Product{
		ID: 1, Group: 1, Name: "product", PriceCents: 999, Currency: "CNY", Stock: 1, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
	}, rig.Operator)
	rig.Must(t, err)
	_, err = first.parts.lifecycle.Preheat(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	rig.Must(t, second.parts.catalog.Refresh(t.Context()))
	for _, a := range []*App{first, second} {
		rig.Until(t, "it listens, and knows everybody", func() bool { return !a.parts.memory.MayHoldIn(1, "nobody") })
	}

	proxy.FreezeReplies()
	order := first.claims(t, "last", "cart")
	if !strings.HasPrefix(order, "SK") {
		t.Fatalf("the last unit was answered %s", order)
	}
	for i := range 20 {
		if got := second.claims(t, fmt.Sprintf("late-%d", i), "cart"); got != string(seckill.CodeSoldOut) {
			t.Errorf("who came late was answered %s", got)
		}
		if got := second.claims(t, "last", "cart"); got != order {
			t.Fatalf("the last unit's buyer was answered %s at the other instance, want %s", got, order)
		}
	}

	proxy.Heal()
	rig.Until(t, "the flag is raised", func() bool {
		second.claims(t, "late", "cart")
		return second.parts.catalog.Find(1).SoldOut()
	})
	if !second.parts.memory.MayHoldIn(1, "last") || second.parts.memory.MayHoldIn(1, "late") {
		t.Error("the flag stands, and the last unit's buyer is not known, or everybody is")
	}
	if got := second.claims(t, "last", "cart"); got != order {
		t.Errorf("past the flag the buyer was answered %s, want %s", got, order)
	}
}

// catalogue is a source of products.
type catalogue []seckill.Product

func (catalogue) Product(context.Context, uint32) (seckill.Product, error) {
	return seckill.Product{}, seckill.Errorf(seckill.CodeNotFound, "no such product")
}

func (c catalogue) CurrentProducts(context.Context) ([]seckill.Product, error) { return c, nil }

// listeners is an instance that has others beside it, with three products: one
// that the ledger sells, one that the store has taken over, and a direct one.
func listeners(t *testing.T, publish func(barrier uint64)) (p *parts, async, taken, direct *sale.Sale) {
	t.Helper()
	p = &parts{
		log: slog.New(slog.DiscardHandler), hearing: newHearing(), memory: sale.NewMemory(), board: notify.NoBoard{}, clock: sale.NewClock(nil, nil),
	}
	p.book.fence = func(_ context.Context, barrier uint64) (int, bool, error) { publish(barrier); return 1, false, nil }
	p.catalog = sale.NewCatalog(catalogue{
		{ID: 1, Strategy: seckill.StrategyAsync}, {ID: 2, Strategy: seckill.StrategyAsync, Seller: seckill.SellerStore, StoreOpen: true}, {ID: 3, Strategy: seckill.StrategyDirect},
	})
	p.hearing.fence = p.newFence()
	p.catalog.Peers = peers{p}
	rig.Must(t, p.catalog.Refresh(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.hearing.fence.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return p, p.catalog.Find(1), p.catalog.Find(2), p.catalog.Find(3)
}

// The flag of what the ledger sells waits for its notes. What the store sells the
// gate asks the store for.
func TestWhatAFlagWaitsFor(t *testing.T) {
	const hop = time.Millisecond // of a barrier, to the board and back
	virtual.Test(t, func(t *testing.T) {
		var p *parts
		p, async, taken, direct := listeners(t, func(barrier uint64) {
			virtual.Sleep(hop)
			p.hear(notify.Notice{Kind: notify.Fenced, Barrier: barrier})
		})
		p.joined()
		wait := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		flags := func(want ...bool) {
			t.Helper()
			for i, s := range []*sale.Sale{async, taken, direct} {
				if s.SoldOut() != want[i] {
					t.Errorf("product %d is sold out: %t", s.ID, !want[i])
				}
			}
		}
		barrier := func() {
			for _, s := range []*sale.Sale{async, taken, direct} {
				s.RaiseSoldOut(time.Now())
			}
		}
		barrier()
		flags(false, true, true)
		wait(hop)
		flags(true, true, true)
		wait(2 * time.Second)
		flags(false, false, false)
	})
}

// While nothing is heard everybody counts as known, and a flag turns away
// nobody. It must not stand when they no longer do.
func TestAFlagThatWasRaisedUnheardFallsWhenTheBoardIsJoined(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p, on, _, _ := listeners(t, func(uint64) {}) // no barrier comes back
		asked := time.Now()
		on.RaiseSoldOut(asked)
		if !on.SoldOut() {
			t.Error("not raised at once while nothing is heard")
		}
		<-time.After(time.Millisecond)
		p.joined()
		if on.SoldOut() {
			t.Error("the flag stands past the joining")
		}
		p.parted()
		on.RaiseSoldOut(asked)
		if on.SoldOut() {
			t.Error("raised by a proof from before the joining")
		}
		p.joined()
		on.RaiseSoldOut(time.Now())
		<-time.After(5 * time.Second)
		synctest.Wait()
		if on.SoldOut() {
			t.Error("raised though no barrier was heard")
		}
	})
}

// Notes that a dead master took with it are made up for by the ledger: until it
// was read again, everybody may have bought.
func TestNotesThatAreLostHaveTheBuyersReadAgain(t *testing.T) {
	p := &parts{hearing: newHearing(), memory: sale.NewMemory()}
	for _, anew := range []bool{false, true} {
		p.book.fence = func(context.Context, uint64) (int, bool, error) { return 3, anew, nil }
		doubts := p.memory.Doubts()
		if places, err := p.publishBarrier(t.Context(), 1); err != nil || places != 3 {
			t.Errorf("published in %d places: %v", places, err)
		}
		if doubted, asked := p.memory.Doubts() > doubts, len(p.hearing.rescan) > 0; doubted != anew || asked != anew {
			t.Errorf("lost %v: doubted %v, to be read %v", anew, doubted, asked)
		}
	}
}
