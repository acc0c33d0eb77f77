package web_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/internal/shopapi"
	"seckill/web"
)

const orderNo = "SK01JZZZZZZZ0000000000000001"

// stub answers the public API as far as the page's logic needs it. Other tests use
// the real server.
type stub struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	demo     bool
	loginURL string
	payURL   string
	code     string // accepted by the login once
	products []map[string]any
	// challenge is the task for the page; the token route checks the answer.
	challenge  map[string]any
	tokenLife  time.Duration
	challenges []string // requested kinds, "" for the default one
	answered   []string
	// answers are the replies to purchases, in order; the last one repeats.
	answers []answer
	order   map[string]any
	noSSE   bool
	partial bool // the list of orders may be incomplete
	// stranger: the signed-in user is not the order's buyer.
	stranger bool
	changed  chan struct{} // closed and replaced when the order changes
	asked    []purchase
	askedAt  []time.Time
	paid     []string
	calls    map[string]int
}

// answer is a status and a code; status 202 answers with the order.
type answer struct {
	status int
	code   string
	cut    bool // the connection breaks in the middle of the answer
}

// retryAfter is the Retry-After of a 429, in seconds.
const retryAfter = 2

// purchase is a request of the page.
type purchase struct {
	key, bearer, token string
	quantity           int
}

func newStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{
		t: t, demo: true, code: "good", changed: make(chan struct{}), calls: map[string]int{}, answers: []answer{{status: 202}},
		challenge: map[string]any{"type": "none"}, tokenLife: 10 * time.Minute,
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(web.Shop()))
	mux.HandleFunc("GET /api/v1/page", s.pageInfo)
	mux.HandleFunc("POST /api/v1/login", s.login)
	mux.HandleFunc("GET /demo/login", s.demoLogin)
	mux.HandleFunc("GET /pay", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<title>pay here</title>") })
	mux.HandleFunc("GET /api/v1/time", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"now_ms": time.Now().UnixMilli()})
	})
	mux.HandleFunc("GET /api/v1/products", s.list)
	mux.HandleFunc("GET /api/v1/products/{id}", s.product)
	mux.HandleFunc("POST /api/v1/products/{id}/challenge", s.giveChallenge)
	mux.HandleFunc("POST /api/v1/products/{id}/token", s.giveToken)
	mux.HandleFunc("POST /api/v1/products/{id}/orders", s.buy)
	mux.HandleFunc("GET /api/v1/orders", s.orders)
	mux.HandleFunc("GET /api/v1/orders/{no}", s.readOrder)
	mux.HandleFunc("GET /api/v1/orders/{no}/events", s.events)
	mux.HandleFunc("POST /api/v1/orders/{no}/payment", s.pay)
	mux.HandleFunc("POST /api/v1/orders/{no}/cancel", s.cancel)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls[r.Method+" "+r.URL.Path]++
		s.mu.Unlock()
		w.Header().Set("Content-Security-Policy", shopapi.Policy(shopapi.Sources{}))
		for _, header := range shopapi.Headers {
			w.Header().Set(header[0], header[1])
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func product(id int, name string, startsIn time.Duration) map[string]any {
	now := time.Now()
	return map[string]any{
		"id": id, "name": name, "price_cents": 699900, "currency": "CNY", "per_user_limit": 1,
		"starts_at": now.Add(startsIn), "ends_at": now.Add(startsIn + 2*time.Hour), "status": "on_sale",
		"token_required": false, "payment_providers": []string{"sandbox"},
	}
}

func (s *stub) pageInfo(w http.ResponseWriter, _ *http.Request) {
	reply(w, 200, map[string]any{"demo": s.demo, "login_url": s.loginURL, "pay_url": s.payURL})
}

// login accepts the code once.
func (s *stub) login(w http.ResponseWriter, r *http.Request) {
	var body struct{ Code string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if body.Code != s.code || s.calls["POST /api/v1/login"] > 1 {
		problem(w, 401, "unauthenticated")
		return
	}
	reply(w, 200, map[string]any{"token": bearerOf("王小明"), "buyer": "王小明", "expires_at": time.Now().Add(time.Hour)})
}

// powDifficulty takes a moment to solve.
const powDifficulty = 12

func (s *stub) giveChallenge(w http.ResponseWriter, r *http.Request) {
	var body struct{ Type string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.challenges = append(s.challenges, body.Type)
	given := map[string]any{"expires_at": time.Now().Add(2 * time.Minute)}
	maps.Copy(given, s.challenge)
	if body.Type != "" {
		given = map[string]any{"type": body.Type, "expires_at": given["expires_at"]}
	}
	if given["type"] == "pow" {
		given["difficulty"] = powDifficulty
	}
	given["challenge_id"] = fmt.Sprintf("%v-%d-%s", given["type"], len(s.challenges), strings.Repeat("x", 40))
	reply(w, 200, given)
}

func (s *stub) giveToken(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ChallengeID string `json:"challenge_id"`
		Answer      string
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = append(s.answered, body.Answer)
	switch kind, _, _ := strings.Cut(body.ChallengeID, "-"); {
	case kind == "pow" && !proves(body.ChallengeID, body.Answer), (kind == "image" || kind == "shop") && body.Answer != "abcd":
		problem(w, 403, "token_invalid")
	default:
		reply(w, 200, map[string]any{"token": fmt.Sprint("pass-", len(s.answered)), "expires_at": time.Now().Add(s.tokenLife)})
	}
}

func proves(id, answer string) bool {
	sum := sha256.Sum256([]byte(id + ":" + answer))
	return bits.LeadingZeros64(binary.BigEndian.Uint64(sum[:])) >= powDifficulty && len(answer) <= 20 && strings.Trim(answer, "0123456789") == ""
}

func (s *stub) demoLogin(w http.ResponseWriter, r *http.Request) {
	user := r.URL.Query().Get("user")
	reply(w, 200, map[string]any{"token": bearerOf(user), "buyer": user})
}

// loginEnds is fixed for a test run: bearerOf must give a buyer the same token every
// time.
var loginEnds = time.Now().Add(24 * time.Hour)

func bearerOf(user string) string { return bearerUntil(user, loginEnds) }

func bearerUntil(user string, end time.Time) string {
	claims, _ := json.Marshal(map[string]any{"sub": user, "exp": end.Unix()})
	return "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".sig"
}

// list returns pages of 100 products with the ids 1, 2, 3 …
func (s *stub) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	page := map[string]any{"products": s.products[min(after, len(s.products)):], "now_ms": time.Now().UnixMilli()}
	if end := after + 100; end < len(s.products) {
		page["products"], page["next"] = s.products[after:end], end
	}
	reply(w, 200, page)
}

func (s *stub) product(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.products {
		if fmt.Sprint(p["id"]) == r.PathValue("id") {
			p["now_ms"] = time.Now().UnixMilli()
			reply(w, 200, p)
			return
		}
	}
	problem(w, 404, "not_found")
}

func (s *stub) buy(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Quantity int
		Token    string
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Errorf("decode purchase: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, purchase{
		key: r.Header.Get("Idempotency-Key"), token: body.Token, quantity: body.Quantity,
		bearer: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
	})
	s.askedAt = append(s.askedAt, time.Now())
	next := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	switch {
	case next.cut:
		// If a kept connection closes before the first byte, a browser repeats the request
		// itself. So cut the answer in the middle.
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(202)
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case next.status != 202:
		problem(w, next.status, next.code)
	default:
		s.set("queued", "", body.Quantity)
		reply(w, 202, map[string]any{"order_no": orderNo, "status": "queued"})
	}
}

// set changes the order; the caller holds the lock.
func (s *stub) set(status, reason string, quantity int) {
	s.order = map[string]any{
		"order_no": orderNo, "product_id": 1, "product_name": "Phone 17 Pro", "quantity": quantity,
		"amount_cents": 699900 * quantity, "currency": "CNY", "status": status, "reason": reason,
		"created_at": time.Now(), "pay_before": nil,
	}
	if status == "pending" {
		s.order["pay_before"], s.order["link"] = time.Now().Add(30*time.Minute), "look"
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stub) move(status, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(status, reason, 1)
}

func (s *stub) present() (order map[string]any, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order, s.changed
}

func (s *stub) orders(w http.ResponseWriter, _ *http.Request) {
	order, _ := s.present()
	orders := []map[string]any{}
	if order != nil {
		orders = append(orders, order)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reply(w, 200, map[string]any{"orders": orders, "partial": s.partial})
}

func (s *stub) readOrder(w http.ResponseWriter, r *http.Request) {
	order, _ := s.present()
	link := r.URL.Query().Get("link")
	switch {
	case r.Header.Get("Authorization") != "" && link != "":
		s.t.Error("a link was sent with a login")
	case link == "" && r.Header.Get("Authorization") == "", link != "" && link != "look":
		problem(w, 401, "unauthenticated")
	case s.stranger && link == "":
		problem(w, 404, "not_found")
	case order == nil || r.PathValue("no") != orderNo:
		problem(w, 404, "not_found")
	default:
		reply(w, 200, order)
	}
}

func (s *stub) events(w http.ResponseWriter, r *http.Request) {
	if link := r.URL.Query().Get("link"); s.noSSE || s.stranger && link == "" || link != "" && link != "look" {
		problem(w, 404, "not_found")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		order, changed := s.present()
		if order == nil {
			return
		}
		data, _ := json.Marshal(order)
		fmt.Fprintf(w, ": beat\n\nevent: order\ndata: %s\n\n", data)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *stub) pay(w http.ResponseWriter, r *http.Request) {
	var body struct{ Provider string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paid = append(s.paid, body.Provider)
	reply(w, 200, map[string]any{"pay_url": "/pay?order=" + r.PathValue("no")})
}

func (s *stub) cancel(w http.ResponseWriter, _ *http.Request) {
	s.move("cancelled", "by_buyer")
	order, _ := s.present()
	reply(w, 200, order)
}

func (s *stub) purchases() []purchase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]purchase(nil), s.asked...)
}

func (s *stub) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func problem(w http.ResponseWriter, status int, code string) {
	body := map[string]any{"type": "about:blank", "title": code, "status": status, "code": code}
	if code == "already_purchased" {
		body["order_no"], body["order_nos"] = orderNo, []string{orderNo}
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
