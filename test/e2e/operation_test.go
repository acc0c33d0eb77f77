package e2e

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to damage an order directly in the store

	"seckill/internal/api"
	"seckill/internal/apitest"
	"seckill/test/engine"
	"seckill/test/webhook"
)

// tour calls the operations of both APIs.
type tour struct {
	t      *testing.T
	engine *engine.Engine
	buyer  http.Header
}

func (r *tour) shop(method, path, body string, status int) reply {
	r.t.Helper()
	return r.want(send(r.t, r.engine, method, r.engine.ShopURL+path, r.buyer, body), method, path, status)
}

func (r *tour) admin(method, path, body string, status int) reply {
	r.t.Helper()
	return r.want(send(r.t, r.engine, method, r.engine.AdminURL+path, operating("li.na"), body), method, path, status)
}

func (r *tour) want(got reply, method, path string, status int) reply {
	r.t.Helper()
	if got.Status != status {
		r.t.Fatalf("%s %s: %d %s, want %d", method, path, got.Status, got.Text, status)
	}
	return got
}

func TestOpenAPI_OperationsAnswerAsDescribed(t *testing.T) {
	t.Parallel()
	spec, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	hook := webhook.New(t)
	hook.Refuse(func(*webhook.Event) int { return http.StatusUnprocessableEntity })
	e := startWith(t, spec, map[string]string{"worker.retry_delays": "10ms", "config": hook.Config("retry_delays: [10ms]")})
	r := &tour{t, e, signedIn(t, "ann")}
	r.machines()
	r.sale()
	r.order()
	r.refunds()
	r.letters()
	r.sinks()
	r.records()
	r.rehearsal()
	// The embedded ledger cannot be taken over.
	untried := slices.DeleteFunc(spec.Untried(""), func(name string) bool { return name == "POST /admin/v1/products/{id}/takeover" })
	if len(untried) > 0 {
		t.Errorf("described and never answered with success: %s", strings.Join(untried, ", "))
	}
}

func (r *tour) machines() {
	r.t.Helper()
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml"} {
		r.shop("GET", path, "", 200)
		r.admin("GET", path, "", 200)
	}
	r.admin("GET", "/metrics", "", 200)
	r.shop("GET", "/api/v1/time", "", 200)
	r.shop("GET", "/api/v1/page", "", 200)
	code := signToken(r.t, map[string]any{"sub": "ann", "aud": "seckill-login", "jti": "tour", "exp": time.Now().Add(time.Minute).Unix()})
	r.shop("POST", "/api/v1/login", fmt.Sprintf(`{"code":%q}`, code), 200)
}

// sale creates product 1 and calls the operator's operations for it.
func (r *tour) sale() {
	r.t.Helper()
	window := fmt.Sprintf(`"starts_at":%q,"ends_at":%q`,
		time.Now().Add(-time.Minute).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339))
	created := r.admin("POST", "/admin/v1/products",
		`{"id":1,"ref":"sku-1","name":"Phone","price_cents":100,"stock":10,"per_user_limit":2,"reason":"new",`+window+`}`, 201)
	if got := created.Header.Get("Location"); got != "/admin/v1/products/1" {
		r.t.Errorf("Location %q", got)
	}
	r.admin("GET", "/admin/v1/products", "", 200)
	r.admin("GET", "/admin/v1/products/1", "", 200)
	r.admin("PATCH", "/admin/v1/products/1", `{"name":"Phone X","reason":"typo"}`, 200)
	for _, verb := range []string{"preheat", "pause", "resume", "recover"} {
		r.admin("POST", "/admin/v1/products/1/"+verb, `{"reason":"a try"}`, 200)
	}
	r.admin("POST", "/admin/v1/products/1/stock", `{"delta":5,"change_id":"c-1","reason":"delivery"}`, 200)
	r.admin("GET", "/admin/v1/products/1/stats", "", 200)
	r.shop("GET", "/api/v1/products", "", 200)
	r.shop("GET", "/api/v1/products/1", "", 200)
}

