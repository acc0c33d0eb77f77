package e2e

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"seckill"
	"seckill/test/engine"
)

// limitFiles bounds the size of every file that the running engine writes; 0
// acts like a full disk.
func limitFiles(t *testing.T, e *engine.Engine, bytes uint64) {
	t.Helper()
	const fileSize = 1 // RLIMIT_FSIZE
	limit := syscall.Rlimit{Cur: bytes, Max: math.MaxUint64}
	if _, _, errno := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(e.PID()), fileSize, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		t.Fatalf("limit the engine's files: %v", errno)
	}
}

func TestReadyz_FailsIfDataCannotBeWritten(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	get := func(url string) reply { t.Helper(); return send(t, e, http.MethodGet, url, nil, "") }
	if got := get(e.AdminURL + "/readyz"); got.Status != http.StatusOK || !strings.Contains(got.Text, `"name":"store","ok":true`) || !strings.Contains(got.Text, `"name":"ledger","ok":true`) {
		t.Errorf("ready: %d %s", got.Status, got.Text)
	}

	limitFiles(t, e, 0)
	eventually(t, "the operator's readyz fails", func() bool { return get(e.AdminURL+"/readyz").Status == http.StatusServiceUnavailable })
	got := get(e.ShopURL + "/readyz")
	if got.Status != http.StatusServiceUnavailable || got.Code != seckill.CodeBusy {
		t.Errorf("the shop's readyz: %d %s", got.Status, got.Text)
	}
	if strings.Contains(got.Text, e.DataDir) {
		t.Errorf("the public answer shows the data directory: %s", got.Text)
	}
	for _, url := range []string{e.ShopURL, e.AdminURL} {
		if got := get(url + "/healthz"); got.Status != http.StatusOK {
			t.Errorf("the process lives, healthz says %d %s", got.Status, got.Text)
		}
	}
	_, err := e.Buyer("ann").Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Key: "k"})
	refused(t, "buy while nothing can be written", err, seckill.CodeBusy)

	limitFiles(t, e, math.MaxUint64)
	eventually(t, "it is ready again by itself", func() bool {
		return get(e.ShopURL+"/readyz").Status == http.StatusOK && get(e.AdminURL+"/readyz").Status == http.StatusOK
	})
	eventually(t, "it sells again", func() bool {
		_, err = e.Buyer("ann").Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Key: "k"})
		return err == nil
	})
	balanced(t, e, 1)
}

