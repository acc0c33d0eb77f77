package loadtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"seckill/internal/loadtest"
	"seckill/test/engine"
)

// tokenProxy is a proxy before an engine that requires purchase tokens. It makes
// tokens expire when the test says so: it changes their expiry or refuses a request.
// It forwards everything else.
type tokenProxy struct {
	*httptest.Server
	// refuse reports whether a buyer's request is refused, by the buyer's
	// earlier requests.
	refuse func(*visits) bool
	// ended names the answers with a past expiry: "challenge", "token".
	ended string

	mu     sync.Mutex
	buyers map[string]*visits // by their Authorization
}

// visits counts a buyer's requests.
type visits struct {
	challenges, tokens, presses int
	// passed is the number of forwarded purchases. spent: one was forwarded since
	// the last token.
	passed int
	spent  bool
}

var anyEnd = regexp.MustCompile(`"expires_at":"[^"]*"`)

func newTokenProxy(t *testing.T, e *engine.Engine, refuse func(*visits) bool) *tokenProxy {
	t.Helper()
	to, err := url.Parse(e.ShopURL)
	if err != nil {
		t.Fatal(err)
	}
	d := &tokenProxy{refuse: refuse, buyers: make(map[string]*visits)}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(res *http.Response) error {
		if d.ended == "" || !strings.HasSuffix(res.Request.URL.Path, "/"+d.ended) {
			return nil
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		body = anyEnd.ReplaceAll(body, []byte(`"expires_at":"2020-01-01T00:00:00.000Z"`))
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		res.Header.Del("Content-Length")
		return nil
	}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.passes(r) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]any{"status": 403, "code": "token_invalid"})
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

// passes counts a request and reports whether it is forwarded.
func (d *tokenProxy) passes(r *http.Request) bool {
	if r.Method != http.MethodPost {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	who := r.Header.Get("Authorization")
	if d.buyers[who] == nil {
		d.buyers[who] = new(visits)
	}
	v := d.buyers[who]
	switch {
	case strings.HasSuffix(r.URL.Path, "/challenge"):
		v.challenges++
	case strings.HasSuffix(r.URL.Path, "/token"):
		v.tokens++
		v.spent = false
	case strings.HasSuffix(r.URL.Path, "/orders"):
		v.presses++
		if d.refuse != nil && d.refuse(v) {
			return false
		}
		v.passed++
		v.spent = true
	}
	return true
}

// every checks a condition for each buyer with a purchase request.
func (d *tokenProxy) every(t *testing.T, want func(v visits) bool) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.buyers {
		if v.presses > 0 && !want(*v) {
			t.Errorf("a buyer did %+v", *v)
		}
	}
}

// tokenSale is a sale with one unit per buyer. Every buyer repeats the request.
func tokenSale(t *testing.T, d *tokenProxy, e *engine.Engine) *loadtest.Report {
	t.Helper()
	opt := options(e, "runs-out")
	opt.ShopURL, opt.Buyers, opt.Units, opt.Repeat, opt.Pay, opt.Cancel = d.URL, 20, 40, 1, 0, 0
	report, err := loadtest.Run(t.Context(), newOperator(t, e), opt)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func startWithTokens(t *testing.T) *engine.Engine {
	t.Helper()
	return engine.Start(t, engine.Options{Settings: map[string]string{"token.required": "true", "challenge.kind": "pow", "challenge.pow_bits": "4"}})
}

func check(t *testing.T, r *loadtest.Report, name string) loadtest.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q", name)
	return loadtest.Check{}
}

func TestToken_ExpiredTokenIsRenewed(t *testing.T) {
	e := startWithTokens(t)
	d := newTokenProxy(t, e, func(v *visits) bool { return v.spent }) // one press per token
	d.ended = "token"
	report := tokenSale(t, d, e)
	if report.Verdict != loadtest.Holds || report.Won != 20 || report.Answers["token_invalid"] != 0 || report.TokensFetched < 20 || report.NoToken != 0 {
		t.Errorf("report %+v", report)
	}
	// The challenge is still valid: its answer gives a token for the same order.
	d.every(t, func(v visits) bool { return v.challenges == 1 && v.passed >= 2 })
}

