package verifier_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/challenge"
	"seckill/internal/challenge/verifier"
)

var secret = []byte("secret")

// shop is a shop's own verifier.
func shop(t *testing.T, answer http.HandlerFunc) *verifier.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A server notices that its client is gone only after it has read the body.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return verifier.New(server.URL+"/verify?key=hunter2", secret)
}

func reply(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

func TestVerify_RequestIsSignedAndComplete(t *testing.T) {
	c := shop(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		want := `{"challenge_id":"c1","answer":"<\"答案\">","buyer":"小明","product_id":7,"addr":"192.0.2.1"}`
		if got := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(body)); err != nil || got != want {
			t.Errorf("asked %s, %v", got, err)
		}
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.URL.RequestURI() != "/verify?key=hunter2" {
			t.Errorf("%s %s as %s", r.Method, r.URL, r.Header.Get("Content-Type"))
		}
		if r.Header.Get("X-Signature") != verifier.Signature(secret, body) || len(r.Header.Get("X-Signature")) != 64 {
			t.Errorf("signed %q", r.Header.Get("X-Signature"))
		}
		io.WriteString(w, `{"ok":true,"score":0.9}`)
	})
	ok, err := c.Verify(t.Context(), challenge.Question{
		ChallengeID: "c1", Answer: `<"答案">`, Buyer: "小明", ProductID: 7, Addr: netip.MustParseAddr("::ffff:192.0.2.1"),
	})
	if !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestVerify_OnlyOKTruePasses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		ok     bool
		said   bool
	}{
		{"yes", reply(200, `{"ok":true}`), true, true},
		{"no", reply(200, ` {"ok":false,"reason":"robot"} `), false, true},
		{"an error", reply(500, `{"ok":true}`), false, false},
		{"not found", reply(404, `{"ok":true}`), false, false},
		{"created", reply(201, `{"ok":true}`), false, false},
		{"nothing", reply(200, ``), false, false},
		{"null", reply(200, `null`), false, false},
		{"without ok", reply(200, `{"success":true}`), false, false},
		{"ok as text", reply(200, `{"ok":"true"}`), false, false},
		{"a page", reply(200, `<html>welcome to the hotel</html>`), false, false},
		{"a huge body", reply(200, `{"ok":true,"x":"`+strings.Repeat("x", 1<<20)+`"}`), false, false},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/yes", http.StatusTemporaryRedirect)
		}, false, false},
		{"a broken connection", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ok, err := shop(t, tc.answer).Verify(t.Context(), challenge.Question{Answer: "x"})
			if ok != tc.ok || (err == nil) != tc.said {
				t.Errorf("%v, %v", ok, err)
			}
			if err != nil && (seckill.CodeOf(err) != seckill.CodeBusy || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("code %s: %v", seckill.CodeOf(err), err)
			}
		})
	}
}

func TestVerify_BoundsTheReply(t *testing.T) {
	c := shop(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(" ", 4096)); err != nil {
				return
			}
		}
	})
	if ok, err := c.Verify(t.Context(), challenge.Question{}); ok || err == nil || !strings.Contains(err.Error(), "a reply of more than") {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestVerify_SlowServerTimesOut(t *testing.T) {
	c := shop(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	began := time.Now()
	ok, err := c.Verify(t.Context(), challenge.Question{})
	if took := time.Since(began); ok || err == nil || took < verifier.Deadline || took > 2*verifier.Deadline {
		t.Errorf("%v, %v after %s", ok, err, took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Verify(ctx, challenge.Question{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with less time: %v", err)
	}
}

func TestVerify_SwitchedProtocolIsAnError(t *testing.T) {
	release := make(chan struct{})
	c := shop(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		<-release
	})
	defer close(release)
	if ok, err := c.Verify(t.Context(), challenge.Question{}); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestVerify_UnreachableServerIsAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if ok, err := verifier.New(server.URL+"/?key=hunter2", secret).Verify(t.Context(), challenge.Question{}); ok || err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v, %v", ok, err)
	}
}
