package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth_NamesPartThatIsNotReady(t *testing.T) {
	for _, c := range []struct {
		status   int
		body     string
		code     int
		out, err string
	}{
		{http.StatusOK, `{"status":"ok","checks":[{"name":"store","ok":true}]}`, exitOK, "ready", ""},
		{http.StatusServiceUnavailable, `{"status":"failing","checks":[{"name":"store","ok":true},{"name":"ledger","ok":false,"error":"connection refused"}]}`,
			exitFailure, "", "ledger: connection refused"},
		{http.StatusBadGateway, `<h1>not ours</h1>`, exitFailure, "", "read the answer"},
	} {
		instance := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				t.Errorf("asked for %s", r.URL)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		at := strings.TrimPrefix(instance.URL, "http://")
		execute(t, []string{"health", "--set", "admin.listen=" + at}).want(t, c.code, c.out, c.err)
		instance.Close()
		execute(t, []string{"health", "--set", "admin.listen=" + at}).want(t, exitFailure, "", "connection refused")
	}
}
