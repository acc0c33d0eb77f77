// Package shop tests the example shop together with the real engine. Two
// programs, two databases and the network between them can each fail.
package shop

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/test/browser"
	"seckill/test/engine"
	"seckill/test/loopback"
	"seckill/test/server"
)

const (
	readyWithin   = 30 * time.Second
	answerWithin  = 10 * time.Second
	pollEvery     = 10 * time.Millisecond
	operatorToken = "test-shop-operator-0123456789abcdef012345"
	sku           = "POCKET-BUDS"
)

// webhookKey is known to the engine and the shop.
var webhookKey = []byte("test-webhook-secret-0123456789abcdef")

func webhookSecret() string { return "whsec_" + base64.StdEncoding.EncodeToString(webhookKey) }

func TestMain(m *testing.M) {
	os.Exit(browser.Main(func() int {
		defer func() {
			if built.dir != "" {
				os.RemoveAll(built.dir)
			}
		}()
		return engine.Main(m)
	}))
}

// built is the shop's binary, compiled once for this test run.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "seckill-shop-"); built.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", filepath.Join(built.dir, "shop"), "seckill/examples/shop").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build the shop: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "shop")
}

// market is an engine and a shop, and the networks between them.
type market struct {
	t      *testing.T
	engine *engine.Engine
	shop   *process
	// toShop carries webhooks; toEngine carries the shop's requests.
	toShop, toEngine *server.NetProxy
	http             *http.Client
}

// openMarket starts both programs and puts the SKU on flash sale. Settings are
// the engine's.
func openMarket(t *testing.T, settings map[string]string) *market {
	t.Helper()
	address, release, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	m := &market{t: t, toShop: server.Proxy(t, address), http: &http.Client{Timeout: answerWithin}}
	t.Cleanup(m.http.CloseIdleConnections)
	settings = engine.Join(map[string]string{"shop.cors_origins": "http://" + address}, settings, m.sinkSettings())
	m.engine = engine.Start(t, engine.Options{Settings: settings})
	m.toEngine = server.Proxy(t, m.engine.ShopURL[len("http://"):])
	m.shop = &process{
		t: t, url: "http://" + address, path: binary(t),
		args: []string{"-listen", address, "-db", filepath.Join(t.TempDir(), "shop.db"), "-engine", "http://" + m.toEngine.Addr(), "-engine-admin", m.engine.AdminURL},
		env: append(os.Environ(), "SHOP_ENGINE_TOKEN="+engine.AdminToken, "SHOP_JWT_SECRET="+engine.JWTSecret, "SHOP_SANDBOX_SECRET="+engine.SandboxSecret,
			"SHOP_OPERATOR_TOKEN="+operatorToken, "SHOP_WEBHOOK_SECRETS="+webhookSecret()),
	}
	m.shop.Start()
	t.Cleanup(m.shop.Kill)
	m.putOnSale()
	return m
}

// sinkSettings is the engine's configuration file with the shop as its sink.
func (m *market) sinkSettings() map[string]string {
	m.t.Helper()
	file := filepath.Join(m.t.TempDir(), "seckill.yaml")
	text := fmt.Sprintf("sinks:\n  - name: shop\n    kind: webhook\n    url: http://%s/webhooks/seckill\n    secret: %s\n    allow_private: true\n    retry_delays: [100ms, 500ms, 1s, 2s, 5s, 5s, 5s, 5s, 5s, 5s]\n",
		m.toShop.Addr(), webhookSecret())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return map[string]string{"config": file} // the variable SECKILL_CONFIG
}

// putOnSale starts a flash sale as the shop's operator.
func (m *market) putOnSale() {
	m.t.Helper()
	sale := map[string]any{
		"sku": sku, "price_cents": 4900, "stock": 100_000, "per_user_limit": 1000,
		"starts_at": time.Now().Add(-time.Minute).UTC(), "ends_at": time.Now().Add(12 * time.Hour).UTC(),
	}
	if err := m.askShop(m.t.Context(), http.MethodPost, "/flash-sales", sale, nil); err != nil {
		m.t.Fatalf("put the SKU on sale: %v", err)
	}
}

// askShop sends a request to the shop as its operator.
func (m *market) askShop(ctx context.Context, method, path string, body, result any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, m.shop.url+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	res, err := m.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s is answered with %d: %s", method, path, res.StatusCode, text)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

// process is the shop's program; it can be restarted.
type process struct {
	t    *testing.T
	url  string
	path string
	args []string
	env  []string

	cmd   *exec.Cmd // nil while no process runs
	ended chan struct{}
}

// Start starts the shop and waits until it answers.
func (p *process) Start() {
	p.t.Helper()
	cmd := exec.Command(p.path, p.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, p.t.Output(), p.t.Output()
	// The child must end if the test process is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatalf("start the shop: %v", err)
	}
	p.cmd, p.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) {
		_ = cmd.Wait() // the log shows how it ended
		close(ended)
	}(p.ended)
	ctx, cancel := context.WithTimeout(p.t.Context(), readyWithin)
	defer cancel()
	err := until(ctx, func() error {
		res, err := http.Get(p.url + "/healthz")
		if err != nil {
			return err
		}
		return res.Body.Close()
	})
	if err != nil {
		p.t.Fatalf("the shop is not ready: %v", err)
	}
}

// Kill ends the shop as kill -9 does.
func (p *process) Kill() { p.end(syscall.SIGKILL) }

// Stop asks the shop to end.
func (p *process) Stop() { p.end(syscall.SIGTERM) }

func (p *process) end(signal syscall.Signal) {
	if p.cmd == nil {
		return
	}
	p.Signal(signal)
	<-p.ended
	p.cmd = nil
}

// Signal sends the shop a signal.
func (p *process) Signal(signal syscall.Signal) {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal the shop: %v", err)
	}
}

// until polls until check has no error, or returns its last one.
func until(ctx context.Context, check func() error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