// order calls the operations for challenge, token, purchase, payment and
// refund.
func (r *tour) order() {
	r.t.Helper()
	challenge := r.shop("POST", "/api/v1/products/1/challenge", "{}", 200)
	token := r.shop("POST", "/api/v1/products/1/token", fmt.Sprintf(`{"challenge_id":%q,"answer":""}`, member(r.t, challenge.Text, "challenge_id")), 200)
	paid := r.buy(fmt.Sprintf(`{"quantity":1,"token":%q,"ref":"cart-1"}`, member(r.t, token.Text, "token")))
	r.shop("GET", "/api/v1/orders?limit=5", "", 200)
	r.shop("POST", "/api/v1/orders/"+paid+"/payment", `{"provider":"sandbox"}`, 200)
	r.want(notify(r.t, r.engine, engine.SandboxSecret, money{paid, "T-1", 100, "CNY"}), "POST", "notify", 200)
	r.admin("GET", "/admin/v1/orders?buyer=ann&status=paid", "", 200)
	r.admin("POST", "/admin/v1/orders/"+paid+"/refund", `{"reason":"broken"}`, 200)
	r.admin("GET", "/admin/v1/orders/"+paid, "", 200)
	r.stream(r.engine.ShopURL+"/api/v1/orders/"+paid+"/events", r.buyer)
	r.shop("POST", "/api/v1/orders/"+r.buy(`{}`)+"/cancel", "", 200)
	r.admin("POST", "/admin/v1/orders/"+r.buy(`{}`)+"/cancel", `{"reason":"asked by phone"}`, 200)
}

func (r *tour) buy(body string) string {
	r.t.Helper()
	no := member(r.t, r.shop("POST", "/api/v1/products/1/orders", body, 202).Text, "order_no")
	await(r.t, r.engine.Buyer("ann"), no, "pending")
	return no
}

func (r *tour) stream(url string, header http.Header) {
	r.t.Helper()
	s := follow(r.t, r.engine, url, header)
	defer s.close()
	s.next()
}

// tables opens the store's database directly.
func (r *tour) tables() *sql.DB {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.engine.DataDir, "seckill.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		r.t.Fatal(err)
	}
	return db
}

// refunds retries a refund that was given up.
func (r *tour) refunds() {
	r.t.Helper()
	db := r.tables()
	defer db.Close()
	var id string
	eventually(r.t, "the refund is done", func() bool {
		return db.QueryRow(`SELECT id FROM tb_payment WHERE type = 'refund' AND status = 'done'`).Scan(&id) == nil
	})
	if _, err := db.Exec(`UPDATE tb_payment SET status = 'failed', done_time = NULL WHERE id = ?`, id); err != nil {
		r.t.Fatal(err)
	}
	r.admin("POST", "/admin/v1/payments/"+id+"/retry", `{"reason":"the provider is back"}`, 200)
	eventually(r.t, "it is done again", func() bool {
		var status string
		return db.QueryRow(`SELECT status FROM tb_payment WHERE id = ?`, id).Scan(&status) == nil && status == "done"
	})
}

// sinks retries one refused delivery and skips another.
func (r *tour) sinks() {
	r.t.Helper()
	r.admin("GET", "/admin/v1/sinks", "", 200)
	var failed struct {
		Deliveries []api.Delivery `json:"deliveries"`
	}
	eventually(r.t, "two deliveries have failed", func() bool {
		page := r.admin("GET", "/admin/v1/sinks/shop/deliveries?status=failed", "", 200)
		if err := json.Unmarshal([]byte(page.Text), &failed); err != nil {
			r.t.Fatal(err)
		}
		return len(failed.Deliveries) >= 2
	})
	for i, verb := range []string{"retry", "skip"} {
		r.admin("POST", fmt.Sprintf("/admin/v1/sinks/shop/deliveries/%d/%s", failed.Deliveries[i].EventID, verb), `{"reason":"a try"}`, 200)
	}
	r.admin("POST", "/admin/v1/sinks/shop/retry", `{"reason":"the shop is mended"}`, 200)
	r.admin("POST", "/admin/v1/sinks/shop/skip", `{"reason":"they are old"}`, 200)
	r.admin("POST", "/admin/v1/sinks/shop/test", "", 200)
	r.admin("POST", "/admin/v1/sinks/shop/replay", fmt.Sprintf(`{"from":%q}`, time.Now().Add(-time.Hour).Format(time.RFC3339)), 200)
	db := r.tables()
	defer db.Close()
	if _, err := db.Exec(`INSERT INTO tb_sink (name, last_event, term, create_time) VALUES ('removed', 0, 0, 0)`); err != nil {
		r.t.Fatal(err)
	}
	r.admin("POST", "/admin/v1/sinks/removed/forget", `{"reason":"it is not configured any more"}`, 200)
}

