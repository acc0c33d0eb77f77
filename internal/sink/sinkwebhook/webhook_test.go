package sinkwebhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/sink"
)

const (
	secret   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	previous = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

func message() *sink.Message {
	return &sink.Message{ID: "evt_1", Key: "k", Type: "seckill.order.paid", Body: []byte(`{"id":"evt_1"}`)}
}

func receiver(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func webhook(t *testing.T, opt Options) *Webhook {
	t.Helper()
	if opt.Secret == "" {
		opt.Secret = secret
	}
	w, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	return w
}

// The test vector of the specification's own libraries.
func TestSign_MatchesTheSpecification(t *testing.T) {
	s, err := newSigner(secret, "")
	if err != nil {
		t.Fatal(err)
	}
	got := s.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature is %s, want %s", got, want)
	}
}

func TestDeliver_PostsSignedMessage(t *testing.T) {
	var got *http.Request
	var body []byte
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	w := webhook(t, Options{URL: server.URL + "/hook?x=1", AllowPrivate: true, PreviousSecret: previous, Now: func() time.Time { return time.Unix(1614265330, 0) }})
	status, err := w.Deliver(t.Context(), message())
	if err != nil || status != "204" {
		t.Fatal(status, err)
	}
	if got.Method != http.MethodPost || got.URL.String() != "/hook?x=1" || string(body) != `{"id":"evt_1"}` {
		t.Errorf("got %s %s with %s", got.Method, got.URL, body)
	}
	if got.Header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" || got.Header.Get("webhook-id") != "evt_1" || got.Header.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("headers are %v", got.Header)
	}
	// A receiver with either secret can check the signature.
	signatures := strings.Fields(got.Header.Get("webhook-signature"))
	if len(signatures) != 2 {
		t.Fatalf("signatures are %v", signatures)
	}
	for i, known := range []string{secret, previous} {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(known, "whsec_"))
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", got.Header.Get("webhook-id"), got.Header.Get("webhook-timestamp"), body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); signatures[i] != want {
			t.Errorf("signature %d is %s, want %s", i, signatures[i], want)
		}
	}
}

func TestDeliver_MapsAnswersToErrors(t *testing.T) {
	cases := []struct {
		status        int
		header        string
		ok, rejected  bool
		answered      bool
		later         time.Duration
		says, notSays string
	}{
		{status: 200, ok: true},
		{status: 202, ok: true},
		{status: 204, ok: true},
		{status: 301, answered: true, says: "redirects are not followed"},
		{status: 302, answered: true, says: "redirects are not followed"},
		{status: 307, answered: true, says: "redirects are not followed"},
		{status: 400, rejected: true},
		{status: 401, answered: true},
		{status: 404, answered: true},
		{status: 408},
		{status: 410, answered: true, says: "410 Gone"},
		{status: 422, rejected: true},
		{status: 429, header: "7", later: 7 * time.Second},
		{status: 429},
		{status: 500, answered: true, says: "500 Internal Server Error"},
		{status: 502},
		{status: 504},
		{status: 507, answered: true},
		{status: 503, header: "120", later: 2 * time.Minute},
		{status: 503, header: "soon"},
		{status: 503, header: time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), later: time.Hour},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.status, c.header), func(t *testing.T) {
			var calls atomic.Int32
			server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
			})
			w := webhook(t, Options{URL: server.URL + "/s3cret", AllowPrivate: true})
			status, err := w.Deliver(t.Context(), message())
			if status != fmt.Sprint(c.status) || (err == nil) != c.ok || calls.Load() != 1 {
				t.Fatalf("status %q, error %v, %d calls", status, err, calls.Load())
			}
			var later *sink.Later
			var rejected *sink.Rejected
			var answered *sink.Answered
			if errors.As(err, &rejected) != c.rejected || errors.As(err, &answered) != c.answered {
				t.Errorf("rejected %v, answered %v: %v", rejected != nil, answered != nil, err)
			}
			if errors.As(err, &later); (later != nil) != (c.later > 0) || later != nil && (later.After-c.later).Abs() > 5*time.Second {
				t.Errorf("later is %+v", later)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestDeliver_SlowReceiverEndsWithTheContext(t *testing.T) {
	release := make(chan struct{})
	server := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	w := webhook(t, Options{URL: server.URL, AllowPrivate: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if status, err := w.Deliver(ctx, message()); !errors.Is(err, context.DeadlineExceeded) || status != "" {
		t.Errorf("status %q, error %v", status, err)
	}
}

// After 101 the connection belongs to the client, and its reads have no
// deadline.
func TestDeliver_SwitchingProtocolsFails(t *testing.T) {
	release := make(chan struct{})
	server := receiver(t, switchProtocols(t, release))
	defer close(release)
	w := webhook(t, Options{URL: server.URL, AllowPrivate: true})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if status, err := w.Deliver(ctx, message()); err == nil || status != "101" || ctx.Err() != nil {
		t.Errorf("status %q, error %v", status, err)
	}
}

// switchProtocols answers 101 and keeps the connection open.
func switchProtocols(t *testing.T, release <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		<-release
	}
}

// An endless answer is a success by its status.
func TestDeliver_ReadsABoundedAnswer(t *testing.T) {
	var written atomic.Int64
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat("x", 32<<10))
		for {
			n, err := w.Write(chunk)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	})
	w := webhook(t, Options{URL: server.URL, AllowPrivate: true})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if status, err := w.Deliver(ctx, message()); err != nil || status != "200" {
		t.Errorf("status %q, error %v", status, err)
	}
	if n := written.Load(); n > 64<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

func TestDeliver_ReusesConnections(t *testing.T) {
	seen := map[string]bool{}
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		seen[r.RemoteAddr] = true
		io.WriteString(w, "thank you")
	})
	w := webhook(t, Options{URL: server.URL, AllowPrivate: true})
	for range 5 {
		if _, err := w.Deliver(t.Context(), message()); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 1 {
		t.Errorf("%d connections", len(seen))
	}
}

