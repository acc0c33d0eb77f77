package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/test/virtual"
)

// wires is a transport with answers of the test.
type wires struct {
	statuses []int // 200 after these
	cut      error // the error instead of an answer
	bodies   []string
}

func (w *wires) RoundTrip(req *http.Request) (*http.Response, error) {
	var body bytes.Buffer
	body.ReadFrom(req.Body)
	w.bodies = append(w.bodies, body.String())
	if w.cut != nil {
		return nil, w.cut
	}
	answer := httptest.NewRecorder()
	if n := len(w.bodies) - 1; n < len(w.statuses) {
		answer.WriteHeader(w.statuses[n])
	}
	return answer.Result(), nil
}

type post struct {
	*Alerter
	wires  *wires
	log    bytes.Buffer
	counts map[Kind]int
	stop   func()
}

// dead is a kind for tests.
var dead = Kind{"dead", "it is dead"}

func newPost(t *testing.T, statuses ...int) *post {
	p := &post{wires: &wires{statuses: statuses}, counts: map[Kind]int{}}
	p.Alerter = New("http://hook.example/services/T0/whisper", slog.New(slog.NewTextHandler(&p.log, nil)), func(kind Kind) { p.counts[kind]++ })
	p.client.Transport = p.wires
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	p.stop = func() { cancel(); <-done }
	return p
}

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRaise_CountsEveryAlertAndSendsOneAMinute(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p := newPost(t)
		for range 3 {
			p.Raise(dead, 1, errors.New("why"))
			wait(10 * time.Second)
		}
		p.Raise(dead, 2, nil) // another product
		wait(time.Second)
		if len(p.wires.bodies) != 2 || p.counts[dead] != 4 {
			t.Errorf("sent %v, counted %v", p.wires.bodies, p.counts)
		}
		wait(time.Minute)
		p.Raise(dead, 1, nil)
		wait(time.Second)
		if len(p.wires.bodies) != 3 {
			t.Errorf("sent %v", p.wires.bodies)
		}
		p.stop()
		var first struct {
			At        time.Time
			Kind      string
			ProductID uint32 `json:"product_id"`
			Detail    string
		}
		if err := json.Unmarshal([]byte(p.wires.bodies[0]), &first); err != nil {
			t.Fatal(err)
		}
		if first.Kind != dead.Text || first.ProductID != 1 || first.Detail != "why" || first.At.IsZero() {
			t.Errorf("sent %+v", first)
		}
		if !strings.Contains(p.log.String(), "alert: "+dead.Text) {
			t.Errorf("the log is %s", p.log.String())
		}
	})
}

func TestRaise_AlertOfATestProductIsOnlyLogged(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.IsTest(func(product uint32) bool { return product == 2 })
		for product := range uint32(3) {
			p.Raise(dead, product, errors.New("why"))
		}
		wait(time.Second)
		p.stop()
		if len(p.wires.bodies) != 2 || p.counts[dead] != 2 {
			t.Errorf("sent %v, counted %v", p.wires.bodies, p.counts)
		}
		if !strings.Contains(p.log.String(), "logged only") {
			t.Errorf("the log is %s", p.log.String())
		}
	})
}

func TestRaiseSink_EachSinkIsNamed(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p := newPost(t)
		for range 2 {
			p.RaiseSink(SinkLags, "shop", errors.New("sink shop: 500"))
			p.RaiseSink(SinkLags, "lake", errors.New("sink lake: away"))
		}
		wait(time.Second)
		p.stop()
		if len(p.wires.bodies) != 2 || p.counts[SinkLags] != 4 {
			t.Errorf("sent %v, counted %v", p.wires.bodies, p.counts)
		}
		for _, name := range []string{"sink shop", "sink lake"} {
			if strings.Count(p.log.String(), name) != 1 || strings.Count(strings.Join(p.wires.bodies, ""), name) != 1 {
				t.Errorf("%s: log %s, sent %v", name, p.log.String(), p.wires.bodies)
			}
		}
	})
}

func TestWebhook_IsTriedThreeTimes(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []int
		sent     int
		warned   bool
	}{
		"it comes back":       {[]int{500, 503}, 3, false},
		"it stays away":       {[]int{500, 500, 500}, 3, true},
		"a redirect is no ok": {[]int{304, 304, 304}, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				p := newPost(t, c.statuses...)
				p.Raise(dead, 1, nil)
				wait(time.Minute)
				p.stop()
				if len(p.wires.bodies) != c.sent || strings.Contains(p.log.String(), "not delivered") != c.warned {
					t.Errorf("sent %d times, log %s", len(p.wires.bodies), p.log.String())
				}
			})
		})
	}
}

func TestWebhook_AddressIsNotLogged(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.wires.cut = errors.New("connection refused")
		p.Raise(dead, 1, nil)
		wait(time.Minute)
		p.stop()
		if log := p.log.String(); !strings.Contains(log, "connection refused") || strings.Contains(log, "whisper") {
			t.Errorf("the log is %s", log)
		}
	})
}

func TestRaise_NeverBlocksAndMemoryIsBounded(t *testing.T) {
	a := New("http://hook.example/", slog.New(slog.DiscardHandler), func(Kind) {})
	for i := range 3 * maxKnown { // no goroutine sends
		a.Raise(Kind{Label: fmt.Sprint("kind ", i)}, 0, nil)
	}
	if len(a.queue) != maxQueued || len(a.last) > maxKnown {
		t.Errorf("%d wait, %d are remembered", len(a.queue), len(a.last))
	}
}

func TestRaise_LogsWithoutAWebhook(t *testing.T) {
	var log bytes.Buffer
	a := New("", slog.New(slog.NewTextHandler(&log, nil)), func(Kind) {})
	a.Raise(dead, 1, errors.New("why"))
	if !strings.Contains(log.String(), "why") || len(a.queue) != 0 {
		t.Errorf("log %s, %d wait", log.String(), len(a.queue))
	}
}

func TestWebhook_SwitchedProtocolIsAFailure(t *testing.T) {
	release := make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		<-release
	}))
	t.Cleanup(hook.Close)
	defer close(release)
	a := New(hook.URL, slog.New(slog.DiscardHandler), func(Kind) {})
	if err := a.post(t.Context(), []byte("{}")); err == nil || !strings.Contains(err.Error(), "webhook answered 101") {
		t.Error(err)
	}
}

func TestWebhook_RedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var elsewhere atomic.Int32
		inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
		t.Cleanup(inside.Close)
		hook := httptest.NewServer(http.RedirectHandler(inside.URL, status))
		t.Cleanup(hook.Close)
		a := New(hook.URL, slog.New(slog.DiscardHandler), func(Kind) {})
		if err := a.post(t.Context(), []byte("{}")); err == nil || !strings.Contains(err.Error(), "webhook answered") {
			t.Errorf("%d: %v", status, err)
		}
		if n := elsewhere.Load(); n != 0 {
			t.Errorf("%d: the redirect was followed", status)
		}
	}
}
