package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

// shopfront is an engine with one sale and one order of ann's. No request of a
// test may change the order.
type shopfront struct {
	t      *testing.T
	e      *engine.Engine
	no     string
	before api.Stats
}

func openShop(t *testing.T) *shopfront {
	t.Helper()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 10, PerUserLimit: 5})
	no := buy(t, e.Buyer("ann"), 1, engine.Purchase{Quantity: 1})
	return &shopfront{t: t, e: e, no: no, before: figures(t, e, 1)}
}

// healthy ends a test. It checks that nothing changed and that the shop still
// sells.
func (s *shopfront) healthy() {
	s.t.Helper()
	unchanged(s.t, s.e, 1, s.before)
	if order, err := s.e.Buyer("ann").Order(s.t.Context(), s.no); err != nil || order.Status != "pending" {
		s.t.Errorf("ann's order is %+v (%v)", order, err)
	}
	buy(s.t, s.e.Buyer("a late one"), 1, engine.Purchase{Quantity: 1})
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := send(s.t, s.e, http.MethodGet, s.e.ShopURL+path, nil, ""); got.Status != http.StatusOK {
			s.t.Errorf("%s: %d %s", path, got.Status, got.Text)
		}
	}
}

func (s *shopfront) refuses(name, method, path string, header http.Header, body string, code seckill.Code) {
	s.t.Helper()
	got := send(s.t, s.e, method, s.e.ShopURL+path, header, body)
	if got.Status != code.Status() || got.Code != code {
		s.t.Errorf("%s: %s %s %.80q: %d %s, want %s", name, method, path, body, got.Status, got.Text, code)
	}
}

func TestInput_BadBodyIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	const buyPath, challengePath, tokenPath = "/api/v1/products/1/orders", "/api/v1/products/1/challenge", "/api/v1/products/1/token"
	payPath, cancelPath := "/api/v1/orders/"+s.no+"/payment", "/api/v1/orders/"+s.no+"/cancel"
	huge := strings.Repeat("x", 15<<10)
	deep := strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000)
	for _, path := range []string{buyPath, tokenPath, payPath, cancelPath} {
		for name, body := range map[string]string{
			"an array": `[]`, "a number": `1`, "a string": `"x"`, "null": `null`, "true": `true`, "cut short": `{"quantity":1`, "two values": `{}{}`,
			"no JSON": `quantity=1`, "single quotes": `{'quantity':1}`, "trailing comma": `{"quantity":1,}`, "not UTF-8": "{\"ref\":\"\xff\xfe\"}",
			"UTF-16": "\xff\xfe{\x00}\x00", "a byte order mark": "\xef\xbb\xbf{}", "gzip": packed(t, `{"quantity":1,"provider":"sandbox"}`), "a NUL": "{\x00}",
			"a member twice": `{"quantity":1,"quantity":2,"provider":"sandbox"}`, "a member in two cases": `{"provider":"sandbox","Provider":"sandbox"}`,
			"a lone surrogate": `{"ref":"\ud800"}`, "a lone surrogate inside": `{"x":{"y":["\udc00"]}}`, "a lone surrogate as a name": `{"\ud800":1}`,
			"65 members": objectOf(65), "2000 members": objectOf(2000),
		} {
			s.refuses(name, http.MethodPost, path, signedIn(t, "ann"), body, seckill.CodeBadRequest)
		}
	}
	s.refuses("2000 members before login", http.MethodPost, "/api/v1/login", nil, objectOf(2000), seckill.CodeBadRequest)
	s.refuses("a lone surrogate before login", http.MethodPost, "/api/v1/login", nil, `{"code":"\ud800"}`, seckill.CodeBadRequest)
	for path, bodies := range map[string][]string{
		buyPath: {
			`{"quantity":0}`, `{"quantity":-1}`, `{"quantity":6}`, `{"quantity":1.5}`, `{"quantity":1e0}`, `{"quantity":"1"}`, `{"quantity":null}`,
			`{"quantity":true}`, `{"quantity":[1]}`, `{"quantity":{}}`, `{"quantity":01}`, `{"quantity":+1}`, `{"quantity":99999999999999999999}`,
			`{"quantity":4294967297}`, `{"quantity":18446744073709551617}`, `{"token":1}`, `{"token":null}`, `{"token":"` + huge + `"}`,
			`{"ref":1}`, `{"ref":null}`, `{"ref":"` + strings.Repeat("x", 129) + `"}`, `{"ref":"` + strings.Repeat("é", 65) + `"}`,
			`{"ref":"a\u0000b"}`, `{"ref":"a\nb"}`, `{"ref":"\u007f"}`, `{"ref":"` + huge + `"}`, deep[:len(deep)-1],
		},
		tokenPath:       {`{}`, `{"challenge_id":null}`, `{"challenge_id":1}`, `{"challenge_id":""}`, `{"challenge_id":["x"]}`, `{"challenge_id":"x","answer":1}`, `{"challenge_id":"x","answer":null}`},
		challengePath:   {`{"type":null}`, `{"type":1}`, `{"type":"riddle"}`},
		"/api/v1/login": {`{}`, `{"code":null}`, `{"code":""}`, `{"code":1}`},
		payPath:         {`{}`, `{"provider":""}`, `{"provider":null}`, `{"provider":1}`, `{"provider":"Sandbox"}`, `{"provider":"paypal"}`, `{"provider":"` + huge + `"}`},
	} {
		for _, body := range bodies {
			s.refuses("field", http.MethodPost, path, signedIn(t, "ann"), body, seckill.CodeBadRequest)
		}
	}
	s.refuses("no body", http.MethodPost, tokenPath, signedIn(t, "ann"), "", seckill.CodeBadRequest)
	s.refuses("no body", http.MethodPost, payPath, signedIn(t, "ann"), "", seckill.CodeBadRequest)
	s.healthy()
}

