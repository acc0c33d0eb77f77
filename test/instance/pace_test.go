package instance

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"seckill/test/engine"
)

// worker.rate_per_second is the rate of all workers together, however many
// instances and workers there are, and who is left has all of it.
func TestInstancesShareTheWorkersRate(t *testing.T) {
	t.Parallel()
	const rate, buyers, workers = 30, 90, 2
	settings := shared(t, map[string]string{"worker.rate_per_second": strconv.Itoa(rate), "worker.count": strconv.Itoa(workers)})
	a, b := pair(t, settings)
	share := func(e *engine.Engine, n int) {
		t.Helper()
		last := regexp.MustCompile(fmt.Sprintf(`share worker.rate_per_second.*workers"?[=:]%d`, n))
		until(t, fmt.Sprintf("%d workers share the rate", n), func() bool { return last.MatchString(e.Log()) })
	}
	share(a, 2*workers)
	share(b, 2*workers)
	openSale(t, a, engine.Product{ID: 1, Stock: buyers})
	sees(t, b, 1)
	began := time.Now()
	orders := make(map[string]string)
	for i := range buyers {
		buyer := fmt.Sprintf("b-%d", i)
		orders[buyer] = buys(t, a, 1, buyer)
	}
	for buyer, no := range orders {
		await(t, a, buyer, no, "pending")
	}
	// The first batch of each worker is preceded by none.
	if took, least := time.Since(began), (buyers-2*workers)*time.Second/rate; took < least {
		t.Errorf("%d orders were written in %s: faster than %d a second", buyers, took, rate)
	}
	b.Kill()
	share(a, workers)
}
