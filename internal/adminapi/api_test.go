package adminapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/apitest"
	"seckill/internal/sink"
	"seckill/internal/store"
)

const token = "correct-horse-battery-staple"

// fixture is the operator's side: a server, and a client that holds every answer
// to the description.
type fixture struct {
	*testing.T
	engine *engine
	url    string
	spec   *apitest.Spec
	client *http.Client
	log    *lockedBuffer
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// spec is shared: loading takes a second under the race detector.
var loadSpec = sync.OnceValues(apitest.Load)

func newFixture(t *testing.T, adjust func(*Options)) *fixture {
	t.Helper()
	spec, err := loadSpec()
	if err != nil {
		t.Fatal(err)
	}
	e, log := &engine{}, &lockedBuffer{}
	options := Options{
		Token: token, Sales: e, Orders: e, Reconciler: e, Records: e, Sinks: fakeSinks{e},
		Log:         slog.New(slog.NewTextHandler(log, nil)),
		NewChangeID: func() string { return "made-up" },
	}
	if adjust != nil {
		adjust(&options)
	}
	handler, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &fixture{T: t, engine: e, url: server.URL, spec: spec, client: spec.Client(t, server.Client().Transport), log: log}
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) problem(t *testing.T) api.Document {
	t.Helper()
	var doc api.Document
	if err := json.Unmarshal(r.body, &doc); err != nil {
		t.Fatalf("no problem document: %s", r.body)
	}
	return doc
}

// do sends a request; headers are "Name: value" and may replace the defaults.
func (d *fixture) do(method, path, body string, headers ...string) reply {
	d.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	response, err := d.client.Do(request)
	if err != nil {
		d.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		d.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, text}
}

// refused sends a request that must be refused with a code and a detail that
// names what is wrong, and must change nothing.
func (d *fixture) refused(code seckill.Code, names, method, path, body string, headers ...string) {
	d.Helper()
	got := d.do(method, path, body, headers...)
	doc := got.problem(d.T)
	if got.status != code.Status() || doc.Code != code || !strings.Contains(doc.Detail, names) {
		d.Errorf("%s %s %.80s: got %d %s, want %s naming %q", method, path, body, got.status, got.body, code, names)
	}
	if calls := d.engine.changes(); len(calls) != 0 {
		d.Errorf("%s %s %.80s was refused and did %v", method, path, body, calls)
	}
}

const newProduct = `{"id":1,"name":"Phone","price_cents":699900,"stock":10000,` +
	`"starts_at":"2026-11-11T20:00:00+08:00","ends_at":"2026-11-11T22:00:00+08:00"}`

func TestEveryOperationAnswersAsDescribed(t *testing.T) {
	spec, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	d := newFixture(t, func(o *Options) {
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, "up 1\n")
		})
		o.Checks = []Check{{Name: "store", Run: func(context.Context) error { return nil }}}
		o.Stop = closedChannel()
	})
	d.client = spec.Client(t, nil)
	no := orderNo.String()
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/admin/v1/products", "", 200},
		{"POST", "/admin/v1/products", newProduct, 201},
		{"GET", "/admin/v1/products/1", "", 200},
		{"PATCH", "/admin/v1/products/1", `{"name":"Phone 2","reason":"new name"}`, 200},
		{"POST", "/admin/v1/products/1/preheat", "", 200},
		{"POST", "/admin/v1/products/1/pause", `{"reason":"wrong picture"}`, 200},
		{"POST", "/admin/v1/products/1/resume", "{}", 200},
		{"POST", "/admin/v1/products/1/end", "", 200},
		{"POST", "/admin/v1/products/1/recover", "", 200},
		{"POST", "/admin/v1/products/1/takeover", "", 200},
		{"DELETE", "/admin/v1/products/3?reason=rehearsed", "", 200},
		{"DELETE", "/admin/v1/products/1", "", 409},
		{"DELETE", "/admin/v1/products/2", "", 404},
		{"POST", "/admin/v1/products/1/stock", `{"delta":-3}`, 200},
		{"POST", "/admin/v1/products/1/stock", `{"delta":3,"change_id":"open"}`, 202},
		{"GET", "/admin/v1/products/1/stats", "", 200},
		{"GET", "/admin/v1/stats/stream", "", 200},
		{"GET", "/admin/v1/orders", "", 200},
		{"GET", "/admin/v1/orders?buyer=nobody", "", 200},
		{"GET", "/admin/v1/orders/" + no, "", 200},
		{"GET", "/admin/v1/orders/" + onLadder.String(), "", 200},
		{"POST", "/admin/v1/orders/" + no + "/cancel", "", 200},
		{"POST", "/admin/v1/orders/" + no + "/refund", `{"reason":"broken"}`, 200},
		{"GET", "/admin/v1/dead-letters", "", 200},
		{"POST", "/admin/v1/dead-letters/5/retry", "", 200},
		{"POST", "/admin/v1/dead-letters/5/discard", "", 200},
		{"GET", "/admin/v1/reconciliations?product_id=1", "", 200},
		{"POST", "/admin/v1/reconciliations", `{"product_id":1,"repair":true,"reason":"drill"}`, 200},
		{"GET", "/admin/v1/payments?type=refund", "", 200},
		{"GET", "/admin/v1/payments?product_id=0", "", 200},
		{"POST", "/admin/v1/payments/RF5/retry", "", 200},
		{"GET", "/admin/v1/events?after=3&limit=1000", "", 200},
		{"GET", "/admin/v1/events?test=true", "", 200},
		{"GET", "/admin/v1/payments?test=true", "", 200},
		{"GET", "/admin/v1/stats/stream?test=true", "", 200},
		{"GET", "/admin/v1/audit", "", 200},
		{"GET", "/admin/v1/sinks", "", 200},
		{"GET", "/admin/v1/sinks/shop/deliveries?status=failed&after=3&limit=10", "", 200},
		{"GET", "/admin/v1/sinks/shop/deliveries?order=desc&before=9&order_no=" + orderNo.String() + "&message_id=" + eventID, "", 200},
		{"POST", "/admin/v1/sinks/shop/deliveries/5/retry", "", 200},
		{"POST", "/admin/v1/sinks/shop/deliveries/" + eventID + "/retry", "", 200},
		{"POST", "/admin/v1/sinks/shop/deliveries/5/skip", `{"reason":"sold elsewhere"}`, 200},
		{"POST", "/admin/v1/sinks/shop/retry", "", 200},
		{"POST", "/admin/v1/sinks/shop/skip", `{"reason":"sold elsewhere"}`, 200},
		{"POST", "/admin/v1/sinks/shop/forget", `{"reason":"renamed"}`, 200},
		{"POST", "/admin/v1/sinks/shop/replay", `{"from":"2026-11-11T20:00:00+08:00"}`, 200},
		{"POST", "/admin/v1/sinks/shop/test", "", 200},
		{"GET", "/healthz", "", 200},
		{"GET", "/readyz", "", 200},
		{"GET", "/metrics", "", 200},
		{"GET", "/openapi.yaml", "", 200},
	} {
		if got := d.do(c.method, c.path, c.body); got.status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, got.status, got.body, c.status)
		}
	}
	for _, operation := range spec.Untried("") {
		if !strings.Contains(operation, "/api/v1/") { // the shop's
			t.Errorf("never tried: %s", operation)
		}
	}
}

