package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/client/redisclient"
	"seckill/internal/config"
	"seckill/internal/notify/notifyredis"
	"seckill/test/rig"
	"seckill/test/server"
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
		p.notifier.Board = notifyredis.New(notifyredis.Options{
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
