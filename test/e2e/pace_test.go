package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill/internal/api"
	"seckill/test/engine"
)

// Orders that arrive at once are written at worker.rate_per_second.
func TestWorker_WritesAtTheConfiguredRate(t *testing.T) {
	t.Parallel()
	const arrivals, perSecond, shoppers = 3000, 1000, 32
	e := start(t, map[string]string{"worker.rate_per_second": fmt.Sprint(perSecond)})
	openSale(t, e, engine.Product{ID: 1, Stock: arrivals})
	work := make(chan int)
	var crowd sync.WaitGroup
	for range shoppers {
		crowd.Go(func() {
			for i := range work {
				if _, err := e.Buyer(fmt.Sprintf("b-%d", i)).Buy(t.Context(), 1, engine.Purchase{Quantity: 1}); err != nil {
					t.Errorf("buy: %v", err)
				}
			}
		})
	}
	began := time.Now()
	for i := range arrivals {
		work <- i
	}
	close(work)
	crowd.Wait()
	arrived := time.Since(began)
	settled(t, e, 1, "all are orders", func(f api.Stats) bool { return f.Store.Pending == arrivals && f.Queue.Depth == 0 })

	confirmed := map[int64]int{} // orders by the tenth of a second of their event
	var first, last time.Time
	for after := int64(0); ; {
		events, next, err := e.Operator().Events(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		for _, event := range events {
			if event.Event != "order.confirmed" {
				continue
			}
			at := event.At.Time()
			if first.IsZero() {
				first = at
			}
			last = at
			confirmed[at.Sub(first).Milliseconds()/100]++
		}
		after = next
	}
	took := last.Sub(first)
	t.Logf("%d arrivals in %s, written in %s", arrivals, arrived.Round(time.Millisecond), took)
	// The first batch does not wait, because no batch came before it.
	least := time.Duration(arrivals-2*perSecond/10) * time.Second / perSecond
	if took < least {
		t.Errorf("written in %s: faster than %d a second", took, perSecond)
	}
	for tenth, n := range confirmed {
		if n > 2*perSecond/10 {
			t.Errorf("%d orders in tenth %d: not a smooth flow", n, tenth)
		}
	}
	balanced(t, e, 1)
}