// letters damages two orders in the store, so that they become dead letters.
func (r *tour) letters() {
	r.t.Helper()
	db := r.tables()
	defer db.Close()
	exec := func(statement string) {
		r.t.Helper()
		if _, err := db.Exec(statement); err != nil {
			r.t.Fatalf("%s: %v", statement, err)
		}
	}
	exec(`CREATE TRIGGER spoil BEFORE INSERT ON tb_seckill_order WHEN NEW.ref = 'spoilt' BEGIN SELECT RAISE(ABORT, 'spoilt'); END`)
	ann := r.engine.Buyer("ann")
	for range 2 {
		if _, err := ann.Buy(r.t.Context(), 1, engine.Purchase{Quantity: 1, Ref: "spoilt"}); err != nil {
			r.t.Fatal(err)
		}
	}
	var dead []api.Letter
	eventually(r.t, "both orders are dead letters", func() bool {
		dead = nil
		letters, err := r.engine.Operator().Letters(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, letter := range letters {
			if letter.State == "dead" {
				dead = append(dead, letter)
			}
		}
		return len(dead) == 2
	})
	for _, letter := range dead {
		if order := await(r.t, ann, letter.OrderNo, "queued"); order.Reason != "needs_care" {
			r.t.Errorf("a dead letter's buyer reads %+v", order)
		}
	}
	exec(`DROP TRIGGER spoil`)
	r.admin("GET", "/admin/v1/dead-letters", "", 200)
	r.admin("POST", fmt.Sprintf("/admin/v1/dead-letters/%d/discard", dead[0].ID), `{"reason":"no use"}`, 200)
	r.admin("POST", fmt.Sprintf("/admin/v1/dead-letters/%d/retry", dead[1].ID), `{"reason":"mended"}`, 200)
	await(r.t, ann, dead[0].OrderNo, "failed")
	await(r.t, ann, dead[1].OrderNo, "pending")
}

func (r *tour) records() {
	r.t.Helper()
	report := r.admin("POST", "/admin/v1/reconciliations", `{"product_id":1,"repair":false}`, 200)
	if member(r.t, report.Text, "balanced") != "true" {
		r.t.Errorf("not balanced: %s", report.Text)
	}
	for _, path := range []string{"reconciliations?product_id=1", "payments?type=refund", "events?after=0", "audit?product_id=1"} {
		r.admin("GET", "/admin/v1/"+path, "", 200)
	}
	r.stream(r.engine.AdminURL+"/admin/v1/stats/stream", operating("li.na"))
	r.admin("POST", "/admin/v1/products/1/end", `{"reason":"over"}`, 200)
}

// rehearsal deletes a test product with its order.
func (r *tour) rehearsal() {
	r.t.Helper()
	openSale(r.t, r.engine, engine.Product{ID: 2, Stock: 10, Test: true})
	buy(r.t, r.engine.Buyer("ann"), 2, engine.Purchase{Quantity: 1})
	r.admin("POST", "/admin/v1/products/2/end", `{"reason":"the rehearsal is over"}`, 200)
	deleted := r.admin("DELETE", "/admin/v1/products/2?reason=rehearsal", "", 200)
	if got := member(r.t, deleted.Text, "orders"); got != "1" {
		r.t.Errorf("deleted %s orders, want 1", got)
	}
}

// described lists the operations as "GET /path".
func described(t *testing.T) []string {
	t.Helper()
	fresh, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	return fresh.Untried("")
}

// It sends each described path other methods, and sends it to the port of the
// other API.
func TestOpenAPI_UndescribedMethodsAreRefused(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 10})
	no := buy(t, e.Buyer("ann"), 1, engine.Purchase{Quantity: 1})
	methods := map[string][]string{}
	for _, operation := range described(t) {
		method, path, _ := strings.Cut(operation, " ")
		methods[path] = append(methods[path], method)
	}
	fill := strings.NewReplacer("{id}", "1", "{order_no}", no, "{provider}", "sandbox")
	both := []string{"/healthz", "/readyz", "/openapi.yaml"}
	before := figures(t, e, 1)
	for path, allowed := range methods {
		operator := strings.HasPrefix(path, "/admin/") || path == "/metrics"
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"} {
			for _, port := range []struct {
				url    string
				header http.Header
				ours   bool
			}{
				{e.ShopURL, signedIn(t, "ann"), !operator || slices.Contains(both, path)},
				{e.AdminURL, operating("x"), operator || slices.Contains(both, path)},
			} {
				if port.ours && slices.Contains(allowed, method) {
					continue
				}
				want, code := http.StatusMethodNotAllowed, "bad_request"
				if !port.ours {
					want, code = http.StatusNotFound, "not_found"
				}
				// Unchecked: the description does not tell ports apart.
				got := sendBy(t, http.DefaultClient, method, port.url+fill.Replace(path), port.header, "")
				if got.Status != want || string(got.Code) != code {
					t.Errorf("%s %s on %s: %d %s, want %d", method, path, port.url, got.Status, got.Text, want)
				}
				if port.ours && !slices.Contains(strings.Split(got.Header.Get("Allow"), ", "), allowed[0]) {
					t.Errorf("%s %s: Allow %q, want %v", method, path, got.Header.Get("Allow"), allowed)
				}
			}
		}
	}
	unchanged(t, e, 1, before)
}