func TestToken_RefusedTokenIsRenewedForSameOrder(t *testing.T) {
	e := startWithTokens(t)
	d := newTokenProxy(t, e, func(v *visits) bool { return v.spent }) // one press per token
	report := tokenSale(t, d, e)
	if report.Verdict != loadtest.Holds || report.Won != 20 || report.Repeated != 20 || report.Answers["token_invalid"] < 20 || report.TokensFetched < 20 {
		t.Errorf("report %+v", report)
	}
	d.every(t, func(v visits) bool { return v.challenges == 1 && v.tokens >= 2 })
}

func TestToken_NewChallengeAllowedBeforeFirstOrder(t *testing.T) {
	e := startWithTokens(t)
	d := newTokenProxy(t, e, func(v *visits) bool { return v.challenges < 2 })
	d.ended = "challenge"
	report := tokenSale(t, d, e)
	if report.Verdict != loadtest.Holds || report.Won != 20 || report.Answers["token_invalid"] < 20 {
		t.Errorf("report %+v", report)
	}
	d.every(t, func(v visits) bool { return v.challenges == 2 && v.passed >= 2 })
}

// A new challenge makes a token with another key. As a repeat it would be a second
// purchase.
func TestToken_RepeatWithExpiredChallengeIsUnknown(t *testing.T) {
	e := startWithTokens(t)
	d := newTokenProxy(t, e, func(v *visits) bool { return v.spent })
	d.ended = "challenge"
	report := tokenSale(t, d, e)
	keys := check(t, report, "same key, same order")
	if report.Verdict != loadtest.Unknown || report.Won != 20 || keys.Verdict != loadtest.Unknown || !strings.Contains(keys.Detail, "20 could not be repeated") {
		t.Errorf("%+v in report %+v", keys, report)
	}
	d.every(t, func(v visits) bool { return v.challenges == 1 && v.passed == 1 })
}

func TestToken_RequestsWithoutValidTokenAreNoFault(t *testing.T) {
	e := startWithTokens(t)
	passed := 0
	d := newTokenProxy(t, e, func(*visits) bool { passed++; return passed > 10 })
	report := tokenSale(t, d, e)
	if report.Verdict != loadtest.Unknown || report.Won > 10 || report.NoToken != 20-report.Won {
		t.Errorf("report %+v", report)
	}
	undersell := check(t, report, "no undersell")
	if undersell.Verdict != loadtest.Unknown || !strings.Contains(undersell.Detail, "for want of a purchase token") {
		t.Errorf("%+v", undersell)
	}
	for _, c := range report.Checks {
		if c.Verdict == loadtest.Broken {
			t.Errorf("%+v", c)
		}
	}
	var text strings.Builder
	if err := report.WriteText(&text); err != nil || !strings.Contains(text.String(), "had none that lived") {
		t.Errorf("the report does not say it (%v):\n%s", err, text.String())
	}
}

func TestToken_FetchTimeIsMeasuredAndReported(t *testing.T) {
	e := startWithTokens(t)
	for ended, want := range map[string]string{
		"":      `128 purchase tokens took \S+, the other 172 take about \S+: the crowd comes in about \S+ \S+ late$`,
		"token": `128 purchase tokens took \S+, the other 172 take about \S+: the crowd comes in .*; about 172 fetch theirs on the way, for another \S+, as tokens run out`,
	} {
		d := newTokenProxy(t, e, nil)
		d.ended = ended
		opt := options(e, "measured-"+ended)
		opt.ShopURL, opt.Buyers = d.URL, 300
		var mu sync.Mutex
		var said []string
		opt.Phase = func(what string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, what)
		}
		report, err := loadtest.Run(t.Context(), newOperator(t, e), opt)
		if err != nil || report.Verdict != loadtest.Holds || (report.TokensFetched > 0) != (ended != "") {
			t.Fatalf("report %+v, %v", report, err)
		}
		if all := strings.Join(said, "\n"); !regexp.MustCompile("(?m)" + want).MatchString(all) {
			t.Errorf("said\n%s", all)
		}
	}
}