// objectOf is a JSON object with that many members.
func objectOf(members int) string {
	var text strings.Builder
	for i := range members {
		fmt.Fprintf(&text, `,"%x":1`, i)
	}
	return "{" + text.String()[1:] + "}"
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// The callbacks are correctly signed, but their content is wrong.
func TestInput_BadCallbackIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	const path = "/api/v1/payments/sandbox/notify"
	good := fmt.Sprintf(`{"order_no":%q,"trade_no":"T-1","amount_cents":100}`, s.no)
	for name, body := range map[string]string{
		"empty object": `{}`, "no order number": `{"trade_no":"T-1","amount_cents":100}`, "no trade number": `{"order_no":"x","amount_cents":100}`,
		"no amount": `{"order_no":"x","trade_no":"T-1"}`, "an array": `[` + good + `]`, "cut short": good[:len(good)-1], "two objects": good + good,
		"a fraction": strings.Replace(good, ":100", ":100.5", 1), "a negative amount": strings.Replace(good, ":100", ":-100", 1),
		"an amount beyond everything": strings.Replace(good, ":100", ":9223372036854775808", 1), "an amount in words": strings.Replace(good, ":100", `:"100"`, 1),
		"an exponent": strings.Replace(good, ":100", ":1e2", 1), "null": strings.Replace(good, ":100", ":null", 1),
		"an empty trade number": strings.Replace(good, "T-1", "", 1), "a long trade number": strings.Replace(good, "T-1", strings.Repeat("t", 65), 1),
		"a trade number with a space": strings.Replace(good, "T-1", "T 1", 1), "a number for a text": strings.Replace(good, `"T-1"`, "1", 1),
		"an unknown member": strings.Replace(good, "{", `{"x":1,`, 1), "a member twice": strings.Replace(good, "{", `{"amount_cents":1,`, 1),
		"a bad currency": strings.Replace(good, "{", `{"currency":"cny",`, 1), "a bad time": strings.Replace(good, "{", `{"paid_at":"noon",`, 1),
		"not UTF-8": strings.Replace(good, "T-1", "T\xff", 1), "huge": strings.Replace(good, "T-1", strings.Repeat("t", 8<<10), 1),
	} {
		got := signed(t, s.e, path, body)
		if got.Status != http.StatusBadRequest || got.Code != seckill.CodeBadRequest {
			t.Errorf("%s: %d %s", name, got.Status, got.Text)
		}
	}
	for _, provider := range []string{"wechat", "Sandbox", "sandbox%20", "x"} {
		if got := signed(t, s.e, "/api/v1/payments/"+provider+"/notify", good); got.Status != http.StatusNotFound {
			t.Errorf("provider %q: %d %s", provider, got.Status, got.Text)
		}
	}
	if payments, err := s.e.Operator().Payments(t.Context(), s.no); err != nil || len(payments) > 0 {
		t.Errorf("payments %+v (%v)", payments, err)
	}
	s.healthy()
}

