package carry

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
)

const (
	// stopMost is how long a stop takes with a broker that does not answer: 2 s for
	// calls in hand, 4 s for leaving. stopSlack is for a busy machine.
	stopMost  = 6 * time.Second
	stopSlack = 1500 * time.Millisecond
)

// Frozen stops engines whose broker does not answer. Reservations, delayed
// messages and a sink use it. One engine stops at once, with calls in hand. The
// other one has noticed it before, and its sink has a delivery in hand.
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
	// The sink tries the event of a new sale for 10 s. The relay finds the broker
	// unwell before.
	if _, err := late.Operator().OpenSale(t.Context(), engine.Product{ID: 2, Stock: 10, PerUserLimit: 1}); err != nil {
		t.Fatal(err)
	}
	market.Eventually(t, "the broker is found unwell", func(context.Context) bool { return strings.Contains(late.Log(), "broker is unwell") })
	stopsInTime(t, late)
}

// withSink starts an engine with the broker and a sink on a topic of it.
func withSink(t *testing.T, broker Broker) *engine.Engine {
	t.Helper()
	settings := broker.Settings(t)
	config := filepath.Join(t.TempDir(), "seckill.yaml")
	text := fmt.Sprintf("sinks:\n  - name: events\n    kind: %s\n    topic: %s\n", settings["queue.kind"], broker.EventTopic())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e := engine.Start(t, engine.Options{Settings: engine.Join(settings, map[string]string{"config": config})})
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
	alerts := strings.Count(log, `level=ERROR msg="alert: the broker is unwell"`)
	if took > stopMost+stopSlack || strings.Count(log, "level=ERROR") > alerts {
		t.Errorf("the stop took %s, with this log:\n%s", took, log)
	}
}
