package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

// forwarded is a buyer's header as a proxy sends it, or as a client forges it.
func forwarded(t *testing.T, buyer, clients string) http.Header {
	t.Helper()
	header := signedIn(t, buyer)
	header.Set("X-Forwarded-For", clients)
	return header
}

// rush sends the purchases of many accounts over a few connections, and counts
// the answers by their status.
func rush(t *testing.T, e *engine.Engine, accounts, connections int, body string) (answers map[int]int, took time.Duration) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}} // the client that checks the API description is slower than a robot
	defer client.CloseIdleConnections()
	answers = make(map[int]int)
	var mu sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for c := range connections {
		all.Go(func() {
			for i := c; i < accounts; i += connections {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.ShopURL+"/api/v1/products/1/orders", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				// Each account forges an address of its own.
				req.Header = forwarded(t, fmt.Sprintf("account-%d", i), fmt.Sprintf("203.0.%d.%d", i>>8&255, i&255))
				req.Header.Set("Content-Type", "application/json")
				res, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body) // so that the client reuses the connection
				res.Body.Close()
				mu.Lock()
				answers[res.StatusCode]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return answers, time.Since(began)
}

func TestLimit_ManyAccountsAtOneAddressShareItsRate(t *testing.T) {
	t.Parallel()
	const accounts, rate = 10_000, 50
	e := start(t, map[string]string{"limit.ip_per_second": strconv.Itoa(rate)})
	openSale(t, e, engine.Product{ID: 1, Stock: accounts})
	answers, took := rush(t, e, accounts, 16, `{"quantity":1}`)
	may := rate + int(took.Seconds()*rate) + 1
	bought := answers[http.StatusAccepted]
	t.Logf("%d accounts bought %d in %s, and may buy %d", accounts, bought, took.Round(time.Millisecond), may)
	if bought > may || bought < may/2 {
		t.Errorf("%d were sold in %s, want at most and about %d", bought, took, may)
	}
	if bought+answers[http.StatusTooManyRequests] != accounts {
		t.Errorf("answers: %v", answers)
	}
	settled(t, e, 1, "all sold orders are written", func(f api.Stats) bool { return f.Store.Pending == int64(bought) })
	if got := gateCount(t, e, "address_rate"); got != answers[http.StatusTooManyRequests] {
		t.Errorf("the gate counts %d refusals of %d", got, answers[http.StatusTooManyRequests])
	}
}

// Robots that have accounts but no tokens send claims all the time. This must
// not affect buyers with tokens.
func TestProductRate_RobotsWithoutTokensTakeNothingFromBuyers(t *testing.T) {
	t.Parallel()
	const robots, honest, rate = 120, 30, 60
	e := start(t, map[string]string{"token.required": "true", "limit.product_per_second": strconv.Itoa(rate)})
	openSale(t, e, engine.Product{ID: 1, Stock: honest + 1}) // never sold out
	tokens := make(map[string]string, honest)
	for i := range honest {
		buyer := fmt.Sprintf("honest-%d", i)
		tokens[buyer] = askToken(t, e, buyer, 1)
	}
	done, flooded := make(chan struct{}), make(chan struct{})
	var flood sync.WaitGroup
	flood.Go(func() {
		for round := 0; ; round++ {
			answers, _ := rush(t, e, robots, 8, `{}`)
			if answers[http.StatusForbidden] != robots {
				t.Errorf("robots without tokens got %v, want 403 for all %d", answers, robots)
			}
			if round == 0 {
				close(flooded)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	<-flooded
	bought := func() (n int) {
		defer flood.Wait()
		defer close(done)
		for buyer, token := range tokens {
			if _, err := claim(t, e.Buyer(buyer), 1, engine.Purchase{Quantity: 1, Token: token}); err == nil {
				n++
			}
		}
		return n
	}()
	if bought != honest {
		t.Errorf("%d of %d buyers with a token bought", bought, honest)
	}
	if got := gateCount(t, e, "product_rate"); got != 0 {
		t.Errorf("the product's rate refused %d claims", got)
	}
}

// Robots buy once each and then repeat their used tokens, far above the
// product's rate.
func TestProductRate_RepeatsTakeNothingFromFirstClaims(t *testing.T) {
	t.Parallel()
	const robots, honest, rate = 20, 20, 50
	e := start(t, map[string]string{"token.required": "true", "limit.product_per_second": strconv.Itoa(rate)})
	openSale(t, e, engine.Product{ID: 1, Stock: robots + honest + 1}) // never sold out
	tokens := make(map[string]string, robots+honest)
	for i := range robots {
		for _, kind := range []string{"robot", "honest"} {
			buyer := fmt.Sprintf("%s-%d", kind, i)
			tokens[buyer] = askToken(t, e, buyer, 1)
		}
	}
	press := func(buyer string) (string, error) {
		return e.Buyer(buyer).Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Token: tokens[buyer]})
	}
	orders := make(map[string]string)
	for i := range robots {
		buyer := fmt.Sprintf("robot-%d", i)
		no, err := press(buyer)
		if err != nil {
			t.Fatal(err)
		}
		orders[buyer] = no
	}
	done, limited := make(chan struct{}), make(chan struct{})
	var flood sync.WaitGroup
	var once sync.Once
	for i := range robots {
		buyer := fmt.Sprintf("robot-%d", i)
		flood.Go(func() {
			for {
				switch no, err := press(buyer); {
				case engine.CodeOf(err) == seckill.CodeRateLimited:
					once.Do(func() { close(limited) })
				case err != nil || no != orders[buyer]:
					t.Errorf("%s repeats: %s, %v", buyer, no, err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	<-limited // the repeats alone are above the rate by now
	for i := range honest {
		if _, err := press(fmt.Sprintf("honest-%d", i)); err != nil {
			t.Errorf("the first claim of honest-%d: %v", i, err)
		}
	}
	close(done)
	flood.Wait()
}

// gateCount is the number of claims that a gate has refused.
func gateCount(t *testing.T, e *engine.Engine, gate string) int {
	t.Helper()
	got := send(t, e, http.MethodGet, e.AdminURL+"/metrics", nil, "")
	found := regexp.MustCompile(`(?m)^seckill_gate_refused_total\{gate="` + gate + `"\} (\d+)$`).FindStringSubmatch(got.Text)
	if found == nil {
		t.Fatalf("no counter of gate %s", gate)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLimit_TrustedProxyNamesTheClientAndForgedHeadersDoNot(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"limit.ip_per_second": "1", "shop.trusted_proxies": "127.0.0.1,10.0.0.0/8"})
	openSale(t, e, engine.Product{ID: 1, Stock: 100})
	press := func(buyer, clients string) reply {
		return send(t, e, http.MethodPost, e.ShopURL+"/api/v1/products/1/orders", forwarded(t, buyer, clients), `{"quantity":1}`)
	}
	// On a slow machine the second request of a client may come later than a
	// second after the first. The clock shows it, and then another client tries.
	for try := range 20 {
		began := time.Now()
		client, other := fmt.Sprintf("203.0.113.%d", try), fmt.Sprintf("198.51.100.%d", try)
		first, spoofed, through := press("a", client), press("b", "192.0.2.1, "+client), press("c", client+", 10.0.0.9")
		second := press("d", "192.0.2.1, "+other)
		if time.Since(began) > 900*time.Millisecond {
			continue
		}
		for name, c := range map[string]struct {
			got  reply
			want seckill.Code
		}{
			"a client":                   {first, ""},
			"spoofing another":           {spoofed, seckill.CodeRateLimited},
			"through a second proxy":     {through, seckill.CodeRateLimited},
			"another client, who spoofs": {second, ""},
		} {
			if limited := c.got.Code == seckill.CodeRateLimited; limited != (c.want != "") {
				t.Errorf("%s: %d %s", name, c.got.Status, c.got.Text)
			}
		}
		return
	}
	t.Error("the machine was too slow each time")
}

// askFor is a request other than a purchase.
type askFor struct {
	method, path, body string
}

func TestLimit_OtherRequestsAreLimitedByAddressAndByBuyer(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"limit.other_ip_per_second": "1", "limit.other_buyer_per_second": "1", "shop.trusted_proxies": "127.0.0.1"})
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	no, err := e.Buyer("ann").Buy(t.Context(), 1, engine.Purchase{Quantity: 1}) // purchases are not limited here
	if err != nil {
		t.Fatal(err)
	}
	client := 0
	newClient := func() string { client++; return fmt.Sprintf("2001:db8:%x::1", client) }
	ask := func(c askFor, buyer, from string) reply {
		return send(t, e, c.method, e.ShopURL+c.path, forwarded(t, buyer, from), c.body)
	}
	for _, c := range []askFor{
		{http.MethodPost, "/api/v1/login", `{"code":"x"}`},
		{http.MethodGet, "/api/v1/products", ""},
		{http.MethodGet, "/api/v1/products/1", ""},
		{http.MethodPost, "/api/v1/products/1/challenge", ""},
		{http.MethodPost, "/api/v1/products/1/token", `{"challenge_id":"x"}`},
		{http.MethodGet, "/api/v1/orders", ""},
		{http.MethodGet, "/api/v1/orders/" + no, ""},
		{http.MethodGet, "/api/v1/orders/" + no + "/events", ""},
		{http.MethodPost, "/api/v1/orders/" + no + "/payment", `{"provider":"none"}`},
		{http.MethodPost, "/api/v1/orders/" + no + "/cancel", ""},
	} {
		eventually(t, c.method+" "+c.path+" is limited by address", func() bool {
			from := newClient()
			ask(askFor{http.MethodGet, "/api/v1/products", ""}, "nobody", from)
			return isLimited(t, ask(c, fmt.Sprintf("buyer-%d", client), from))
		})
		if c.path == "/api/v1/login" || strings.HasPrefix(c.path, "/api/v1/products") && c.method == http.MethodGet {
			continue // these requests have no buyer
		}
		eventually(t, c.method+" "+c.path+" is limited by buyer", func() bool {
			buyer := fmt.Sprintf("buyer-%d", client)
			ask(askFor{http.MethodGet, "/api/v1/orders", ""}, buyer, newClient())
			return isLimited(t, ask(c, buyer, newClient()))
		})
	}
	for _, c := range []askFor{
		{http.MethodGet, "/healthz", ""}, {http.MethodGet, "/readyz", ""}, {http.MethodGet, "/api/v1/time", ""}, {http.MethodGet, "/api/v1/page", ""},
		{http.MethodPost, "/api/v1/payments/sandbox/notify", `{}`},
	} {
		for range 20 {
			if got := ask(c, "ann", "192.0.2.1"); got.Status == http.StatusTooManyRequests {
				t.Fatalf("%s is limited", c.path)
			}
		}
	}
}

// isLimited reports whether an answer is 429 of a limit of one a second. It
// checks the Retry-After of such an answer.
func isLimited(t *testing.T, got reply) bool {
	t.Helper()
	if got.Status != http.StatusTooManyRequests {
		return false
	}
	if got := got.Header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After: %s, want 1", got)
	}
	if got.Code != seckill.CodeRateLimited {
		t.Errorf("code %s", got.Code)
	}
	return true
}
