package seckill_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"seckill"
)

func soundProduct() seckill.Product {
	start := time.Date(2030, 6, 18, 20, 0, 0, 0, time.UTC)
	return seckill.Product{
		ID: 1, Name: "Kettle 水壶", PriceCents: 699900, Currency: "CNY", Stock: 10000, PerUserLimit: 1,
		Group: 1, StartsAt: start, EndsAt: start.Add(time.Hour), Shards: 1, Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait,
	}
}

func TestProduct_Check(t *testing.T) {
	type edit = func(*seckill.Product)
	cases := []struct {
		name  string
		edit  edit
		field string // named by the error; "" if the product is valid
	}{
		{"sound", func(*seckill.Product) {}, ""},
		{"id 0", func(p *seckill.Product) { p.ID = 0 }, "id"},
		{"greatest id", func(p *seckill.Product) { p.ID = math.MaxUint32 }, ""},
		{"no name", func(p *seckill.Product) { p.Name = "" }, "name"},
		{"longest name", func(p *seckill.Product) { p.Name = strings.Repeat("a", seckill.MaxNameBytes) }, ""},
		{"name too long", func(p *seckill.Product) { p.Name = strings.Repeat("a", seckill.MaxNameBytes+1) }, "name"},
		{"name not UTF-8", func(p *seckill.Product) { p.Name = "a\xff" }, "name"},
		{"name with a newline", func(p *seckill.Product) { p.Name = "a\nb" }, "name"},
		{"longest ref", func(p *seckill.Product) { p.Ref = strings.Repeat("r", seckill.MaxProductRef) }, ""},
		{"ref too long", func(p *seckill.Product) { p.Ref = strings.Repeat("r", seckill.MaxProductRef+1) }, "ref"},
		{"free of charge", func(p *seckill.Product) { p.PriceCents = 0 }, ""},
		{"negative price", func(p *seckill.Product) { p.PriceCents = -1 }, "price_cents"},
		{"greatest price", func(p *seckill.Product) { p.PriceCents = seckill.MaxPriceCents }, ""},
		{"price too great", func(p *seckill.Product) { p.PriceCents = seckill.MaxPriceCents + 1 }, "price_cents"},
		{"no currency", func(p *seckill.Product) { p.Currency = "" }, "currency"},
		{"currency in lower case", func(p *seckill.Product) { p.Currency = "cny" }, "currency"},
		{"currency with a newline", func(p *seckill.Product) { p.Currency = "CNY\n" }, "currency"},
		{"currency of four", func(p *seckill.Product) { p.Currency = "CNYY" }, "currency"},
		{"no stock", func(p *seckill.Product) { p.Stock = 0 }, ""},
		{"negative stock", func(p *seckill.Product) { p.Stock = -1 }, "stock"},
		{"greatest stock", func(p *seckill.Product) { p.Stock = seckill.MaxStock }, ""},
		{"stock too great", func(p *seckill.Product) { p.Stock = seckill.MaxStock + 1 }, "stock"},
		{"limit 0", func(p *seckill.Product) { p.PerUserLimit = 0 }, "per_user_limit"},
		{"greatest limit", func(p *seckill.Product) { p.PerUserLimit = seckill.MaxPerUserLimit }, ""},
		{"limit too great", func(p *seckill.Product) { p.PerUserLimit = seckill.MaxPerUserLimit + 1 }, "per_user_limit"},
		{"no start", func(p *seckill.Product) { p.StartsAt = time.Time{} }, "starts_at"},
		{"no end", func(p *seckill.Product) { p.EndsAt = time.Time{} }, "ends_at"},
		{"ends as it starts", func(p *seckill.Product) { p.EndsAt = p.StartsAt }, "starts_at"},
		{"ends before it starts", func(p *seckill.Product) { p.EndsAt = p.StartsAt.Add(-1) }, "starts_at"},
		{"starts in 1999", func(p *seckill.Product) { p.StartsAt = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC) }, "starts_at"},
		{"ends in 10000", func(p *seckill.Product) { p.EndsAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "ends_at"},
		{"no shard", func(p *seckill.Product) { p.Shards = 0 }, "shards"},
		{"most shards", func(p *seckill.Product) { p.Shards, p.Strategy = seckill.MaxShards, seckill.StrategySharded }, ""},
		{"too many shards", func(p *seckill.Product) { p.Shards, p.Strategy = seckill.MaxShards+1, seckill.StrategySharded }, "shards"},
		{"shards that are not sharded", func(p *seckill.Product) { p.Shards = 2 }, "shards"},
		{"one shard, sharded", func(p *seckill.Product) { p.Strategy = seckill.StrategySharded }, "shards"},
		{"direct", func(p *seckill.Product) { p.Strategy = seckill.StrategyDirect }, ""},
		{"dualwrite", func(p *seckill.Product) { p.Strategy = seckill.StrategyDualWrite }, ""},
		{"no strategy", func(p *seckill.Product) { p.Strategy = "" }, "strategy"},
		{"unknown strategy", func(p *seckill.Product) { p.Strategy = "ASYNC" }, "strategy"},
		{"fallback store", func(p *seckill.Product) { p.Fallback = seckill.FallbackStore }, ""},
		{"no fallback", func(p *seckill.Product) { p.Fallback = "" }, "fallback"},
		{"unknown fallback", func(p *seckill.Product) { p.Fallback = "STORE" }, "fallback"},
		{"direct sale that falls back to the store", func(p *seckill.Product) { p.Strategy, p.Fallback = seckill.StrategyDirect, seckill.FallbackStore }, "fallback"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := soundProduct()
			c.edit(&p)
			wantRefusal(t, p.Check(), c.field)
		})
	}
}