func closedChannel() <-chan struct{} {
	stop := make(chan struct{})
	close(stop)
	return stop
}

func TestAuth_OnlyTokenIsAccepted(t *testing.T) {
	d := newFixture(t, func(o *Options) { o.Pprof, o.GuessWait = true, time.Nanosecond })
	for _, header := range []string{
		"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + token + "x", "Bearer " + token[1:],
		"Basic " + token, token, "Bearer  " + token,
	} {
		for _, path := range []string{"/admin/v1/products", "/admin/v1/products/1/pause", "/admin/v1", "/admin/v1/nowhere"} {
			d.refused(seckill.CodeUnauthenticated, "", "POST", path, newProduct, "Authorization: "+header)
		}
	}
	got := d.do("GET", "/admin/v1/products", "", "Authorization: Bearer nope")
	if got.header.Get("WWW-Authenticate") == "" {
		t.Error("401 without WWW-Authenticate")
	}
	if got := d.do("GET", "/admin/v1/products", "", "Authorization: bearer "+token); got.status != 200 {
		t.Errorf("the scheme's name has no case: %d", got.status)
	}
	if log := d.log.String(); strings.Contains(log, token) {
		t.Errorf("the token stands in the log: %s", log)
	}
}

func TestAuth_RepeatedHeaderIsRefused(t *testing.T) {
	d := newFixture(t, nil)
	for _, name := range []string{"Authorization", "Idempotency-Key", "Content-Type", "X-Operator"} {
		request, err := http.NewRequest("POST", d.url+"/admin/v1/products/1/stock", strings.NewReader(`{"delta":5}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		value := cmp.Or(request.Header.Get(name), "a")
		request.Header[name] = []string{value, value}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), name+" must be given once") {
			t.Errorf("two of %s: %d %s", name, response.StatusCode, text)
		}
	}
	if calls := d.engine.calls; len(calls) > 0 {
		t.Errorf("something was done: %v", calls)
	}
}

func TestPprof_NeedsToken(t *testing.T) {
	d := newFixture(t, func(o *Options) { o.Pprof = true })
	d.client = http.DefaultClient // profiles are not part of the description
	if got := d.do("GET", "/debug/pprof/", "", "Authorization: none"); got.status != 401 {
		t.Errorf("without the token: %d", got.status)
	}
	if got := d.do("GET", "/debug/pprof/cmdline", ""); got.status != 200 {
		t.Errorf("with the token: %d", got.status)
	}
	if got := newFixture(t, nil).do("GET", "/debug/pprof/cmdline", ""); got.status != 404 {
		t.Errorf("not asked for: %d", got.status)
	}
}

func TestNew_RefusesEmptyToken(t *testing.T) {
	e := &engine{}
	if _, err := New(Options{Sales: e, Orders: e, Reconciler: e, Records: e, Sinks: fakeSinks{e}, Log: slog.Default()}); err == nil {
		t.Error("an API without a token was made")
	}
	if _, err := New(Options{Token: token}); err == nil {
		t.Error("an API without parts was made")
	}
}

func TestProblem_TextFollowsAcceptLanguage(t *testing.T) {
	d := newFixture(t, nil)
	for header, want := range map[string]string{
		"zh-CN,zh;q=0.9,en;q=0.8": "未找到", "en": "Not found.", "fr": "Not found.", "fr,zh;q=0.2": "未找到",
	} {
		got := d.do("GET", "/admin/v1/products/2", "", "Accept-Language: "+header)
		if doc := got.problem(t); doc.Title != want || got.header.Get("Vary") != "Accept-Language" {
			t.Errorf("%s: %+v", header, doc)
		}
	}
}

func TestRouter_UnknownPathsAndMethodsAreProblems(t *testing.T) {
	d := newFixture(t, nil)
	for _, path := range []string{
		"/", "/admin", "/nowhere", "/admin/v1/nowhere", "/admin/v1/products/", "/admin//v1/products",
		"/admin/v1/../v1/products", "/admin/v1/products/1/explode",
	} {
		d.refused(seckill.CodeNotFound, "", "GET", path, "")
	}
	elsewhere := *d
	elsewhere.client = http.DefaultClient // described, and not of this server
	for _, path := range []string{"/api/v1/products", "/metrics"} {
		elsewhere.refused(seckill.CodeNotFound, "", "GET", path, "")
	}
	for path, allow := range map[string]string{
		"/admin/v1/products": "GET, HEAD, POST", "/admin/v1/products/1/pause": "POST",
		"/admin/v1/products/1/stock": "POST", "/admin/v1/stats/stream": "GET, HEAD", "/healthz": "GET, HEAD",
	} {
		got := d.do("DELETE", path, "")
		doc := got.problem(t)
		if got.status != 405 || doc.Code != seckill.CodeBadRequest || got.header.Get("Allow") != allow {
			t.Errorf("DELETE %s: %d %q %+v", path, got.status, got.header.Get("Allow"), doc)
		}
	}
}

func TestOutage_IsBusyAndCauseIsOnlyLogged(t *testing.T) {
	d := newFixture(t, nil)
	d.engine.fail(errOutage)
	no := orderNo.String()
	for _, c := range [][3]string{
		{"GET", "/admin/v1/products"}, {"POST", "/admin/v1/products", newProduct}, {"GET", "/admin/v1/products/1"},
		{"PATCH", "/admin/v1/products/1", `{"name":"x"}`}, {"POST", "/admin/v1/products/1/pause"},
		{"POST", "/admin/v1/products/1/stock", `{"delta":1}`}, {"GET", "/admin/v1/products/1/stats"},
		{"GET", "/admin/v1/stats/stream"}, {"GET", "/admin/v1/orders"}, {"GET", "/admin/v1/orders/" + no},
		{"POST", "/admin/v1/orders/" + no + "/cancel"}, {"GET", "/admin/v1/dead-letters"},
		{"POST", "/admin/v1/dead-letters/5/retry"}, {"POST", "/admin/v1/dead-letters/5/discard"},
		{"GET", "/admin/v1/reconciliations"}, {"POST", "/admin/v1/reconciliations", `{"product_id":1,"repair":true}`},
		{"GET", "/admin/v1/payments"}, {"POST", "/admin/v1/payments/RF5/retry"}, {"GET", "/admin/v1/events"}, {"GET", "/admin/v1/audit"},
	} {
		d.refused(seckill.CodeBusy, "", c[0], c[1], c[2])
		if got := d.do(c[0], c[1], c[2]); bytes.Contains(got.body, []byte("10.0.0.7")) {
			t.Errorf("%s %s tells of our parts: %s", c[0], c[1], got.body)
		}
	}
	if !strings.Contains(d.log.String(), "10.0.0.7") {
		t.Error("the log does not know why")
	}
}

func TestPanic_AnswersBusy(t *testing.T) {
	var panics, observed atomic.Int32
	d := newFixture(t, func(o *Options) {
		o.Records = struct{ Records }{} // every method is a nil dereference
		o.Meter = testMeter{panicked: func() { panics.Add(1) }, request: func(route string, status int, _ time.Duration) {
			if route == "GET /admin/v1/products/{id}" && status == 500 {
				observed.Add(1)
			}
		}}
	})
	d.client = http.DefaultClient // 500 is described for the whole, not per operation
	got := d.do("GET", "/admin/v1/products/1", "")
	if doc := got.problem(t); got.status != 500 || doc.Code != seckill.CodeBusy || doc.Status != 500 {
		t.Errorf("got %d %+v", got.status, doc)
	}
	if panics.Load() != 1 || observed.Load() != 1 || !strings.Contains(d.log.String(), "panicked") {
		t.Errorf("%d panics counted, %d observed", panics.Load(), observed.Load())
	}
}

func TestReadyz_ReportsEveryCheck(t *testing.T) {
	well := func(context.Context) error { return nil }
	closed := func(context.Context) error { return fmt.Errorf("closed") }
	hung := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, c := range []struct {
		name   string
		checks []Check
		status int
		holds  string
	}{
		{"all good", []Check{{Name: "store", Run: well}}, 200, `"name":"store","ok":true`},
		{"one bad", []Check{{Name: "store", Run: well}, {Name: "ledger", Run: closed}}, 503, `"name":"ledger","ok":false,"error":"closed"`},
		{"one bad that is spared", []Check{{Name: "store", Run: closed, Spared: true}, {Name: "shop", Run: well}}, 200,
			`"name":"store","ok":false,"spared":true,"error":"closed"`},
		{"one hangs", []Check{{Name: "queue", Run: hung}}, 503, `"name":"queue","ok":false`},
		{"none", nil, 200, `"status":"ok","roles":["shop","worker"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t, func(o *Options) { o.Checks, o.Roles = c.checks, []string{"shop", "worker"} })
			got := d.do("GET", "/readyz", "", "Authorization: none")
			if got.status != c.status || !bytes.Contains(got.body, []byte(c.holds)) {
				t.Errorf("got %d %s", got.status, got.body)
			}
			if got := d.do("GET", "/healthz", ""); got.status != 200 {
				t.Errorf("health is not readiness: %d", got.status)
			}
			if log := d.log.String(); log != "" {
				t.Errorf("probes are logged: %s", log)
			}
		})
	}
}