// scrape reads the metrics as Prometheus does.
func scrape(t *testing.T, e *engine.Engine) map[string]*dto.MetricFamily {
	t.Helper()
	got := send(t, e, http.MethodGet, e.AdminURL+"/metrics", nil, "")
	if got.Status != http.StatusOK {
		t.Fatalf("metrics: %d %s", got.Status, got.Text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(got.Text))
	if err != nil {
		t.Fatalf("the metrics cannot be read: %v", err)
	}
	problems, err := promlint.New(strings.NewReader(got.Text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	return families
}

// value is the value of a series, or the count of a histogram. It is NaN if
// there is no such series. Labels are names and values in turn.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	for _, m := range families[name].GetMetric() {
		var have []string
		for _, label := range m.GetLabel() {
			have = append(have, label.GetName(), label.GetValue())
		}
		if !slices.Equal(have, labels) {
			continue
		}
		switch {
		case m.Counter != nil:
			return m.Counter.GetValue()
		case m.Gauge != nil:
			return m.Gauge.GetValue()
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		}
	}
	return math.NaN()
}

// It sells a few orders and reads the metrics of each stage.
func TestMetrics_CoverEachStage(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 3})
	for i := range 3 {
		buy(t, e.Buyer(fmt.Sprintf("b-%d", i)), 1, engine.Purchase{Quantity: 1})
	}
	for range 2 {
		_, err := e.Buyer("late").Buy(t.Context(), 1, engine.Purchase{Quantity: 1})
		refused(t, "late", err, seckill.CodeSoldOut)
	}
	first, err := e.Buyer("b-0").Orders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pay(t, e, first[0])
	if _, err := e.Buyer("b-1").Buy(t.Context(), 1, engine.Purchase{Quantity: 9}); engine.CodeOf(err) != seckill.CodeBadRequest {
		t.Fatalf("nine at once: %v", err)
	}
	balanced(t, e, 1)
	families := scrape(t, e)
	is := func(want float64) func(float64) bool { return func(got float64) bool { return got == want } }
	some := func(got float64) bool { return got > 0 }
	for _, c := range []struct {
		holds  func(float64) bool
		name   string
		labels []string
	}{
		{is(3), "seckill_http_requests_total", []string{"route", "buy", "status", "202"}},
		{is(2), "seckill_http_requests_total", []string{"route", "buy", "status", "409"}},
		{is(1), "seckill_http_requests_total", []string{"route", "notify", "status", "200"}},
		{is(3), "seckill_claims_accepted_total", nil},
		{is(2), "seckill_claims_refused_total", []string{"code", "sold_out"}},
		{is(1), "seckill_claims_refused_total", []string{"code", "bad_request"}},
		{is(0), "seckill_claims_refused_total", []string{"code", "busy"}},
		{is(1), "seckill_gate_refused_total", []string{"gate", "body"}},
		{some, "seckill_reserve_batch_claims", nil},
		{some, "seckill_reserve_seconds", nil},
		{some, "seckill_journal_commit_rows", nil},
		{some, "seckill_journal_commit_seconds", nil},
		{is(0), "seckill_queue_depth", []string{"product", "1"}},
		{is(0), "seckill_queue_oldest_seconds", []string{"product", "1"}},
		{some, "seckill_worker_batch_claims", nil},
		{some, "seckill_worker_seconds", nil},
		{some, "seckill_worker_lag_seconds", nil},
		{is(2), "seckill_units", []string{"product", "1", "where", "pending"}},
		{is(1), "seckill_units", []string{"product", "1", "where", "paid"}},
		{is(0), "seckill_units", []string{"product", "1", "where", "cancelled"}},
		{is(1), "seckill_payments_total", []string{"result", "paid"}},
		{is(1), "seckill_reconciliations_total", []string{"result", "balanced"}},
		{is(1), "seckill_reconcile_balanced", []string{"product", "1"}},
		{some, "seckill_duty_seconds", []string{"duty", "keep"}},
		{is(0), "seckill_http_panics_total", nil},
		{some, "process_open_fds", nil},
		{some, "go_goroutines", nil},
	} {
		if got := value(families, c.name, c.labels...); !c.holds(got) {
			t.Errorf("%s %v is %v", c.name, c.labels, got)
		}
	}
}

// Texts of requests do not become labels.
func TestMetrics_RequestsCannotCreateSeries(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 1})
	spread := func(from, to int) {
		for i := from; i < to; i++ {
			for _, url := range []string{e.ShopURL, e.AdminURL} {
				send(t, e, http.MethodGet, fmt.Sprintf("%s/nowhere/%d", url, i), nil, "")
				send(t, e, "BREW", fmt.Sprintf("%s/pot-%d", url, i), nil, "")
			}
			send(t, e, http.MethodPost, fmt.Sprintf("%s/api/v1/payments/p-%d/notify", e.ShopURL, i), nil, "{}")
		}
	}
	series := func() (n int) {
		for _, family := range scrape(t, e) {
			if strings.HasPrefix(family.GetName(), "seckill_") {
				n += len(family.GetMetric())
			}
		}
		return n
	}
	spread(0, 2)
	scrape(t, e) // the scrape counts as a route too
	before := series()
	spread(2, 50)
	if after := series(); after > before+5 { // a duty may have failed or raised its first alert meanwhile
		t.Errorf("%d series became %d", before, after)
	}
}

func TestLimit_RefusalHasRetryAfter(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"limit.buyer_per_second": "2"})
	openSale(t, e, engine.Product{ID: 1, Stock: 100, PerUserLimit: 100})
	limited := 0
	for range 20 {
		got := send(t, e, http.MethodPost, e.ShopURL+"/api/v1/products/1/orders", signedIn(t, "ann"), "{}")
		if got.Status == http.StatusTooManyRequests {
			limited++
			if got.Header.Get("Retry-After") != "1" || got.Code != seckill.CodeRateLimited {
				t.Errorf("Retry-After %q: %s", got.Header.Get("Retry-After"), got.Text)
			}
		}
	}
	if limited < 10 {
		t.Errorf("%d of 20 were limited", limited)
	}
	buy(t, e.Buyer("bob"), 1, engine.Purchase{Quantity: 1}) // the limit of another buyer does not matter to bob
}
