package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/internal/api"
	"seckill/test/engine"
	"seckill/test/webhook"
)

// asOperator sends a request to the operator API and decodes the answer.
func asOperator(t *testing.T, e *engine.Engine, method, path, body string, into any) int {
	t.Helper()
	header := http.Header{"Authorization": {"Bearer " + engine.AdminToken}}
	if body != "" {
		header.Set("Content-Type", "application/json")
	}
	got := send(t, e, method, e.AdminURL+"/admin/v1"+path, header, body)
	if into != nil {
		if err := json.Unmarshal([]byte(got.Text), into); err != nil {
			t.Fatalf("%s: %v", got.Text, err)
		}
	}
	return got.Status
}

func TestSink_OperatorRetriesAndSkipsDeliveries(t *testing.T) {
	t.Parallel()
	r := webhook.New(t)
	r.Refuse(func(e *webhook.Event) int {
		if e.Type == "seckill.order.confirmed" {
			return http.StatusUnprocessableEntity
		}
		return 0
	})
	e := start(t, map[string]string{"config": r.Config("retry_delays: [50ms]")})
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	ann := e.Buyer("ann")
	no, err := claim(t, ann, 1, engine.Purchase{Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	pay(t, e, await(t, ann, no, "pending"))

	var sinks struct {
		Sinks []api.Sink `json:"sinks"`
	}
	eventually(t, "the delivery has failed and order.paid waits", func() bool {
		asOperator(t, e, http.MethodGet, "/sinks", "", &sinks)
		counts := sinks.Sinks[0].Deliveries
		return counts["failed"] == 1 && counts["waiting"] == 1
	})
	shop := sinks.Sinks[0]
	if shop.Name != "shop" || shop.State != "failed" || !shop.Configured || shop.LastError != "receiver answered 422 Unprocessable Entity" || strings.Contains(shop.Target, "webhooks") {
		t.Errorf("sink is %+v", shop)
	}
	var log struct {
		Deliveries []api.Delivery `json:"deliveries"`
	}
	asOperator(t, e, http.MethodGet, "/sinks/shop/deliveries?status=failed", "", &log)
	if len(log.Deliveries) != 1 || log.Deliveries[0].Attempts != 2 || log.Deliveries[0].Answer != "422" || log.Deliveries[0].Key != no {
		t.Fatalf("deliveries are %+v", log.Deliveries)
	}

	env := e.Environ()
	run(t, env, "sink", "list").want(t, "list", 0, "receiver answered 422", "")
	run(t, env, "sink", "test", "shop").want(t, "test", 0, "shop took the echo event: 204", "")
	run(t, env, "sink", "test", "other").want(t, "test of an unknown sink", 1, "", "not_found")
	r.Refuse(nil)
	run(t, env, "sink", "retry", "shop").want(t, "retry", 0, "1 delivery of shop due now", "")
	eventually(t, "the order is paid at the receiver", func() bool { return r.Orders()[no].Status == "paid" })

	before := r.Distinct()
	run(t, env, "sink", "replay", "shop", "--from", "1h", "--yes").want(t, "replay", 0, "events are delivered to shop again", "")
	eventually(t, "all events came again", func() bool { return r.Repeated() >= before-1 }) // the echo event does not come again
	var audit struct {
		Audit []api.Audit `json:"audit"`
	}
	asOperator(t, e, http.MethodGet, "/audit?limit=3", "", &audit)
	for i, want := range []string{"sink.replay", "sink.retry", "sink.test"} {
		if audit.Audit[i].Action != want || audit.Audit[i].Actor != "cli" {
			t.Errorf("audit %d is %+v", i, audit.Audit[i])
		}
	}
	run(t, env, "sink", "forget", "shop", "--yes").want(t, "forget of a configured sink", 1, "", "it is configured")
	if status := asOperator(t, e, http.MethodPost, "/sinks/shop/deliveries/999999/skip", "", nil); status != http.StatusNotFound {
		t.Errorf("skip of an unknown delivery is %d", status)
	}

	// A sink that was removed from the configuration keeps its cursor.
	e.MustStop()
	e.Unset("config")
	e.Start()
	asOperator(t, e, http.MethodGet, "/sinks", "", &sinks)
	if len(sinks.Sinks) != 1 || sinks.Sinks[0].State != "not_configured" || sinks.Sinks[0].Cursor == 0 {
		t.Errorf("sinks are %+v", sinks.Sinks)
	}
	run(t, e.Environ(), "sink", "forget", "shop", "--yes").want(t, "forget", 0, "shop forgotten, with", "")
	run(t, e.Environ(), "sink", "list").want(t, "list", 0, "no sinks are configured", "")
}

// An engine without sinks and brokers has no metrics of them.
func TestSink_WithoutSinksThereAreNoMetrics(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	var sinks struct {
		Sinks []api.Sink `json:"sinks"`
	}
	if asOperator(t, e, http.MethodGet, "/sinks", "", &sinks); len(sinks.Sinks) != 0 {
		t.Errorf("sinks are %+v", sinks.Sinks)
	}
	page := send(t, e, http.MethodGet, e.AdminURL+"/metrics", nil, "")
	if strings.Contains(page.Text, "seckill_sink_") || strings.Contains(page.Text, `duty="sink:`) {
		t.Error("there are figures of sinks")
	}
	if strings.Contains(page.Text, "seckill_carrier_") || strings.Contains(page.Text, "seckill_expiry_") {
		t.Error("there are figures of a broker")
	}
}

// When a receiver is back after an outage, it gets all events soon.
func TestSink_ReceiverCatchesUpAfterAnOutage(t *testing.T) {
	t.Parallel()
	r := webhook.New(t)
	r.Stop()
	e := start(t, map[string]string{"config": r.Config()}) // with the default retries
	openSale(t, e, engine.Product{ID: 1, Stock: 50})
	for _, buyer := range strings.Fields("a b c d e f g h i j k l m n o p q r s t") {
		if _, err := claim(t, e.Buyer(buyer), 1, engine.Purchase{Quantity: 1}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the sink is down", func() bool {
		up, err := e.Metric(t.Context(), `seckill_sink_up{sink="shop"}`)
		return err == nil && up == 0
	})
	r.Start()
	began := time.Now()
	eventually(t, "all orders are at the receiver", func() bool { return len(r.Orders()) == 20 })
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("catching up took %s", took)
	}
}

// A receiver that answers 500 for some orders gets the others within seconds.
func TestSink_FailingOrdersDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	r := webhook.New(t)
	r.Refuse(func(e *webhook.Event) int {
		if strings.HasPrefix(e.Data.Buyer, "bad") {
			return http.StatusInternalServerError
		}
		return 0
	})
	e := start(t, map[string]string{"config": r.Config()}) // with the default retries
	openSale(t, e, engine.Product{ID: 1, Stock: 50})
	for i := range 14 {
		if _, err := claim(t, e.Buyer(fmt.Sprint("bad", i)), 1, engine.Purchase{Quantity: 1}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the bad orders are retried", func() bool {
		n, err := e.Metric(t.Context(), `seckill_sink_open_deliveries{sink="shop",status="retrying"}`)
		return err == nil && n == 14
	})
	for i := range 3 {
		began := time.Now()
		no, err := claim(t, e.Buyer(fmt.Sprint("good", i)), 1, engine.Purchase{Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "a good order is at the receiver", func() bool { return r.Orders()[no].Status == "pending" })
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("a good order took %s", took)
		}
	}
	up, err := e.Metric(t.Context(), `seckill_sink_up{sink="shop"}`)
	if err != nil || up != 1 {
		t.Errorf("seckill_sink_up is %v, %v", up, err)
	}
}