func TestListSinks_States(t *testing.T) {
	count := func(states ...store.DeliveryState) map[store.DeliveryState]int64 {
		counts := map[store.DeliveryState]int64{}
		for _, state := range states {
			counts[state] = 1
		}
		return counts
	}
	cases := map[string]sink.Report{
		"not_configured": {State: store.SinkState{DownAt: at}},
		"down":           {Configured: true, State: store.SinkState{DownAt: at, Count: count(store.DeliveryFailed)}},
		"failed":         {Configured: true, State: store.SinkState{Count: count(store.DeliveryFailed, store.DeliveryRetrying)}},
		"retrying":       {Configured: true, Lag: 1, State: store.SinkState{Count: count(store.DeliveryRetrying)}},
		"sending":        {Configured: true, Lag: 1, State: store.SinkState{Count: count(store.DeliveryDelivered)}},
		"idle":           {Configured: true},
	}
	for want, report := range cases {
		if got := sinkOf(&report).State; got != want {
			t.Errorf("state is %s, want %s", got, want)
		}
	}
}

func TestRequestID_IsInAnswerDocumentAndLog(t *testing.T) {
	d := newFixture(t, nil)
	for _, sent := range []string{"from-the-proxy/1", "not well formed", ""} {
		refused := d.do("GET", "/admin/v1/products/x", "", "X-Request-Id: "+sent)
		if id := refused.header.Get("X-Request-Id"); id == "" || refused.problem(t).RequestID != id {
			t.Errorf("%q: %q, %s", sent, id, refused.body)
		}
		id := d.do("POST", "/admin/v1/products/1/pause", "", "X-Request-Id: "+sent).header.Get("X-Request-Id")
		if id == "" || (id == sent) != (sent == "from-the-proxy/1") || !strings.Contains(d.log.String(), "request_id="+id+" ") {
			t.Errorf("no %q in the log:\n%s", id, d.log.String())
		}
	}
}

