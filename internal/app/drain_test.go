package app

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/internal/config"
	"seckill/test/rig"
)

// A stopping shop fails its readiness while it goes on serving, then closes its
// port, and gives each kept-alive connection one more answer.
func TestDrain_ReadinessThenPortThenConnections(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Shop.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Shop.Drain = 3 * time.Second
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()

	kept := dialHTTP(t, a.shopListener.Addr().String())
	if got := kept.get(t, "/readyz"); got.StatusCode != http.StatusOK || got.Close {
		t.Fatalf("before the stop: %d, close %v", got.StatusCode, got.Close)
	}
	stop()
	for _, url := range []string{a.ShopURL(), a.AdminURL()} {
		eventually(t, url+"/readyz fails", func() bool {
			res, err := http.Get(url + "/readyz")
			rig.Must(t, err)
			defer res.Body.Close()
			return res.StatusCode == http.StatusServiceUnavailable
		})
	}
	if got := kept.get(t, "/healthz"); got.StatusCode != http.StatusOK || got.Close {
		t.Errorf("while the port is open, an answer ends its connection: %d, close %v", got.StatusCode, got.Close)
	}
	eventually(t, "the port is closed", func() bool {
		conn, err := net.Dial("tcp", a.shopListener.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if got := kept.get(t, "/healthz"); got.StatusCode != http.StatusOK || !got.Close {
		t.Errorf("when the port is closed: %d, close %v", got.StatusCode, got.Close)
	}
	if err := <-ended; err != nil {
		t.Errorf("the stop ended with %v", err)
	}
}

// An idle connection costs a stop shop.drain, and not the server's timeouts.
func TestDrain_EndsWithIdleConnections(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Shop.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	kept := dialHTTP(t, a.shopListener.Addr().String())
	kept.get(t, "/healthz")
	began := time.Now()
	stop()
	rig.Must(t, <-ended)
	t.Logf("stopped within %s", time.Since(began))
	if _, err := kept.reader.ReadByte(); err != io.EOF {
		t.Errorf("the idle connection ended with %v", err)
	}
}

// eventually polls until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const within, every = 30 * time.Second, 5 * time.Millisecond
	deadline := time.After(within)
	poll := time.NewTicker(every)
	defer poll.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", within, what)
		case <-poll.C:
		}
	}
}

// keptConn is a connection that asks again and again.
type keptConn struct {
	net.Conn
	reader *bufio.Reader
}

func dialHTTP(t *testing.T, address string) keptConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	rig.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	rig.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return keptConn{conn, bufio.NewReader(conn)}
}

func (c keptConn) get(t *testing.T, path string) *http.Response {
	t.Helper()
	_, err := io.Copy(c, strings.NewReader("GET "+path+" HTTP/1.1\r\nHost: shop\r\n\r\n"))
	rig.Must(t, err)
	res, err := http.ReadResponse(c.reader, nil)
	rig.Must(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	rig.Must(t, err)
	res.Body.Close()
	return res
}

// A loop that does not end, because a part breaks its promise to return in time,
// must not keep the process.
func TestStop_DoesNotWaitForALoopThatDoesNotEnd(t *testing.T) {
	a, release := &App{}, make(chan struct{})
	a.loops.Go(func() { <-release })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := a.awaitLoops(ctx); err == nil {
		t.Error("it says that all have ended")
	}
	close(release)
	if err := a.awaitLoops(t.Context()); err != nil {
		t.Error(err)
	}
}
