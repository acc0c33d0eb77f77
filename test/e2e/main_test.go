// Package e2e sends HTTP requests to the real binary, as shoppers, payment
// providers and operators do. It checks every exchange against openapi.yaml. At
// the end of each test it searches the engine's log for secrets.
package e2e

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/apitest"
	"seckill/internal/payment/paysandbox"

	"seckill/test/engine"
)

func TestMain(m *testing.M) {
	// These tests wait more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(engine.Main(m))
}

const (
	// settleWithin bounds every wait for the engine.
	settleWithin = 30 * time.Second
	pollEvery    = 10 * time.Millisecond
	price        = 100 // cents, as engine.OpenSale sets it
)

// loadSpec reads openapi.yaml once. Only tests that record their own operations
// read it again.
var loadSpec = sync.OnceValues(apitest.Load)

// start runs an engine for this test alone and checks all its traffic.
func start(t *testing.T, settings map[string]string) *engine.Engine {
	t.Helper()
	spec, err := loadSpec()
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, spec, settings)
}

func startWith(t *testing.T, spec *apitest.Spec, settings map[string]string) *engine.Engine {
	t.Helper()
	e := engine.New(t, engine.Options{Settings: settings})
	e.Through(func(base http.RoundTripper) http.RoundTripper { return spec.Client(t, base).Transport })
	t.Cleanup(func() { checkLog(t, e) })
	e.Start()
	return e
}