func TestListProducts_PagesById(t *testing.T) {
	d := newFixture(t, nil)
	for query, want := range map[string]string{
		"": "[1 2 3 4] 0", "?limit=4": "[1 2 3 4] 0", "?limit=3": "[1 2 3] 3", "?limit=1": "[1] 1",
		"?after=1&limit=2": "[2 3] 3", "?after=3&limit=2": "[4] 0", "?after=4": "[] 0", "?after=4294967295": "[] 0",
	} {
		got := d.do("GET", "/admin/v1/products"+query, "")
		var page productPage
		if err := json.Unmarshal(got.body, &page); err != nil {
			t.Fatalf("%v: %s", err, got.body)
		}
		ids := []uint32{}
		for i := range page.Products {
			ids = append(ids, page.Products[i].ID)
		}
		if listed := fmt.Sprint(ids, page.Next); listed != want {
			t.Errorf("products%s: %s, want %s", query, listed, want)
		}
	}
}

// testMeter calls a test; nil counts nothing.
type testMeter struct {
	request  func(route string, status int, took time.Duration)
	panicked func()
	suspect  func(why string)
}

func (m testMeter) Request(route string, status int, took time.Duration) {
	if m.request != nil {
		m.request(route, status, took)
	}
}

func (m testMeter) Panic() {
	if m.panicked != nil {
		m.panicked()
	}
}

func (m testMeter) Suspect(why string) {
	if m.suspect != nil {
		m.suspect(why)
	}
}
