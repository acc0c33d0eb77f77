package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/webhook"
)

// TestSink_KilledEngineLosesNoEvent kills the engine with kill -9 while it
// delivers to a webhook that fails, hangs up and goes away. The receiver's
// orders, each event applied once, must end equal to the engine's.
func TestSink_KilledEngineLosesNoEvent(t *testing.T) {
	const buyers, kills = 300, 6
	r := webhook.New(t)
	r.Refuse(func(*webhook.Event) int {
		if rand.IntN(5) == 0 {
			return http.StatusInternalServerError
		}
		return 0
	})
	e := engine.Start(t, engine.Options{Settings: map[string]string{
		"config": r.Config("rate_per_second: 150", "retry_delays: [50ms, 100ms, 200ms, 500ms, 1s, 2s, 5s, 10s, 20s]"), "log.level": "warn",
	}})
	if _, err := e.Operator().OpenSale(t.Context(), engine.Product{ID: 1, Stock: buyers}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var crowd sync.WaitGroup
	crowd.Go(func() { shopAround(ctx, t, e, buyers) })
	for i := range kills {
		market.Pause(ctx, time.Duration(200+rand.IntN(600))*time.Millisecond)
		if i%3 == 2 {
			r.Stop()
		}
		e.Kill()
		if i%3 == 2 {
			r.Start()
		}
		if i < len(sinkPoints) {
			e.StartArmed(sinkPoints[i])
			if err := e.WaitEnd(30 * time.Second); err == nil {
				t.Errorf("the engine did not die at %s", sinkPoints[i])
			}
		}
		e.Start()
	}
	crowd.Wait()
	if t.Failed() {
		return
	}
	waitForSink(ctx, t, e, r)
	orders := ordersOf(ctx, t, e)
	if len(orders) < buyers {
		t.Fatalf("the engine has %d orders, want %d", len(orders), buyers)
	}
	got := r.Orders()
	for no, status := range orders {
		if got[no].Status != status {
			t.Errorf("order %s is %q at the receiver, %q at the engine", no, got[no].Status, status)
		}
	}
	if len(got) != len(orders) {
		t.Errorf("the receiver has %d orders, the engine %d", len(got), len(orders))
	}
	t.Logf("%d events, %d repeated, %d kills", r.Distinct(), r.Repeated(), kills)
	// Each kill repeats what was in hand, at most 512 events.
	if most := (kills + 1) * 512; r.Repeated() > most {
		t.Errorf("%d deliveries were repeated", r.Repeated())
	}
}

// sinkPoints are where an engine that sends events is killed.
var sinkPoints = []string{
	"store.take sink.before_commit", "store.take sink.after_commit",
	"store.settle deliveries.before_commit", "store.settle deliveries.after_commit",
}

// shopAround buys for all buyers, and pays or cancels two of three orders.
func shopAround(ctx context.Context, t *testing.T, e *engine.Engine, buyers int) {
	for i := range buyers {
		buyer := e.Buyer(fmt.Sprint("buyer", i))
		key := fmt.Sprint("key", i)
		var no string
		until(ctx, t, "a purchase", func() (err error) {
			no, err = buyer.Buy(ctx, 1, engine.Purchase{Quantity: 1, Key: key})
			return err
		})
		switch i % 3 {
		case 0:
			until(ctx, t, "a payment", func() error {
				return e.Notify(ctx, engine.Notice{OrderNo: no, TradeNo: "T" + no, AmountCents: 100})
			})
		case 1:
			until(ctx, t, "a cancellation", func() error {
				if o, err := e.Operator().Order(ctx, no); err == nil && o.Status == "cancelled" {
					return nil // the answer before was lost
				}
				_, err := e.Operator().Cancel(ctx, no)
				return err
			})
		}
	}
}

// until repeats a call until it succeeds.
func until(ctx context.Context, t *testing.T, what string, call func() error) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := call()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("%s: %v", what, err)
			return
		case <-ticker.C:
		}
	}
}

// waitForSink waits until the receiver has every event of the feed.
func waitForSink(ctx context.Context, t *testing.T, e *engine.Engine, r *webhook.Receiver) {
	t.Helper()
	until(ctx, t, "all events at the receiver", func() error {
		events := 0
		for after := int64(0); ; {
			page, next, err := e.Operator().Events(ctx, after)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			events, after = events+len(page), next
		}
		if n := r.Distinct(); n < events {
			return fmt.Errorf("the receiver has %d of %d events", n, events)
		}
		return nil
	})
}

// ordersOf are the statuses of all orders.
func ordersOf(ctx context.Context, t *testing.T, e *engine.Engine) map[string]string {
	t.Helper()
	orders := map[string]string{}
	for before := ""; ; {
		filter := url.Values{"product_id": {"1"}}
		if before != "" {
			filter.Set("before", before)
		}
		page, err := e.Operator().Orders(ctx, filter)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return orders
		}
		for _, o := range page {
			orders[o.OrderNo] = o.Status
			before = o.OrderNo
		}
	}
}