// It tries tokens that are forged, altered or expired.
func TestInput_BadLoginIsUnauthenticatedEverywhere(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	now := time.Now()
	soon := now.Add(time.Hour).Unix()
	claims := map[string]any{"sub": "ann", "exp": soon}
	good := signToken(t, claims)
	none := sign(t, engine.JWTSecret, map[string]string{"alg": "none"}, claims)
	tokens := map[string]string{
		"wrong secret":           sign(t, engine.SandboxSecret, hs256, claims),
		"empty secret":           sign(t, "", hs256, claims),
		"alg none":               none,
		"alg none, unsigned":     none[:strings.LastIndexByte(none, '.')+1],
		"alg NONE":               sign(t, engine.JWTSecret, map[string]string{"alg": "NonE"}, claims),
		"alg HS512":              sign(t, engine.JWTSecret, map[string]string{"alg": "HS512"}, claims),
		"alg RS256":              sign(t, engine.JWTSecret, map[string]string{"alg": "RS256"}, claims),
		"no alg":                 sign(t, engine.JWTSecret, map[string]string{"typ": "JWT"}, claims),
		"two algs":               sign(t, engine.JWTSecret, `{"alg":"none","alg":"HS256"}`, claims),
		"crit":                   sign(t, engine.JWTSecret, `{"alg":"HS256","crit":["x"],"x":1}`, claims),
		"expired":                signToken(t, map[string]any{"sub": "ann", "exp": now.Add(-2 * time.Minute).Unix()}),
		"not yet valid":          signToken(t, map[string]any{"sub": "ann", "exp": soon, "nbf": now.Add(10 * time.Minute).Unix()}),
		"issued tomorrow":        signToken(t, map[string]any{"sub": "ann", "exp": soon, "iat": now.Add(24 * time.Hour).Unix()}),
		"no sub":                 signToken(t, map[string]any{"exp": soon}),
		"no exp":                 signToken(t, map[string]any{"sub": "ann"}),
		"exp in words":           signToken(t, map[string]any{"sub": "ann", "exp": "tomorrow"}),
		"exp in milliseconds":    signToken(t, map[string]any{"sub": "ann", "exp": now.Add(time.Hour).UnixMilli()}),
		"exp negative":           signToken(t, map[string]any{"sub": "ann", "exp": -1}),
		"sub a number":           signToken(t, map[string]any{"sub": 7, "exp": soon}),
		"sub null":               signToken(t, map[string]any{"sub": nil, "exp": soon}),
		"sub empty":              signToken(t, map[string]any{"sub": "", "exp": soon}),
		"sub of 65 bytes":        signToken(t, map[string]any{"sub": strings.Repeat("a", 65), "exp": soon}),
		"sub with a control":     signToken(t, map[string]any{"sub": "an\nn", "exp": soon}),
		"sub with a NUL":         signToken(t, map[string]any{"sub": "ann\x00", "exp": soon}),
		"sub with DEL":           signToken(t, map[string]any{"sub": "ann\x7f", "exp": soon}),
		"sub not UTF-8":          sign(t, engine.JWTSecret, hs256, fmt.Sprintf(`{"sub":"%s","exp":%d}`, "an\xff", soon)),
		"sub a lone surrogate":   sign(t, engine.JWTSecret, hs256, fmt.Sprintf(`{"sub":"\ud800","exp":%d}`, soon)),
		"two subs":               sign(t, engine.JWTSecret, hs256, fmt.Sprintf(`{"sub":"ann","sub":"bob","exp":%d}`, soon)),
		"a number out of range":  sign(t, engine.JWTSecret, hs256, fmt.Sprintf(`{"sub":"ann","exp":%d,"x":1e400}`, soon)),
		"claims an array":        sign(t, engine.JWTSecret, hs256, `[]`),
		"claims cut":             sign(t, engine.JWTSecret, hs256, `{"sub":"ann"`),
		"signature altered":      good[:len(good)-2] + flip(good[len(good)-2:]),
		"payload altered":        strings.Replace(good, ".", ".A", 1),
		"no signature":           good[:strings.LastIndexByte(good, '.')],
		"empty signature":        good[:strings.LastIndexByte(good, '.')+1],
		"a fourth part":          good + ".x",
		"padded":                 good + "=",
		"longer than 4 KiB":      signToken(t, map[string]any{"sub": "ann", "exp": soon, "x": strings.Repeat("x", 4000)}),
		"one word":               "ann",
		"the operator's":         engine.AdminToken,
		"two tokens":             good + " " + good,
		"a token and a comma":    good + ",",
		"a token in a URL's way": strings.ReplaceAll(good, ".", "%2e"),
	}
	for name, token := range tokens {
		for _, request := range []struct{ method, path string }{
			{"POST", "/api/v1/products/1/orders"}, {"POST", "/api/v1/products/1/challenge"}, {"POST", "/api/v1/products/1/token"}, {"GET", "/api/v1/orders"},
			{"GET", "/api/v1/orders/" + s.no}, {"GET", "/api/v1/orders/" + s.no + "/events"}, {"POST", "/api/v1/orders/" + s.no + "/payment"}, {"POST", "/api/v1/orders/" + s.no + "/cancel"},
		} {
			s.refuses(name, request.method, request.path, bearer(token), "", seckill.CodeUnauthenticated)
		}
	}
	for name, header := range map[string]http.Header{
		"none": nil, "empty": {"Authorization": {""}}, "no scheme": {"Authorization": {good}}, "basic": {"Authorization": {"Basic " + good}},
		"scheme alone": {"Authorization": {"Bearer"}}, "scheme and a space": {"Authorization": {"Bearer "}}, "a tab": {"Authorization": {"Bearer\t" + good}},
	} {
		s.refuses(name, http.MethodGet, "/api/v1/orders", header, "", seckill.CodeUnauthenticated)
	}
	for name, header := range map[string]http.Header{
		"none": nil, "a buyer's": signedIn(t, "ann"), "cut": bearer(engine.AdminToken[:len(engine.AdminToken)-1]), "longer": bearer(engine.AdminToken + "x"), "empty": bearer(""),
	} {
		got := send(t, s.e, http.MethodPost, s.e.AdminURL+"/admin/v1/products/1/end", header, "")
		if got.Status != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("an operator with %s token: %d %s", name, got.Status, got.Text)
		}
	}
	s.healthy()
	checkLog(t, s.e, good, tokens["wrong secret"])
}

