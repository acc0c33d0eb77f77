package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/config"
)

// operator is an operator API that answers as told and notes what was asked.
type operator struct {
	url     string
	dataDir string // of the server whose generated token it wants

	mu    sync.Mutex
	asked []string
	query string // of the last request
}

func newOperator(t *testing.T, answers map[string]string) *operator {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	if err := cfg.FillSecrets(); err != nil {
		t.Fatal(err)
	}
	op := &operator{dataDir: cfg.DataDir}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request := strings.TrimSpace(r.Method + " " + strings.TrimPrefix(r.URL.Path, "/admin/v1/") + " " + string(body))
		op.mu.Lock()
		op.asked, op.query = append(op.asked, request), r.URL.RawQuery
		op.mu.Unlock()
		answer, known := answers[request]
		switch {
		case r.Header.Get("Authorization") != "Bearer "+cfg.Admin.Token.Reveal():
			api.WriteProblem(w, &seckill.Error{Code: seckill.CodeUnauthenticated}, seckill.English)
		case !known:
			api.WriteProblem(w, seckill.Errorf(seckill.CodeNotFound, "product 1"), seckill.English)
		default:
			_, _ = io.WriteString(w, answer)
		}
	}))
	t.Cleanup(server.Close)
	op.url = server.URL
	return op
}

func (op *operator) execute(t *testing.T, line string, setups ...setup) result {
	t.Helper()
	return execute(t, append(strings.Fields(line), "--admin", op.url, "--data-dir", op.dataDir), setups...)
}

func (op *operator) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	op.mu.Lock()
	defer op.mu.Unlock()
	if !slices.Equal(op.asked, want) {
		t.Errorf("asked %q, want %q", op.asked, want)
	}
	op.asked = nil
}

func TestPreheat_CallsOperatorAPI(t *testing.T) {
	op := newOperator(t, map[string]string{"POST products/1/preheat {}": `{"id":1,"epoch":3}`})
	op.execute(t, "preheat 1").want(t, exitOK, "product 1 is preheated: epoch 3", "")
	op.execute(t, "preheat 2").want(t, exitFailure, "", "not_found: Not found. (product 1)")
	op.execute(t, "preheat 1", environ("SECKILL_ADMIN_TOKEN=another-token-of-16")).want(t, exitFailure, "", "unauthenticated")
	execute(t, []string{"preheat", "1", "--data-dir", t.TempDir()}).want(t, exitFailure, "", "set admin.token")
	execute(t, []string{"preheat", "1", "--data-dir", op.dataDir, "--admin", "http://127.0.0.1:1"}).want(t, exitFailure, "", "reach the operator API")
}

func TestReconcile_ExitCodeFollowsResult(t *testing.T) {
	const request = `POST reconciliations {"product_id":1,"repair":false}`
	for name, c := range map[string]struct {
		answer   string
		code     int
		out, err string
	}{
		"balanced":       {`{"product_id":1,"balanced":true,"violations":[],"repaired":[]}`, 0, "product 1 is balanced", ""},
		"not balanced":   {`{"product_id":1,"balanced":false,"violations":[{"promise":"I1","expected":"10","found":"9","detail":"d"}]}`, 1, "I1: expected 10, found 9: d", "not balanced"},
		"could not tell": {`{"product_id":1,"balanced":null}`, 2, "", "could not tell"},
		"no report":      {`<html>`, 2, "", "read the operator API's answer"},
	} {
		t.Run(name, func(t *testing.T) {
			op := newOperator(t, map[string]string{request: c.answer})
			op.execute(t, "reconcile 1").want(t, c.code, c.out, c.err)
			if got := op.execute(t, "reconcile 1 --json"); c.code < 2 && !json.Valid([]byte(got.out)) || got.code != c.code {
				t.Errorf("--json: exit %d, out %q", got.code, got.out)
			}
		})
	}
	op := newOperator(t, nil)
	op.execute(t, "reconcile 1").want(t, exitUsage, "", "not_found")
	op.execute(t, "reconcile 1 --set worker.batch_size=0").want(t, exitUsage, "", "worker.batch_size")
}

func TestRepair_NeedsConfirmation(t *testing.T) {
	const request = `POST reconciliations {"product_id":1,"repair":true}`
	op := newOperator(t, map[string]string{request: `{"product_id":1,"balanced":true,"repaired":["one buyer record"]}`})
	op.execute(t, "reconcile 1 --repair").want(t, exitUsage, "", "--yes")
	op.execute(t, "reconcile 1 --repair", onTerminal("n\n")).want(t, exitUsage, "", "nothing was changed")
	op.execute(t, "reconcile 1 --repair", onTerminal("")).want(t, exitUsage, "", "nothing was changed")
	op.wantAsked(t)
	op.execute(t, "reconcile 1 --repair", onTerminal("Yes\n")).want(t, exitOK, "repaired: one buyer record", "[y/N]")
	op.execute(t, "reconcile 1 --repair --yes").want(t, exitOK, "repaired: one buyer record", "")
	op.wantAsked(t, request, request)
}

