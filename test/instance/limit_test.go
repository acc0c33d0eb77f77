package instance

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/server"
)

const liveShops = "seckill_shops_live"

// knockEvery is how often a shop is asked: far beyond its rate.
const knockEvery = 2 * time.Millisecond

// knock sends purchases to shops for a while, and counts those that the address
// limit let through: a stranger gets no further than the buyer's gate behind it.
// It says how long the while was in the end.
func knock(t *testing.T, length time.Duration, shops ...*engine.Engine) (passed int64, took time.Duration) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var count atomic.Int64
	var all sync.WaitGroup
	for _, e := range shops {
		all.Go(func() {
			tick := time.NewTicker(knockEvery)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				switch status := knockOnce(t, e); status {
				case http.StatusUnauthorized:
					count.Add(1)
				case http.StatusTooManyRequests:
				default:
					t.Errorf("answered %d", status)
					return
				}
			}
		})
	}
	all.Wait()
	return count.Load(), time.Since(began)
}

func knockOnce(t *testing.T, e *engine.Engine) (status int) {
	res, err := http.Post(e.ShopURL+"/api/v1/products/1/orders", "application/json", nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // so that the connection is used again
	return res.StatusCode
}

// Two shops let through together what is set, and when one is killed the
// other takes it all.
func TestShopsDivideTheRateAndASurvivorTakesItAll(t *testing.T) {
	t.Parallel()
	const rate, length = 40, 4 * time.Second
	a, b := pair(t, shared(t, map[string]string{"limit.ip_per_second": "40"}))
	openSale(t, a, engine.Product{ID: 1, Stock: 5})
	sees(t, b, 1)
	for _, e := range []*engine.Engine{a, b} {
		until(t, "both shops are counted", func() bool { return metric(t, e, liveShops) == 2 })
	}
	// about knocks until nearly all that may has passed: on a machine that is busy
	// with something else too few come to the door. More never pass.
	about := func(what string, at ...*engine.Engine) {
		t.Helper()
		until(t, what+" let through what is set", func() bool {
			got, took := knock(t, length, at...)
			t.Logf("%s: %d passed in %s", what, got, took)
			// One second's worth passes at once, since nobody has asked before.
			want := int64(rate * (1 + took.Seconds()))
			if got > want+2 {
				t.Errorf("%s: %d passed in %s, want about %d", what, got, took, want)
			}
			return got >= want*8/10
		})
	}
	about("two shops", a, b)

	b.Kill()
	killed := time.Now()
	until(t, "the survivor counts itself alone", func() bool { return metric(t, a, liveShops) == 1 })
	if took := time.Since(killed); took > 8*time.Second { // its lease is of five
		t.Errorf("the dead shop counted for %s", took)
	}
	about("the survivor", a)
	b.Start()
	for _, e := range []*engine.Engine{a, b} {
		until(t, "both shops are counted again", func() bool { return metric(t, e, liveShops) == 2 })
	}
	b.MustStop() // ends its lease
	stopped := time.Now()
	until(t, "the survivor counts itself alone", func() bool { return metric(t, a, liveShops) == 1 })
	if took := time.Since(stopped); took > 2*time.Second {
		t.Errorf("a shop that has left counted for %s", took)
	}
}

// Shops that lose sight of each other do not all take the whole rate.
func TestAShareStaysWhatItWasWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	maria := server.MariaDB(t, server.MariaOptions{})
	a, b := pair(t, engine.Join(engine.OnRedis(server.SharedRedis(t).Addr()), engine.OnStore(maria.NewDatabase(t))))
	both := []*engine.Engine{a, b}
	failures := func(e *engine.Engine) float64 { return metric(t, e, `seckill_duty_failures_total{duty="instance"}`) }
	for _, e := range both {
		until(t, "both shops are counted", func() bool { return metric(t, e, liveShops) == 2 })
	}
	maria.Kill()
	for _, e := range both {
		until(t, "the shop has not been counted for longer than its lease", func() bool { return failures(e) > 5 })
		if got := metric(t, e, liveShops); got != 2 {
			t.Errorf("%v shops while the store is away", got)
		}
	}
	maria.Start()
	b.Kill()
	until(t, "the survivor counts itself alone", func() bool { return metric(t, a, liveShops) == 1 })
}

// Workers and operators' instances are nobody whom a crowd asks.
func TestOnlyShopsHaveAShare(t *testing.T) {
	t.Parallel()
	settings := shared(t)
	shop := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop}})
	worker := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleWorker, engine.RoleAdmin}})
	rounds := func() float64 { return metric(t, shop, `seckill_duty_seconds_count{duty="instance"}`) }
	until(t, "the shop has counted again", func() bool { return rounds() > 2 })
	if got := metric(t, shop, liveShops); got != 1 {
		t.Errorf("%v shops", got)
	}
	if got := metric(t, worker, liveShops); got != 0 {
		t.Errorf("a worker counts %v shops", got)
	}
}