// flip changes one character of a base64url text.
func flip(text string) string {
	if text[0] == 'A' {
		return "B" + text[1:]
	}
	return "A" + text[1:]
}

func TestInput_OrderOfAnotherBuyerIsNotFound(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for _, stranger := range []string{"bob", "Ann", "ANN", "ann "} {
		header := signedIn(t, stranger)
		for _, request := range []struct{ method, action, body string }{
			{"GET", "", ""}, {"GET", "/events", ""}, {"POST", "/payment", `{"provider":"sandbox"}`}, {"POST", "/cancel", ""},
		} {
			s.refuses(stranger, request.method, "/api/v1/orders/"+s.no+request.action, header, request.body, seckill.CodeNotFound)
		}
		if got := send(t, s.e, http.MethodGet, s.e.ShopURL+"/api/v1/orders", header, ""); got.Text != `{"orders":[],"partial":false}` {
			t.Errorf("%s sees %s", stranger, got.Text)
		}
	}
	s.healthy()
}

func TestInput_BadKeyIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for _, key := range []string{strings.Repeat("k", 65), strings.Repeat("é", 33), "\xff", "a\u0085b"} {
		header := signedIn(t, "ann")
		header.Set("Idempotency-Key", key)
		s.refuses("key", http.MethodPost, "/api/v1/products/1/orders", header, "{}", seckill.CodeBadRequest)
	}
	s.healthy()
}

func TestInput_BadQueryIsRefused(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for _, query := range []string{
		"limit=0", "limit=-1", "limit=101", "limit=x", "limit=1.5", "limit=99999999999999999999", "limit=%00", "limit=0x10", "limit=%2B5", "limit=05", "limit=",
		"before=x", "before=" + strings.ToLower(s.no), "before=" + s.no + "0", "before=SK", "before=",
	} {
		s.refuses("query", http.MethodGet, "/api/v1/orders?"+query, signedIn(t, "ann"), "", seckill.CodeBadRequest)
	}
	s.healthy()
}

// signed delivers a body that the sandbox provider signed.
func signed(t *testing.T, e *engine.Engine, path, body string) reply {
	t.Helper()
	return send(t, e, http.MethodPost, e.ShopURL+path, http.Header{"X-Signature": {signature(body)}}, body)
}
