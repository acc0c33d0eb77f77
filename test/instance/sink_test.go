package instance

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"seckill/test/engine"
	"seckill/test/server"
	"seckill/test/webhook"
)

// TestSink_OneInstanceSendsAndAnotherTakesOver has two workers with the same
// sink. One of them sends; when it is killed the other goes on, in order.
func TestSink_OneInstanceSendsAndAnotherTakesOver(t *testing.T) {
	const orders = 60
	r := webhook.New(t)
	settings := engine.Join(engine.OnRedis(server.SharedRedis(t).Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)),
		map[string]string{"config": r.Config("retry_delays: [50ms, 200ms, 1s, 1s, 1s, 2s, 5s]")})
	both := []*engine.Engine{engine.Start(t, engine.Options{Settings: settings}), engine.Start(t, engine.Options{Settings: settings})}
	first := both[0]
	openSale(t, first, engine.Product{ID: 1, Stock: orders})
	sees(t, both[1], 1)
	tries := map[string]int{}
	r.Refuse(func(e *webhook.Event) int { // each event fails once
		if tries[e.ID]++; tries[e.ID] == 1 {
			return http.StatusServiceUnavailable
		}
		return 0
	})
	var nos []string
	sell := func(e *engine.Engine, n int) {
		t.Helper()
		for range n {
			buyer := fmt.Sprint("buyer", len(nos))
			no := buys(t, e, 1, buyer)
			await(t, e, buyer, no, "pending")
			must(t, "pay", e.Notify(t.Context(), engine.Notice{OrderNo: no, TradeNo: "T" + no, AmountCents: 100}))
			nos = append(nos, no)
		}
	}
	sell(first, orders/2)
	until(t, "half of the orders are at the receiver", func() bool { return paidAt(r) == orders/2 })
	sends := func(e *engine.Engine) bool {
		return metric(t, e, `seckill_sink_deliveries_total{result="delivered",sink="shop"}`) > 0
	}
	if sends(both[0]) == sends(both[1]) {
		t.Errorf("instance 1 sends: %v, instance 2 sends: %v", sends(both[0]), sends(both[1]))
	}
	if r.Repeated() > 0 {
		t.Errorf("%d deliveries were repeated without a fault", r.Repeated())
	}
	dead := slices.IndexFunc(both, sends)
	alive := both[1-dead]
	both[dead].Kill()
	sell(alive, orders/2)
	until(t, "all orders are at the receiver", func() bool { return paidAt(r) == orders })

	kinds, seen := map[string][]string{}, map[string]bool{}
	for _, e := range r.Events() {
		if strings.HasPrefix(e.Type, "seckill.order.") && !seen[e.ID] {
			kinds[e.Subject] = append(kinds[e.Subject], e.Type)
		}
		seen[e.ID] = true
	}
	for _, no := range nos {
		if !slices.Equal(kinds[no], []string{"seckill.order.confirmed", "seckill.order.paid"}) {
			t.Errorf("order %s: %v", no, kinds[no])
		}
	}
}

// paidAt counts the orders that the receiver knows as paid.
func paidAt(r *webhook.Receiver) (paid int) {
	for o := range maps.Values(r.Orders()) {
		if o.Status == "paid" {
			paid++
		}
	}
	return paid
}
