package e2e

import (
	"net/http"
	"strings"
	"testing"

	"seckill/test/engine"
)

// A page of a configured origin may use the API. Other origins may not.
func TestCORS_ConfiguredOriginMayUseTheAPI(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"shop.cors_origins": "https://sale.example,http://localhost:9000"})
	openSale(t, e, engine.Product{ID: 1, Stock: 1})
	ask := func(method, path, origin string, more http.Header) reply {
		header := http.Header{}
		for name, values := range more {
			header[name] = values
		}
		if origin != "" {
			header.Set("Origin", origin)
		}
		return sendBy(t, http.DefaultClient, method, e.ShopURL+path, header, "")
	}
	preflight := http.Header{"Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,content-type"}}
	for _, c := range []struct {
		name, method, path, origin string
		more                       http.Header
		status                     int
		allowed                    string
	}{
		{"a named origin", "GET", "/api/v1/time", "https://sale.example", nil, 200, "https://sale.example"},
		{"another named one", "GET", "/api/v1/products", "http://localhost:9000", nil, 200, "http://localhost:9000"},
		{"a refusal, to be read", "GET", "/api/v1/orders", "https://sale.example", nil, 401, "https://sale.example"},
		{"nowhere, to be read", "GET", "/api/v1/nowhere", "https://sale.example", nil, 404, "https://sale.example"},
		{"a stranger", "GET", "/api/v1/time", "https://eve.example", nil, 200, ""},
		{"a name that begins alike", "GET", "/api/v1/time", "https://sale.example.eve.example", nil, 200, ""},
		{"another scheme", "GET", "/api/v1/time", "http://sale.example", nil, 200, ""},
		{"a page of no origin", "GET", "/api/v1/time", "null", nil, 200, ""},
		{"no origin", "GET", "/api/v1/time", "", nil, 200, ""},
		{"not of the API", "GET", "/", "https://sale.example", nil, 200, ""},
		{"a question before", "OPTIONS", "/api/v1/products/1/orders", "https://sale.example", preflight, 204, "https://sale.example"},
		{"a stranger's question", "OPTIONS", "/api/v1/products/1/orders", "https://eve.example", preflight, 405, ""},
		{"no question at all", "OPTIONS", "/api/v1/time", "https://sale.example", nil, 405, "https://sale.example"},
		{"a question about the page", "OPTIONS", "/", "https://sale.example", preflight, 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(c.method, c.path, c.origin, c.more)
			if got.Status != c.status || got.Header.Get("Access-Control-Allow-Origin") != c.allowed {
				t.Errorf("%d, allowed %q", got.Status, got.Header.Get("Access-Control-Allow-Origin"))
			}
			if c.allowed != "" && c.status == 200 && !strings.Contains(got.Header.Get("Access-Control-Expose-Headers"), "X-Request-Id") {
				t.Error("the page may not read the request's id")
			}
			if got.Header.Get("Access-Control-Allow-Credentials") != "" || got.Header.Get("Set-Cookie") != "" {
				t.Error("credentials, of which there are none")
			}
			if strings.HasPrefix(c.path, "/api/") && got.Header.Get("Vary") != "Origin" {
				t.Errorf("Vary is %q: a cache would hand one page's answer to another", got.Header.Get("Vary"))
			}
			if c.status == 204 && (!strings.Contains(got.Header.Get("Access-Control-Allow-Headers"), "Idempotency-Key") || got.Header.Get("Access-Control-Max-Age") == "") {
				t.Errorf("the preflight says %v", got.Header)
			}
		})
	}
}

func TestCORS_NoOriginIsAllowedByDefault(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	got := sendBy(t, http.DefaultClient, "GET", e.ShopURL+"/api/v1/time", http.Header{"Origin": {"https://sale.example"}}, "")
	if got.Status != 200 || got.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", got.Status, got.Header)
	}
}
