package apitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"seckill"
)

// loadOnce is shared by the tests that need no record of their own: loading
// is slow under the race detector.
var loadOnce = sync.OnceValues(Load)

func load(t *testing.T) *Spec {
	t.Helper()
	spec, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestTheDescriptionIsValid(t *testing.T) {
	described := 0
	load(t).each("", func(string, *openapi3.Operation) { described++ })
	if described < 38 { // 12 of the shop, 4 of machines, the rest of the operator
		t.Errorf("only %d operations are described", described)
	}
}

func check(spec *Spec, method, path, body string, status int, contentType, answer string) error {
	request := httptest.NewRequest(method, path, nil)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response := &http.Response{
		StatusCode: status, Request: request, Header: http.Header{"Content-Type": {contentType}},
	}
	return spec.Check(request, []byte(body), response, []byte(answer))
}

func TestCheckFindsWhatIsNotDescribed(t *testing.T) {
	const (
		accepted = `{"order_no":"SK01M757NBG70000008J6JNWTNKR","status":"queued"}`
		soldOut  = `{"type":"urn:seckill:sold_out","title":"Sold out.","status":409,"code":"sold_out"}`
		notFound = `{"type":"urn:seckill:not_found","title":"Not found.","status":404,"code":"not_found"}`
		plain    = "application/json"
		buy      = "/api/v1/products/1/orders"
	)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		contentType        string
		answer, complaint  string
	}{
		"good":              {"POST", buy, `{"quantity":1}`, 202, plain, accepted, ""},
		"good refusal":      {"POST", buy, `{"quantity":1}`, 409, problemType, soldOut, ""},
		"no such path":      {"GET", "/nowhere", "", 404, problemType, notFound, ""},
		"refused bad input": {"POST", buy, `{"quantity":"x"}`, 409, problemType, soldOut, ""},
		"granted bad input": {"POST", buy, `{"quantity":0}`, 202, plain, accepted, "not allowed"},
		"extra member":      {"POST", buy, `{}`, 202, plain, strings.Replace(accepted, "{", `{"x":1,`, 1), "not described"},
		"missing member":    {"POST", buy, `{}`, 202, plain, `{"status":"queued"}`, "not described"},
		"other status":      {"POST", buy, `{}`, 418, plain, accepted, "not described"},
		"other media type":  {"POST", buy, `{}`, 202, "text/html", accepted, "media type"},
		"other code":        {"POST", buy, `{}`, 409, problemType, strings.ReplaceAll(soldOut, "sold_out", "not_found"), "not described"},
		"status in body":    {"POST", buy, `{}`, 409, problemType, strings.Replace(soldOut, "409", "410", 1), "does not fit"},
		"success nowhere":   {"GET", "/nowhere", "", 200, plain, accepted, "not described"},
		"html nowhere":      {"GET", "/nowhere", "", 404, "text/html", "<html>", "text/html"},
		"405 without Allow": {"PUT", buy, "", 405, problemType, notFound, "Allow"},
		"405 of ours":       {"POST", buy, "", 405, problemType, notFound, "answered 405"},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(load(t), c.method, c.path, c.body, c.status, c.contentType, c.answer)
			switch {
			case c.complaint == "" && err != nil:
				t.Errorf("unexpected complaint: %v", err)
			case c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)):
				t.Errorf("got %v, want a complaint about %q", err, c.complaint)
			}
		})
	}
}

func TestUntriedAndUnseenListWhatIsLeft(t *testing.T) {
	loaded := load(t)
	spec := &Spec{doc: loaded.doc, router: loaded.router, seen: map[exchange]bool{}} // with a record of its own
	const notYet = `{"type":"urn:seckill:busy","title":"Busy.","status":503,"code":"busy"}`
	if err := check(spec, "GET", "/api/v1/time", "", 503, problemType, notYet); err != nil {
		t.Fatal(err)
	}
	if got := spec.Untried("/api/v1/time"); len(got) != 1 || got[0] != "GET /api/v1/time" {
		t.Errorf("a refusal counted as success: %v", got)
	}
	if got := spec.Unseen("/api/v1/time"); len(got) != 1 || got[0] != "GET /api/v1/time 200" {
		t.Errorf("unseen: %v", got)
	}
	if err := check(spec, "GET", "/api/v1/time", "", 200, "application/json", `{"now_ms":1}`); err != nil {
		t.Fatal(err)
	}
	if got := append(spec.Untried("/api/v1/time"), spec.Unseen("/api/v1/time")...); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

func TestEveryCodeIsDescribed(t *testing.T) {
	described := load(t).doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum
	codes := seckill.Codes()
	if len(described) != len(codes) {
		t.Fatalf("described %v, the table has %v", described, codes)
	}
	for i, code := range codes {
		if described[i] != string(code) {
			t.Errorf("described %v in the place of %s", described[i], code)
		}
	}
}
