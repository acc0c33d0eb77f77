package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill"

	"seckill/internal/api"
)

const token = "0123456789abcdef"

func client(t *testing.T, url string, timeout time.Duration) *api.Client {
	t.Helper()
	c, err := api.NewClient(api.ClientOptions{URL: url, Token: token, Timeout: timeout, Operator: "cli", Reason: "drill"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serve answers the one request that is expected.
func serve(t *testing.T, wantRequest, wantBody string, answer http.HandlerFunc) *api.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if got := r.Method + " " + r.URL.Path; got != wantRequest || string(body) != wantBody {
			t.Errorf("request %s %s, want %s %s", got, body, wantRequest, wantBody)
		}
		if got := r.Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("Authorization %q", got)
		}
		if got := r.Header.Get("X-Operator"); got != "cli" {
			t.Errorf("X-Operator %q", got)
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return client(t, server.URL+"/", time.Minute)
}

func write(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestClient_CallsDocumentedPaths(t *testing.T) {
	ctx := t.Context()
	product := write(`{"id":7,"name":"shoe","epoch":3,"unknown":true}`)
	for _, c := range []struct {
		request, body string
		call          func(*api.Client) (uint64, error)
	}{
		{"GET /admin/v1/products/7", "", func(c *api.Client) (uint64, error) { p, err := c.Product(ctx, 7); return p.Epoch, err }},
		{"POST /admin/v1/products/7/preheat", `{"reason":"drill"}`, func(c *api.Client) (uint64, error) { p, err := c.Preheat(ctx, 7); return p.Epoch, err }},
		{"POST /admin/v1/products/7/takeover", `{"reason":"drill"}`, func(c *api.Client) (uint64, error) { p, err := c.TakeOver(ctx, 7); return p.Epoch, err }},
		{"POST /admin/v1/products/7/recover", `{"reason":"drill"}`, func(c *api.Client) (uint64, error) { p, err := c.Recover(ctx, 7); return p.Epoch, err }},
	} {
		if epoch, err := c.call(serve(t, c.request, c.body, product)); err != nil || epoch != 3 {
			t.Errorf("%s: epoch %d, err %v", c.request, epoch, err)
		}
	}
}

func TestClient_ReconcileReadsReport(t *testing.T) {
	unbalanced := false
	sent := api.Report{
		ID: 9, ProductID: 7, At: time.Unix(1, 0).UTC(), Balanced: &unbalanced, Repaired: []string{"a buyer record"}, Figures: map[string]int64{"offered": 10},
		Violations: []api.Violation{{Promise: "I1", Expected: "10", Found: "9", Detail: "one is gone"}},
	}
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, "POST /admin/v1/reconciliations", `{"product_id":7,"repair":true,"reason":"drill"}`, write(string(text)))
	if got, err := c.Reconcile(t.Context(), 7, true); err != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("report %+v, err %v, want %+v", got, err, sent)
	}
	c = serve(t, "POST /admin/v1/reconciliations", `{"product_id":7,"repair":false,"reason":"drill"}`, write(`{"balanced":null}`))
	if report, err := c.Reconcile(t.Context(), 7, false); err != nil || report.Balanced != nil {
		t.Errorf("could not tell: %+v, %v", report, err)
	}
}

func TestClient_RefusalShowsCodeAndText(t *testing.T) {
	c := serve(t, "POST /admin/v1/products/7/preheat", `{"reason":"drill"}`, func(w http.ResponseWriter, _ *http.Request) {
		api.WriteProblem(w, seckill.Errorf(seckill.CodeWrongState, "the sale has ended"), seckill.English)
	})
	_, err := c.Preheat(t.Context(), 7)
	var refusal *api.Refusal
	if !errors.As(err, &refusal) || refusal.Status != 409 || refusal.Document.Code != seckill.CodeWrongState {
		t.Fatalf("err %#v", err)
	}
	if got, want := err.Error(), "wrong_state: This is not possible in the present state. (the sale has ended)"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

func TestClient_ForeignAnswerIsAnError(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"html error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"not json": write("hello"),
		"huge":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 5<<20)) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			panic(http.ErrAbortHandler)
		},
		"bad problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", api.ProblemType)
			w.WriteHeader(500)
		},
	} {
		c := serve(t, "GET /admin/v1/products/7", "", answer)
		if product, err := c.Product(t.Context(), 7); err == nil {
			t.Errorf("%s: accepted as %+v", name, product)
		}
	}
}

func TestClient_EveryCallEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	url := "http://" + silent.Addr().String()
	if _, err := client(t, url, 50*time.Millisecond).Preheat(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "outcome is unknown") {
		t.Errorf("a silent server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client(t, url, time.Minute).Preheat(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	silent.Close()
	if _, err := client(t, url, time.Minute).Preheat(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "reach the operator API at "+url) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestClient_BadOptionsAreRefused(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:8081", "ftp://x", "http://", "http://\x00"} {
		if _, err := api.NewClient(api.ClientOptions{URL: url, Token: token}); err == nil {
			t.Errorf("address %q accepted", url)
		}
	}
	if _, err := api.NewClient(api.ClientOptions{URL: "http://x"}); err == nil {
		t.Error("no token accepted")
	}
}

func TestClient_FollowsNoRedirect(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		c := serve(t, "POST /admin/v1/products/7/preheat", `{"reason":"drill"}`, http.RedirectHandler(other.URL, status).ServeHTTP)
		if _, err := c.Preheat(t.Context(), 7); err == nil {
			t.Errorf("%d: accepted", status)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestNew_AddressHasNoUserAndNoQuery(t *testing.T) {
	for _, address := range []string{"http://u:hunter2@127.0.0.1:8081", "http://127.0.0.1:8081/?key=hunter2", "hunter2"} {
		_, err := api.NewClient(api.ClientOptions{URL: address, Token: token})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