// Undescribed are the page, the sandbox's pay page, profiles if they are
// configured, and the demo's login in a demo.
func TestOpenAPI_UndescribedRoutesAreAFixedList(t *testing.T) {
	t.Parallel()
	plain, open := start(t, nil), start(t, map[string]string{"admin.pprof": "true"})
	token := bearer(engine.AdminToken)
	for _, c := range []struct {
		name   string
		url    string
		header http.Header
		status int
	}{
		{"page", plain.ShopURL + "/", nil, 200},
		{"page's file", plain.ShopURL + "/index.html", nil, 200},
		{"no such file", plain.ShopURL + "/index.htm", nil, 404},
		{"out of the page", plain.ShopURL + "/%2e%2e/main.go", nil, 404},
		{"pay page without a bill", plain.ShopURL + "/sandbox/pay", nil, 403},
		{"demo's login outside a demo", plain.ShopURL + "/demo/login?user=ann", nil, 404},
		{"profiles on the public port", open.ShopURL + "/debug/pprof/", token, 404},
		{"profiles when off", plain.AdminURL + "/debug/pprof/", token, 404},
		{"profiles without the token", open.AdminURL + "/debug/pprof/", nil, 401},
		{"profiles", open.AdminURL + "/debug/pprof/", token, 200},
		{"command line", open.AdminURL + "/debug/pprof/cmdline", token, 200},
		{"page on the operator's port", plain.AdminURL + "/index.html", token, 404},
		{"root of the operator's port", plain.AdminURL + "/", token, 404},
		{"root of the operator API", plain.AdminURL + "/admin/v1", token, 404},
		{"the same without the token", plain.AdminURL + "/admin/v1", nil, 401},
		{"root of the shop API", plain.ShopURL + "/api/v1/", nil, 404},
	} {
		// Unchecked: these are not described.
		if got := sendBy(t, http.DefaultClient, http.MethodGet, c.url, c.header, ""); got.Status != c.status {
			t.Errorf("%s: %s answers %d, want %d", c.name, c.url, got.Status, c.status)
		}
	}
}

// A host name must be configured, for the commands too. An IP address need not
// be.
func TestOperatorPort_AcceptsConfiguredHostNamesOnly(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"admin.hosts": "engine-1", "log.level": "info"})
	for host, want := range map[string]int{"engine-1:8081": 200, "127.0.0.1": 200, "evil.example": 421} {
		for _, path := range []string{"/metrics", "/readyz", "/admin/v1/products"} {
			request, err := http.NewRequest(http.MethodGet, e.AdminURL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = host
			request.Header = bearer(engine.AdminToken)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("%s for %s: %d, want %d", path, host, response.StatusCode, want)
			}
		}
	}
	sendBy(t, http.DefaultClient, http.MethodGet, e.AdminURL+"/admin/v1/products", bearer("a wrong token"), "")
	eventually(t, "the log warns", func() bool { return strings.Contains(e.Log(), "operator request refused: wrong token") })
}
