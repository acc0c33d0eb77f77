package app

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/internal/api"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carriertest"
	"seckill/internal/carrier/relay"
	"seckill/internal/config"
	"seckill/internal/sink"
	"seckill/test/rig"
)

// deafClients opens connections to the operator's port that ask and do not read.
// When it returns, each waits for the server, and the server for each of them.
func deafClients(t *testing.T, a *App, n int) {
	t.Helper()
	// The answers of one connection are more than the kernel buffers.
	requests := strings.Repeat("GET /openapi.yaml HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 60)
	for range n {
		conn, err := net.Dial("tcp", a.adminListener.Addr().String())
		rig.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		rig.Must(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
		rig.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(conn, requests)
		rig.Must(t, err)
		_, err = io.ReadFull(conn, make([]byte, 1)) // the first answer has begun
		rig.Must(t, err)
	}
}

func TestStop_ClientsThatDoNotReadDoNotMakeItFail(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Shop.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	a.adminPatience = 100 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	deafClients(t, a, 20)
	began := time.Now()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("after %s the stop ends with %v", time.Since(began), err)
	}
}

// deafCarrier does not answer when it is left.
type deafCarrier struct{ *carriertest.Memory }

func (deafCarrier) Close(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// deafTarget is a sink whose Close does not return before the test's end.
type deafTarget struct {
	sink.Target
	end <-chan struct{}
}

func (d deafTarget) Close(context.Context) error {
	<-d.end
	return nil
}

func TestStop_BrokersThatDoNotAnswerLeaveTheLedgerItsTime(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Shop.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	a, err := New(cfg, Options{})
	rig.Must(t, err)
	p := a.parts
	p.line = relay.New(relay.Options{
		Name: "relay", Outbox: p.queue, Store: p.store, Logger: p.log, Meter: p.metrics.Carrier(),
		Open: func(context.Context) (carrier.Carrier, error) { return deafCarrier{carriertest.NewMemory()}, nil },
	})
	for _, name := range []string{"a", "b", "c"} {
		p.sinks.admin.Targets[name] = deafTarget{end: t.Context().Done()}
	}
	closing := &closingLedger{baseLedger: p.base}
	p.base = closing
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	rig.Until(t, "the broker is open", func() bool { return !p.line.Bypassed() })
	began := time.Now()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the stop ends with %v", err)
	}
	if took := time.Since(began); took > 2*leaveDeadline {
		t.Errorf("the stop took %s", took)
	}
	if closing.left < closeDeadline/2 {
		t.Errorf("the ledger had %s to close, of %s", closing.left, closeDeadline)
	}
}

// closingLedger notes how much time it has to close.
type closingLedger struct {
	baseLedger
	left time.Duration
}

func (l *closingLedger) Shutdown(ctx context.Context) error {
	until, _ := ctx.Deadline()
	l.left = time.Until(until)
	return l.baseLedger.Shutdown(ctx)
}

func TestAdminServer_BoundsAnswersAndConnections(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Shop.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	a := started(t, cfg, func(*parts) {})
	if a.adminServer.WriteTimeout == 0 {
		t.Error("net/http's own answers have no write deadline")
	}
	_, most := adminConns(api.Handles())
	for range most { // each is idle after its answer, and stays
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		res, err := client.Get(a.AdminURL() + "/healthz")
		rig.Must(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		rig.Must(t, err)
		rig.Must(t, res.Body.Close())
	}
	client := &http.Client{Transport: &http.Transport{}}
	if res, err := client.Get(a.AdminURL() + "/healthz"); err == nil {
		res.Body.Close()
		t.Errorf("one more than %d connections of one address: answered %d", most, res.StatusCode)
	}
}

func TestAdminConns_LeaveHandlesToTheLedgerAndTheStore(t *testing.T) {
	for handles, want := range map[int][2]int{0: {1024, 256}, 1 << 20: {1024, 256}, 10_000: {500, 250}, 1000: {50, 25}, 10: {2, 1}} {
		if all, perAddr := adminConns(handles); all != want[0] || perAddr != want[1] {
			t.Errorf("with %d handles %d connections, %d from one address, want %v", handles, all, perAddr, want)
		}
	}
}
