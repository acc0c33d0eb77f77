package instance

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/test/engine"
)

const liveShops = "seckill_shops_live"

// knock sends purchases to shops as fast as one client can, and counts those
// that the address limit let through: a stranger gets no further than the
// buyer's gate behind it.
func knock(t *testing.T, length time.Duration, shops ...*engine.Engine) (passed int64) {
	t.Helper()
	ends := time.Now().Add(length)
	var count atomic.Int64
	var all sync.WaitGroup
	for _, e := range shops {
		all.Go(func() {
			for time.Now().Before(ends) {
				res, err := http.Post(e.ShopURL+"/api/v1/products/1/orders", "application/json", nil)
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
				switch res.StatusCode {
				case http.StatusUnauthorized:
					count.Add(1)
				case http.StatusTooManyRequests:
				default:
					t.Errorf("answered %d", res.StatusCode)
					return
				}
			}
		})
	}
	all.Wait()
	return count.Load()
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
	about := func(what string, got int64) {
		t.Helper()
		t.Logf("%s: %d passed in %s", what, got, length)
		// One second's worth passes at once, since nobody has asked before.
		want := int64(rate * (1 + length/time.Second))
		if got > want+2 || got < want*8/10 {
			t.Errorf("%s: %d passed in %s, want about %d", what, got, length, want)
		}
	}
	about("two shops", knock(t, length, a, b))

	b.Kill()
	killed := time.Now()
	until(t, "the survivor counts itself alone", func() bool { return metric(t, a, liveShops) == 1 })
	if took := time.Since(killed); took > 6*time.Second {
		t.Errorf("the dead shop counted for %s", took)
	}
	about("the survivor", knock(t, length, a))
	b.Start()
	for _, e := range []*engine.Engine{a, b} {
		until(t, "both shops are counted again", func() bool { return metric(t, e, liveShops) == 2 })
	}
	b.MustStop() // signs out
	stopped := time.Now()
	until(t, "the survivor counts itself alone", func() bool { return metric(t, a, liveShops) == 1 })
	if took := time.Since(stopped); took > 2*time.Second {
		t.Errorf("a shop that has left counted for %s", took)
	}
}

// Workers and operators' instances are nobody whom a crowd asks.
func TestOnlyShopsHaveAShare(t *testing.T) {
	t.Parallel()
	settings := shared(t)
	shop := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop}})
	worker := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleWorker, engine.RoleAdmin}})
	rounds := func() float64 { return metric(t, shop, `seckill_duty_seconds_count{duty="presence"}`) }
	until(t, "the shop has counted again", func() bool { return rounds() > 2 })
	if got := metric(t, shop, liveShops); got != 1 {
		t.Errorf("%v shops", got)
	}
	if got := metric(t, worker, liveShops); got != 0 {
		t.Errorf("a worker counts %v shops", got)
	}
}