func TestRecover_NeedsConfirmation(t *testing.T) {
	op := newOperator(t, map[string]string{
		"GET products/1":             `{"id":1,"name":"shoe","epoch":3}`,
		"POST products/1/recover {}": `{"id":1,"name":"shoe","epoch":4}`,
	})
	op.execute(t, "recover 1").want(t, exitUsage, "", "--yes")
	op.execute(t, "recover 1", onTerminal("\n")).want(t, exitFailure, "", "nothing was changed")
	op.wantAsked(t, "GET products/1", "GET products/1")
	op.execute(t, "recover 1", onTerminal("y\n")).want(t, exitOK, "product 1 is recovered: epoch 4, was 3", `Rebuild the ledger of product 1, "shoe", epoch 3?`)
	op.execute(t, "recover 1 --yes").want(t, exitOK, "epoch 4", "")
	op.wantAsked(t, "GET products/1", "POST products/1/recover {}", "GET products/1", "POST products/1/recover {}")
	op.execute(t, "recover 1 --yes --reason drill").want(t, exitFailure, "", "not_found")
	op.wantAsked(t, "GET products/1", `POST products/1/recover {"reason":"drill"}`)
	op.execute(t, "recover 2 --yes").want(t, exitFailure, "", "not_found")
}

func TestDelete_NeedsConfirmation(t *testing.T) {
	op := newOperator(t, map[string]string{
		"GET products/1":    `{"id":1,"name":"shoe"}`,
		"DELETE products/1": `{"product_id":1,"orders":5}`,
		"DELETE products/3": `{"product_id":3,"orders":2}`,
	})
	op.execute(t, "delete 1").want(t, exitUsage, "", "--yes")
	op.execute(t, "delete 1", onTerminal("\n")).want(t, exitFailure, "", "nothing was changed")
	op.wantAsked(t, "GET products/1", "GET products/1")
	op.execute(t, "delete 1", onTerminal("y\n")).want(t, exitOK, "product 1 is deleted with its orders", `Delete product 1, "shoe", with its orders for good?`)
	op.execute(t, "delete 1 --yes --reason rehearsed").want(t, exitOK, "product 1 is deleted", "")
	if op.query != "reason=rehearsed" {
		t.Errorf("the query is %q", op.query)
	}
	op.wantAsked(t, "GET products/1", "DELETE products/1", "GET products/1", "DELETE products/1")
	op.execute(t, "delete 2 --yes").want(t, exitFailure, "", "not_found")
	// One that nobody finds may be half deleted.
	op.execute(t, "delete 3 --yes").want(t, exitOK, "product 3 is deleted", "")
}

func TestTakeover_NeedsConfirmation(t *testing.T) {
	op := newOperator(t, map[string]string{
		"GET products/1":              `{"id":1,"name":"shoe","limit_group":7,"epoch":3}`,
		"POST products/1/takeover {}": `{"id":1,"name":"shoe","limit_group":7,"epoch":4,"seller":"store"}`,
	})
	op.execute(t, "takeover 1").want(t, exitUsage, "", "--yes")
	op.execute(t, "takeover 1", onTerminal("\n")).want(t, exitFailure, "", "nothing was changed")
	op.wantAsked(t, "GET products/1", "GET products/1")
	op.execute(t, "takeover 1", onTerminal("y\n")).want(t, exitOK, "the store takes product 1 over: epoch 4, was 3", `Have the store sell product 1, "shoe", and its limit group 7?`)
	op.execute(t, "takeover 1 --yes").want(t, exitOK, "epoch 4", "")
	op.wantAsked(t, "GET products/1", "POST products/1/takeover {}", "GET products/1", "POST products/1/takeover {}")
	op.execute(t, "takeover 1 --yes --reason drill").want(t, exitFailure, "", "not_found")
	op.wantAsked(t, "GET products/1", `POST products/1/takeover {"reason":"drill"}`)
	op.execute(t, "takeover 2 --yes").want(t, exitFailure, "", "not_found")
}

func TestRecover_SaysThatRedisSellsAgain(t *testing.T) {
	op := newOperator(t, map[string]string{
		"GET products/1":             `{"id":1,"name":"shoe","limit_group":7,"epoch":4,"seller":"store"}`,
		"POST products/1/recover {}": `{"id":1,"name":"shoe","limit_group":7,"epoch":5,"seller":"ledger"}`,
	})
	op.execute(t, "recover 1", onTerminal("y\n")).want(t, exitOK, "epoch 5, was 4", `Return product 1, "shoe", and its limit group 7 to Redis?`)
}

func TestTakeover_SaysThatItWasDoneBefore(t *testing.T) {
	op := newOperator(t, map[string]string{
		"GET products/1":              `{"id":1,"name":"shoe","epoch":4,"seller":"store"}`,
		"POST products/1/takeover {}": `{"id":1,"name":"shoe","epoch":4,"seller":"store"}`,
	})
	op.execute(t, "takeover 1 --yes").want(t, exitOK, "takeover 1: nothing to do: the store sells it already, epoch 4", "")
}