func TestDeliver_VerifiesTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	w := webhook(t, Options{URL: server.URL, AllowPrivate: true})
	if _, err := w.Deliver(t.Context(), message()); err == nil {
		t.Error("an unknown certificate was accepted")
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	w = webhook(t, Options{URL: server.URL, AllowPrivate: true, roots: roots})
	if _, err := w.Deliver(t.Context(), message()); err != nil {
		t.Error(err)
	}
}

func TestDeliver_IgnoresProxiesOfTheEnvironment(t *testing.T) {
	var proxied atomic.Bool
	proxy := receiver(t, func(http.ResponseWriter, *http.Request) { proxied.Store(true) })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("ALL_PROXY", proxy.URL)
	w := webhook(t, Options{URL: "http://shop.invalid/hook", AllowPrivate: true})
	if _, err := w.Deliver(t.Context(), message()); err == nil || proxied.Load() {
		t.Errorf("error %v, proxied %v", err, proxied.Load())
	}
}

// The address is checked when it is dialled, so a name that resolves to a
// private address is refused too.
func TestDeliver_RefusesPrivateAddresses(t *testing.T) {
	var called atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Store(true) }))
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"} {
		if _, err := New(Options{URL: "https://" + host + ":" + port + "/", Secret: secret}); err == nil || !strings.Contains(err.Error(), "allow_private") {
			t.Errorf("%s: error is %v", host, err)
		}
	}
	for _, host := range []string{"2130706433", "127.1", "0x7f.1"} { // some resolvers accept them
		w := webhook(t, Options{URL: "https://" + host + ":" + port + "/"})
		if _, err := w.Deliver(t.Context(), message()); err == nil || called.Load() {
			t.Errorf("%s was reached: %v", host, err)
		}
	}
	if err := refusePrivate("tcp", "127.0.0.1:"+port, nil); err == nil || !strings.Contains(err.Error(), "allow_private") {
		t.Errorf("error is %v", err)
	}
}

func TestNew_RefusesWrongOptions(t *testing.T) {
	cases := map[string]Options{
		"no address":      {Secret: secret},
		"another scheme":  {URL: "ftp://shop.example.com", Secret: secret},
		"a user":          {URL: "https://user:hunter2@shop.example.com", Secret: secret},
		"plain HTTP":      {URL: "http://shop.example.com", Secret: secret},
		"a fragment":      {URL: "https://shop.example.com/#hunter2", Secret: secret},
		"this machine":    {URL: "https://localhost/hunter2", Secret: secret},
		"a private one":   {URL: "https://10.1.2.3/hunter2", Secret: secret},
		"no secret":       {URL: "https://shop.example.com"},
		"another prefix":  {URL: "https://shop.example.com", Secret: "hunter2_" + secret},
		"no base64":       {URL: "https://shop.example.com", Secret: "whsec_hunter2!"},
		"too short":       {URL: "https://shop.example.com", Secret: "whsec_aHVudGVyMg=="},
		"too long":        {URL: "https://shop.example.com", Secret: "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65))},
		"a wrong old one": {URL: "https://shop.example.com", Secret: secret, PreviousSecret: "hunter2"},
	}
	for name, opt := range cases {
		if _, err := New(opt); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}