// jwt is any JSON Web Token: a header and more, in base64url.
var jwt = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}`)

// checkLog fails the test if the engine logged a secret.
func checkLog(t *testing.T, e *engine.Engine, more ...string) {
	t.Helper()
	log := e.Log()
	for _, secret := range append(more, engine.JWTSecret, engine.SandboxSecret, engine.TokenSecret, engine.AdminToken, "Authorization", "Bearer ") {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	if token := jwt.FindString(log); token != "" {
		t.Errorf("the log has a token: %q", token)
	}
}

// eventually polls until holds returns true. It fails the test after a
// deadline.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	within(t, settleWithin, what, holds)
}

func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %s", limit, what)
		case <-tick.C:
		}
	}
}

// openSale creates and preheats a product that is on sale now.
func openSale(t *testing.T, e *engine.Engine, p engine.Product) {
	t.Helper()
	if _, err := e.Operator().OpenSale(t.Context(), p); err != nil {
		t.Fatalf("open a sale: %v", err)
	}
}

// patch changes a product as the operator. Tests move the start and the end of
// a sale at the moment they need it, so that a slow machine does not matter.
func patch(t *testing.T, e *engine.Engine, id uint32, member string, to any) {
	t.Helper()
	if _, err := e.Operator().Patch(t.Context(), id, map[string]any{member: to}); err != nil {
		t.Fatalf("change %s: %v", member, err)
	}
}

// claim buys as the page does. It repeats the request under one key while the
// answer is busy, as it may be on a busy machine.
func claim(t *testing.T, b *engine.Buyer, product uint32, p engine.Purchase) (no string, err error) {
	t.Helper()
	if p.Key == "" {
		p.Key = rand.Text()
	}
	eventually(t, "the claim of "+b.Name+" is decided", func() bool {
		no, err = b.Buy(t.Context(), product, p)
		return !undecided(err)
	})
	return no, err
}

// cancelled cancels an order. It repeats after busy; the first request may have
// cancelled the order then.
func cancelled(t *testing.T, b *engine.Buyer, no string) {
	t.Helper()
	tried := false
	eventually(t, "order "+no+" is cancelled", func() bool {
		_, err := b.Cancel(t.Context(), no)
		if undecided(err) {
			tried = true
			return false
		}
		if err != nil && !(tried && engine.CodeOf(err) == seckill.CodeWrongState) {
			t.Fatalf("cancel order %s: %v", no, err)
		}
		return true
	})
}

// undecided reports whether an answer is neither yes nor no.
func undecided(err error) bool {
	code := engine.CodeOf(err)
	return code == seckill.CodeBusy || code == seckill.CodeTooHot
}

// buy buys and waits until the order is pending.
func buy(t *testing.T, b *engine.Buyer, product uint32, p engine.Purchase) string {
	t.Helper()
	no, err := claim(t, b, product, p)
	if err != nil {
		t.Fatalf("%s buys %+v of product %d: %v", b.Name, p, product, err)
	}
	await(t, b, no, "pending")
	return no
}

// await waits until a buyer's order has the status, and returns the order.
func await(t *testing.T, b *engine.Buyer, no, status string) (order api.Order) {
	t.Helper()
	eventually(t, "order "+no+" is "+status, func() bool {
		var err error
		if order, err = b.Order(t.Context(), no); err != nil && !undecided(err) {
			t.Fatalf("read order %s: %v", no, err)
		}
		return err == nil && order.Status == status
	})
	return order
}

// refused fails the test unless err is a refusal with this code.
func refused(t *testing.T, what string, err error, code seckill.Code) *engine.Refusal {
	t.Helper()
	refusal, _ := err.(*engine.Refusal)
	if refusal == nil || refusal.Code != code || refusal.Status != code.Status() {
		t.Fatalf("%s: got %v, want %s", what, err, code)
	}
	return refusal
}

// reply is the unchanged answer.
type reply struct {
	Status int
	Header http.Header
	Text   string
	api.Document
}

// send makes any request. A body is JSON unless the header names another type.
func send(t *testing.T, e *engine.Engine, method, url string, header http.Header, body string) reply {
	t.Helper()
	return sendBy(t, e.HTTP(), method, url, header, body)
}

func sendBy(t *testing.T, client *http.Client, method, url string, header http.Header, body string) reply {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, content)
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	got := reply{Status: res.StatusCode, Header: res.Header, Text: string(text)}
	if res.Header.Get("Content-Type") == api.ProblemType && method != http.MethodHead {
		if err := json.Unmarshal(text, &got.Document); err != nil {
			t.Fatalf("%s %s: problem document %q: %v", method, url, text, err)
		}
	}
	return got
}

// decode reads an answer's JSON.
func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// member is one member of an answer, as text.
func member(t *testing.T, text, name string) string {
	t.Helper()
	return fmt.Sprint(decode[map[string]any](t, text)[name])
}

// signedIn is the header of a buyer.
func signedIn(t *testing.T, name string) http.Header {
	t.Helper()
	return bearer(signToken(t, map[string]any{"sub": name, "exp": time.Now().Add(time.Hour).Unix()}))
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// operating is the header of an operator.
func operating(name string) http.Header {
	header := bearer(engine.AdminToken)
	header.Set("X-Operator", name)
	return header
}

// money is a callback of the sandbox provider; fields that are not set are left
// out.
type money struct {
	OrderNo  string `json:"order_no"`
	TradeNo  string `json:"trade_no"`
	Amount   int64  `json:"amount_cents"`
	Currency string `json:"currency,omitempty"`
}

// notify delivers money, signed with a secret.
func notify(t *testing.T, e *engine.Engine, secret string, m money) reply {
	t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{paysandbox.SignatureHeader: {engine.Signature(secret, body)}}
	return send(t, e, http.MethodPost, e.ShopURL+"/api/v1/payments/sandbox/notify", header, string(body))
}

// deliver sends a callback as a provider does: it repeats while the engine is
// busy, for example because the order is still queued.
func deliver(t *testing.T, e *engine.Engine, m money) (got reply) {
	t.Helper()
	eventually(t, "the money of "+m.OrderNo+" is taken or refused", func() bool {
		got = notify(t, e, engine.SandboxSecret, m)
		return got.Code != seckill.CodeBusy
	})
	return got
}

// signature is the sandbox provider's signature of a body.
func signature(body string) string {
	return engine.Signature(engine.SandboxSecret, []byte(body))
}

// pay pays an order exactly.
func pay(t *testing.T, e *engine.Engine, order api.Order) {
	t.Helper()
	if got := notify(t, e, engine.SandboxSecret, money{order.OrderNo, "T-" + order.OrderNo, order.AmountCents, ""}); got.Status != http.StatusOK {
		t.Fatalf("pay %s: %d %s", order.OrderNo, got.Status, got.Text)
	}
}