// wantRefusal expects a bad_request that names the field, or no error for "".
func wantRefusal(t *testing.T, err error, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil || seckill.CodeOf(err) != seckill.CodeBadRequest || !strings.Contains(err.Error(), field) {
		t.Errorf("error is %v, want a bad_request that names %s", err, field)
	}
}

func TestProduct_WindowAndStatus(t *testing.T) {
	p := soundProduct()
	cases := []struct {
		name    string
		state   seckill.SaleState
		at      time.Time
		soldOut bool
		window  seckill.Code
		status  seckill.Status
	}{
		{"long before", seckill.SaleOpen, p.StartsAt.Add(-time.Hour), false, seckill.CodeNotStarted, seckill.StatusUpcoming},
		{"just before", seckill.SaleOpen, p.StartsAt.Add(-1), false, seckill.CodeNotStarted, seckill.StatusUpcoming},
		{"at the start", seckill.SaleOpen, p.StartsAt, false, "", seckill.StatusOnSale},
		{"just before the end", seckill.SaleOpen, p.EndsAt.Add(-1), false, "", seckill.StatusOnSale},
		{"at the end", seckill.SaleOpen, p.EndsAt, false, seckill.CodeEnded, seckill.StatusEnded},
		{"sold out", seckill.SaleOpen, p.StartsAt, true, "", seckill.StatusSoldOut},
		{"sold out before it starts", seckill.SaleOpen, p.StartsAt.Add(-1), true, seckill.CodeNotStarted, seckill.StatusUpcoming},
		{"paused", seckill.SalePaused, p.StartsAt, false, seckill.CodePaused, seckill.StatusPaused},
		{"paused and sold out", seckill.SalePaused, p.StartsAt, true, seckill.CodePaused, seckill.StatusPaused},
		{"paused before it starts", seckill.SalePaused, p.StartsAt.Add(-1), false, seckill.CodePaused, seckill.StatusPaused},
		{"paused past its end", seckill.SalePaused, p.EndsAt, false, seckill.CodeEnded, seckill.StatusEnded},
		{"ended by the operator", seckill.SaleEnded, p.StartsAt, false, seckill.CodeEnded, seckill.StatusEnded},
		{"ended before it starts", seckill.SaleEnded, p.StartsAt.Add(-1), true, seckill.CodeEnded, seckill.StatusEnded},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p.State = c.state
			if got := p.Window(c.at); got != c.window {
				t.Errorf("window is %q, want %q", got, c.window)
			}
			if got := p.Status(c.at, c.soldOut); got != c.status {
				t.Errorf("status is %q, want %q", got, c.status)
			}
		})
	}
}

func TestSaleState_Names(t *testing.T) {
	for state, want := range map[seckill.SaleState]string{
		seckill.SaleOpen: "open", seckill.SalePaused: "paused", seckill.SaleEnded: "ended",
	} {
		if state.String() != want {
			t.Errorf("state %d is %q, want %q", int8(state), state, want)
		}
	}
}

