package carry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
)

const (
	// stopMost bounds a stop while the broker does not answer: 2 s for running
	// calls, 4 s to leave the group. stopSlack is for a busy machine.
	stopMost  = 6 * time.Second
	stopSlack = 1500 * time.Millisecond
)

const unwellAlert = `level=ERROR msg="alert: the broker is unwell"`

// Frozen stops engines whose broker does not answer. Reservations, delayed
// messages and a sink use the broker. One engine stops at once, during calls.
// The other engine has detected the outage before, and stops during a delivery
// of its sink.
func Frozen(t *testing.T, broker Broker) {
	early, late := withSink(t, broker), withSink(t, broker)
	buy := func(e *engine.Engine, buyer string) string {
		no, err := e.Buyer(buyer).Buy(t.Context(), 1, engine.Purchase{Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		return no
	}
	for _, e := range []*engine.Engine{early, late} {
		if _, err := e.Operator().OpenSale(t.Context(), engine.Product{ID: 1, Stock: 10, PerUserLimit: 1}); err != nil {
			t.Fatal(err)
		}
		no := buy(e, "a")
		market.Eventually(t, "the order travels by the broker", func(ctx context.Context) bool {
			story, err := e.Operator().Order(ctx, no)
			return err == nil && story.Status == "pending"
		})
	}
	broker.Pause()
	defer broker.Resume()
	buy(early, "b")
	stopsInTime(t, early)
	// The sink tries the event of a new sale for 10 s. The relay detects the
	// outage earlier.
	if _, err := late.Operator().OpenSale(t.Context(), engine.Product{ID: 2, Stock: 10, PerUserLimit: 1}); err != nil {
		t.Fatal(err)
	}
	market.Eventually(t, "the broker is found unwell", func(context.Context) bool { return strings.Contains(late.Log(), "broker is unwell") })
	market.Eventually(t, "a metric and an alert say so", func(ctx context.Context) bool {
		bypassed, err := late.Metric(ctx, "seckill_carrier_bypassed")
		return err == nil && bypassed == 1 && strings.Contains(late.Log(), unwellAlert)
	})
	stopsInTime(t, late)
}

// withSink starts an engine with the broker and a sink on a topic of it.
func withSink(t *testing.T, broker Broker) *engine.Engine {
	t.Helper()
	settings := broker.Settings(t)
	e := engine.Start(t, engine.Options{Settings: engine.Join(settings, sinkOn(t, settings["queue.kind"], broker.EventTopic()))})
	carried := fmt.Sprintf(`msg="reservations travel over %s" topic=%s`, settings["queue.kind"], settings["queue.topic"])
	market.Eventually(t, "the broker carries reservations", func(context.Context) bool { return strings.Contains(e.Log(), carried) })
	return e
}

func stopsInTime(t *testing.T, e *engine.Engine) {
	t.Helper()
	began := time.Now()
	if err := e.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	took := time.Since(began)
	t.Logf("the stop took %s", took)
	log := e.Log()
	alerts := strings.Count(log, unwellAlert)
	if took > stopMost+stopSlack || strings.Count(log, "level=ERROR") > alerts {
		t.Errorf("the stop took %s, with this log:\n%s", took, log)
	}
}
