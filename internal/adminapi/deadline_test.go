package adminapi

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// patience is far beyond what anything here takes.
const patience = time.Minute

// deaf opens a connection with a small receive buffer, sends a request, and reads
// the first byte of the answer alone.
func (d *fixture) deaf(request string) net.Conn {
	d.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		d.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		d.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		d.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		d.Fatal(err)
	}
	return conn
}

func TestAnswer_SlowClientIsDisconnected(t *testing.T) {
	const size = 64 << 20 // more than a kernel buffers
	ended := make(chan string, 1)
	d := newFixture(t, func(o *Options) {
		o.AnswerTimeout = 50 * time.Millisecond
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) })
		o.Meter = testMeter{request: func(route string, _ int, _ time.Duration) { ended <- route }}
	})
	d.deaf("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	select {
	case route := <-ended:
		if route != "GET /metrics" {
			t.Errorf("%s ended", route)
		}
	case <-time.After(patience):
		t.Fatal("the answer still waits for its reader")
	}
}

// An operation of minutes ends after the server's WriteTimeout. Its answer must
// have a deadline of its own.
func TestAnswer_MayComeAfterServersDeadline(t *testing.T) {
	d := newFixture(t, func(o *Options) {
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w.(*page).ResponseWriter).SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, "up 1\n")
		})
	})
	if got := d.as("localhost", "GET", "/metrics"); got.status != 200 || string(got.body) != "up 1\n" {
		t.Errorf("answered %d %s", got.status, got.body)
	}
}

// deadlines remembers the write deadlines of an answer.
type deadlines struct {
	*httptest.ResponseRecorder
	at []time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.at = append(d.at, at)
	return nil
}

func TestAnswer_ProfilesMayTakeLonger(t *testing.T) {
	e := &engine{}
	handler, err := New(Options{Token: token, Sales: e, Orders: e, Reconciler: e, Records: e, Sinks: fakeSinks{e}, Pprof: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]time.Duration{
		"/healthz": AnswerTimeout, "/nowhere": AnswerTimeout, "/admin/v1/products": AnswerTimeout, "/debug/pprof/cmdline": pprofTimeout, "/debug/pprof/": pprofTimeout,
	} {
		w, r := &deadlines{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRequest("GET", "http://localhost"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		before := time.Now()
		handler.ServeHTTP(w, r)
		after := time.Now()
		if len(w.at) != 1 || w.at[0].Before(before.Add(want)) || w.at[0].After(after.Add(want)) {
			t.Errorf("%s: write deadlines %v, want one %s after the answer began", path, w.at, want)
		}
	}
}

// net/http ignores Transfer-Encoding in HTTP/1.0: the chunk would be the next
// request on the connection.
func TestHTTP10_ChunkedBodyIsNotASecondRequest(t *testing.T) {
	d := newFixture(t, nil)
	const hidden = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
	for _, host := range []string{"127.0.0.1", "evil.example"} {
		conn := d.deaf(fmt.Sprintf("GET /healthz HTTP/1.0\r\nHost: %s\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n%s", host, hidden))
		rest, _ := io.ReadAll(conn) // how it ends does not matter
		in := bufio.NewReader(strings.NewReader("H" + string(rest)))
		first, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, first.Body); err != nil {
			t.Fatal(err)
		}
		if more, _ := io.ReadAll(in); len(more) > 0 {
			t.Errorf("for %s there was a second answer: %s", host, more)
		}
	}
}