// Buyers that differ in a counter only, like real ones, are spread evenly over any number of
// shards.
func TestHomeShard_Spreads(t *testing.T) {
	const perShard = 1000
	for _, key := range []int64{0, 1, -7} {
		for _, shards := range []int{2, 3, 7, 16, 64, seckill.MaxShards} {
			p := &seckill.Product{Shards: shards, ShardKey: key}
			counts := make([]int, shards)
			for i := range shards * perShard {
				counts[seckill.HomeShard(p, fmt.Sprintf("user-%d", i))]++
			}
			for shard, n := range counts {
				if n < perShard*7/10 || n > perShard*13/10 {
					t.Errorf("key %d: shard %d of %d has %d buyers, want about %d", key, shard, shards, n, perShard)
				}
			}
		}
	}
}

// An attacker knows the hash, but not the key. Names whose hashes fall on one shard are spread
// by any key.
func TestHomeShard_ChosenNamesSpreadWithAKey(t *testing.T) {
	const shards, names = 16, 1600
	for _, key := range []int64{1, 2, 3, -1, 1 << 62} {
		keyed := &seckill.Product{Shards: shards, ShardKey: key}
		counts := make([]int, shards)
		for i, chosen := 0, 0; chosen < names; i++ {
			if name := fmt.Sprintf("eve-%d", i); seckill.HashBuyer(name)%shards == 5 {
				counts[seckill.HomeShard(keyed, name)]++
				chosen++
			}
		}
		for shard, n := range counts {
			if n > 2*names/shards {
				t.Errorf("key %d: %d of %d chosen names are on shard %d", key, n, names, shard)
			}
		}
	}
}

func TestHashBuyer_IsFNV1a(t *testing.T) {
	for buyer, want := range map[string]uint64{"": 0xcbf29ce484222325, "a": 0xaf63dc4c8601ec8c, "foobar": 0x85944171f73967e8} {
		if got := seckill.HashBuyer(buyer); got != want {
			t.Errorf("the hash of %q is %x, want %x", buyer, got, want)
		}
	}
}

// A buyer's marks are at the same place for every instance, and after a restart.
func TestHomeShard_NeverChanges(t *testing.T) {
	keyed := &seckill.Product{Shards: 256, ShardKey: 0x0102030405060708}
	for buyer, want := range map[string]int{"a": 18, "foobar": 47, "买家": 149} {
		if got := seckill.HomeShard(keyed, buyer); got != want {
			t.Errorf("%q is on shard %d, want %d", buyer, got, want)
		}
		if got := seckill.HomeShard(keyed, []byte(buyer)); got != want {
			t.Errorf("the bytes %q are on shard %d, want %d", buyer, got, want)
		}
	}
	for _, shards := range []int{-1, 0, 1} {
		if got := seckill.HomeShard(&seckill.Product{Shards: shards, ShardKey: 1}, "buyer"); got != 0 {
			t.Errorf("home over %d shards is %d", shards, got)
		}
	}
}

func TestHomeShard_AllocatesNothing(t *testing.T) {
	p := &seckill.Product{Shards: 16, ShardKey: 1}
	buyer := []byte(strings.Repeat("b", seckill.MaxBuyerBytes))
	if n := testing.AllocsPerRun(100, func() { seckill.HomeShard(p, buyer) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHomeShard(b *testing.B) {
	p := &seckill.Product{Shards: 16, ShardKey: 1}
	for b.Loop() {
		seckill.HomeShard(p, "buyer-0123456789")
	}
}

func TestProduct_SellerDecidesWhoSells(t *testing.T) {
	for _, c := range []struct {
		name    string
		product seckill.Product
		byStore bool
		shards  int
	}{
		{"ledger", seckill.Product{Strategy: seckill.StrategySharded, Shards: 4}, false, 4},
		{"taken over", seckill.Product{Strategy: seckill.StrategySharded, Shards: 4, Seller: seckill.SellerStore}, true, 0},
		{"direct", seckill.Product{Strategy: seckill.StrategyDirect, Shards: 1}, true, 0},
	} {
		if got := c.product.SoldByStore(); got != c.byStore {
			t.Errorf("%s: sold by the store: %v", c.name, got)
		}
		if got := c.product.LedgerShards(); got != c.shards {
			t.Errorf("%s: %d shards of the ledger sell it, want %d", c.name, got, c.shards)
		}
	}
}
