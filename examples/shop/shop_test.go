package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// visitor is a browser without scripts.
type visitor struct {
	shop *testShop
	http *http.Client
}

func (s *testShop) visitor() *visitor {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return &visitor{s, &http.Client{Jar: jar}}
}

func (v *visitor) read(res *http.Response, err error) (status int, page string) {
	v.shop.t.Helper()
	if err != nil {
		v.shop.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.shop.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (v *visitor) get(path string) (status int, page string) {
	v.shop.t.Helper()
	return v.read(v.http.Get(v.shop.url + path))
}

func (v *visitor) post(path string, form url.Values) (status int, page string) {
	v.shop.t.Helper()
	return v.read(v.http.PostForm(v.shop.url+path, form))
}

func (v *visitor) userID(name string) (id string) {
	v.shop.t.Helper()
	if err := v.shop.db.QueryRow(`SELECT id FROM user WHERE name = ?`, name).Scan(&id); err != nil {
		v.shop.t.Fatal(err)
	}
	return id
}

func TestUser_SignsUpOutAndIn(t *testing.T) {
	shop := openShop(t, nil)
	ann := shop.visitor()
	form := url.Values{"name": {"ann"}, "password": {"correct horse"}}
	if status, page := ann.post("/sign-up", form); status != http.StatusOK || !strings.Contains(page, "(ann)") {
		t.Errorf("sign-up: %d %s", status, page)
	}
	if status, page := ann.post("/sign-out", nil); status != http.StatusOK || strings.Contains(page, "(ann)") {
		t.Errorf("sign-out: %d %s", status, page)
	}
	if _, page := ann.get("/orders"); !strings.Contains(page, "Create an account") {
		t.Errorf("orders without a session show %s", page)
	}
	if status, _ := shop.visitor().post("/sign-up", form); status != http.StatusForbidden {
		t.Errorf("a taken name is answered with %d", status)
	}
	for name, password := range map[string]string{"ann": "wrong horse", "bob": "correct horse"} {
		if status, _ := ann.post("/sign-in", url.Values{"name": {name}, "password": {password}}); status != http.StatusForbidden {
			t.Errorf("%s with %q is answered with %d", name, password, status)
		}
	}
	if status, page := ann.post("/sign-in", form); status != http.StatusOK || !strings.Contains(page, "(ann)") {
		t.Errorf("sign-in: %d %s", status, page)
	}
	var stored string
	if err := shop.db.QueryRow(`SELECT password FROM user`).Scan(&stored); err != nil || strings.Contains(stored, "horse") {
		t.Errorf("the database has the password %q (%v)", stored, err)
	}
}

func TestPage_FollowsTheBrowsersLanguage(t *testing.T) {
	shop := openShop(t, nil)
	req, err := http.NewRequest(http.MethodGet, shop.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Language", "zh-CN,zh;q=0.9,en;q=0.8")
	v := shop.visitor()
	if _, page := v.read(v.http.Do(req)); !strings.Contains(page, "口袋耳机") {
		t.Errorf("the Chinese page shows %s", page)
	}
	if _, page := v.get("/"); !strings.Contains(page, "Pocket headphones") {
		t.Errorf("the English page shows %s", page)
	}
}

func TestForm_OfAnotherSiteIsRefused(t *testing.T) {
	shop := openShop(t, nil)
	req, err := http.NewRequest(http.MethodPost, shop.url+"/sign-out", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://elsewhere.example")
	v := shop.visitor()
	if status, _ := v.read(v.http.Do(req)); status != http.StatusForbidden {
		t.Errorf("answered with %d", status)
	}
}

// fakeEngine answers as the test says and remembers what it was asked.
type fakeEngine struct {
	mu       sync.Mutex
	answers  []int // of the next calls; then 200
	calls    []string
	payments []Payment
}

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, r.Method+" "+r.URL.Path)
	status := http.StatusOK
	if len(f.answers) > 0 {
		status, f.answers = f.answers[0], f.answers[1:]
	}
	var p Payment
	if err := json.NewDecoder(r.Body).Decode(&p); err == nil && p.TradeNo != "" && status == http.StatusOK {
		f.payments = append(f.payments, p)
	}
	writeJSON(w, status, map[string]any{"code": "busy", "title": "Please try again", "ref": "POCKET-BUDS"})
}

func openWithEngine(t *testing.T, answers ...int) (*testShop, *fakeEngine) {
	t.Helper()
	fake := &fakeEngine{answers: answers}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	return openShop(t, &Engine{PublicURL: server.URL, AdminURL: server.URL, JWTSecret: []byte("secret"), SandboxSecret: []byte("secret"), HTTP: http.DefaultClient}), fake
}

func TestCashier_TellsTheEngineUntilItAnswers(t *testing.T) {
	shop, fake := openWithEngine(t, http.StatusServiceUnavailable, http.StatusTooManyRequests)
	ann := shop.visitor()
	ann.post("/sign-up", url.Values{"name": {"ann"}, "password": {"correct horse"}})
	mine := map[string]any{"order_no": "SK1", "product_id": 7, "buyer": ann.userID("ann"), "quantity": 1, "amount_cents": 9900}
	shop.deliver(message{id: "w-1", body: envelope("order.confirmed", "SK1", time.Now(), mine)}, http.StatusNoContent)
	shop.deliver(message{id: "w-2", body: orderEvent("confirmed", "SK2")}, http.StatusNoContent)

	if status, _ := ann.post("/orders/SK2/pay", nil); status != http.StatusNotFound {
		t.Errorf("another user's order is paid with %d", status)
	}
	if _, page := ann.get("/orders/SK2"); strings.Contains(page, "19800") || strings.Contains(page, "198.00") {
		t.Errorf("another user's order shows %s", page)
	}
	for range 2 { // a second press pays nothing more
		if status, page := ann.post("/orders/SK1/pay", nil); status != http.StatusOK || !strings.Contains(page, "on its way") {
			t.Errorf("pay: %d %s", status, page)
		}
	}
	start, step := time.Now(), longRetry
	for i := range 4 {
		shop.now = func() time.Time { return start.Add(time.Duration(i) * step) }
		if err := shop.tellDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(fake.calls) != 3 || len(fake.payments) != 1 || fake.payments[0] != (Payment{"SK1", "shop-SK1", 9900}) {
		t.Errorf("the engine was asked %q and took %v", fake.calls, fake.payments)
	}
	shop.wantStatus("SK1", Pending) // until the event arrives
}

func TestSale_RepeatedRequestIsOneSale(t *testing.T) {
	shop, fake := openWithEngine(t, http.StatusCreated, http.StatusServiceUnavailable, http.StatusConflict, http.StatusOK, http.StatusOK)
	body := `{"sku":"POCKET-BUDS","price_cents":4900,"stock":10,"starts_at":"2030-01-01T00:00:00Z","ends_at":"2030-01-02T00:00:00Z"}`
	request := func(token string) int {
		req, err := http.NewRequest(http.MethodPost, shop.url+"/flash-sales", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		v := shop.visitor()
		status, _ := v.read(v.http.Do(req))
		return status
	}
	if status := request("guess"); status != http.StatusUnauthorized {
		t.Errorf("a wrong operator token is answered with %d", status)
	}
	if status := request(operatorToken); status != http.StatusBadGateway { // the preheat failed
		t.Errorf("answered with %d", status)
	}
	if _, err := latestSale(t.Context(), shop.db, "POCKET-BUDS"); err == nil {
		t.Error("the sale is shown before the engine has it")
	}
	if status := request(operatorToken); status != http.StatusCreated {
		t.Errorf("answered with %d", status)
	}
	sale, err := latestSale(t.Context(), shop.db, "POCKET-BUDS")
	if err != nil || sale.State != ready || sale.Stock != 10 {
		t.Errorf("sale %+v (%v)", sale, err)
	}
	if len(fake.calls) != 5 || fake.calls[1] != fake.calls[4] {
		t.Errorf("the engine was asked %q", fake.calls)
	}
	status, page := shop.visitor().get("/sales/POCKET-BUDS")
	if status != http.StatusOK || !strings.Contains(page, "¥49.00") || strings.Contains(page, "data-token") {
		t.Errorf("a visitor sees %d %s", status, page)
	}
}

func TestOrders_AreListedInPages(t *testing.T) {
	shop := openShop(t, nil)
	tx, err := shop.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	const orders = maxPage + 3
	for i := range orders {
		if err := insertOrder(t.Context(), tx, Order{OrderNo: "SK" + time.Unix(int64(i), 0).UTC().Format("150405"), UserID: "u", Quantity: 1, Status: Paid}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for after, more := "", true; more; more = after != "" {
		req, err := http.NewRequest(http.MethodGet, shop.url+"/orders.json?after="+after, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+operatorToken)
		v := shop.visitor()
		status, text := v.read(v.http.Do(req))
		var page struct {
			Orders []Order `json:"orders"`
			Next   string  `json:"next"`
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, text, err)
		}
		for _, order := range page.Orders {
			seen[order.OrderNo] = true
		}
		after = page.Next
	}
	if len(seen) != orders {
		t.Errorf("%d orders are listed, want %d", len(seen), orders)
	}
	if status, _ := shop.visitor().get("/orders.json"); status != http.StatusUnauthorized {
		t.Errorf("without the operator token the answer is %d", status)
	}
}
