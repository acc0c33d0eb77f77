package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
)

// The public port answers 404 to every operator request, also with the
// operator's token.
func TestOperator_APIIsNotOnThePublicPort(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"admin.pprof": "true"})
	fill := strings.NewReplacer("{id}", "1", "{order_no}", "SK01M757NBG70000008J6JNWTNKR")
	asked := 0
	for _, operation := range append(described(t), "GET /debug/pprof/heap") {
		method, path, _ := strings.Cut(operation, " ")
		if !strings.HasPrefix(path, "/admin/") && path != "/metrics" && !strings.HasPrefix(path, "/debug/") {
			continue
		}
		asked++
		if got := sendBy(t, http.DefaultClient, method, e.ShopURL+fill.Replace(path), operating("ann"), "{}"); got.Status != http.StatusNotFound {
			t.Errorf("%s: %d %s", operation, got.Status, got.Text)
		}
	}
	if asked < 20 {
		t.Errorf("only %d operations were asked for", asked)
	}
}

// Each response has its content type and sets no cookie. Caches may not keep
// data of a buyer.
func TestResponse_HasSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	ann := signedIn(t, "ann")
	for _, c := range []struct {
		method, path string
		header       http.Header
		body         string
	}{
		{"GET", "/", nil, ""}, {"GET", "/nowhere", nil, ""}, {"GET", "/api/v1/time", nil, ""}, {"GET", "/api/v1/products", nil, ""}, {"GET", "/api/v1/orders", ann, ""},
		{"GET", "/api/v1/orders/" + s.no, ann, ""}, {"GET", "/api/v1/orders", nil, ""}, {"POST", "/api/v1/products/1/orders", nil, "{}"}, {"POST", "/api/v1/products/1/orders", ann, "{}"},
		{"POST", "/api/v1/login", nil, `{"code":"x"}`}, {"GET", "/api/v1/page", nil, ""}, {"GET", "/sandbox/pay", nil, ""}, {"GET", "/healthz", nil, ""}, {"DELETE", "/api/v1/time", nil, ""},
		{"HEAD", "/api/v1/time", nil, ""}, {"HEAD", "/api/v1/products/1", nil, ""}, {"HEAD", "/api/v1/orders", ann, ""}, {"HEAD", "/api/v1/orders/" + s.no, ann, ""},
		{"HEAD", "/api/v1/orders/" + s.no + "/events", ann, ""}, {"HEAD", "/api/v1/orders/" + s.no + "/events", nil, ""}, {"HEAD", "/api/v1/page", nil, ""},
	} {
		got := sendBy(t, http.DefaultClient, c.method, s.e.ShopURL+c.path, c.header, c.body)
		h := got.Header
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Set-Cookie") != "" || h.Get("Server") != "" || h.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s %s: %v", c.method, c.path, h)
		}
		if strings.HasPrefix(c.path, "/api/") && h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s may be kept: %q", c.method, c.path, h.Get("Cache-Control"))
		}
	}
}

// The client sends requests and reads no answer.
func TestConnection_ClientThatNeverReadsIsClosed(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	l := dial(t, s.e)
	if err := l.conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if err := l.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	ask, began := strings.Repeat("GET /openapi.yaml HTTP/1.1\r\nHost: shop\r\n\r\n", 100), time.Now()
	for l.write(ask) == nil { // blocks when all buffers are full, and fails when the engine closes the connection
	}
	if took := time.Since(began); took > 30*time.Second { // the bound is 10 s; the rest is for a busy machine
		t.Errorf("cut off after %s", took)
	}
	buy(t, s.e.Buyer("bob"), 1, engine.Purchase{Quantity: 1})
}

// The shop reads its certificate from files, refuses old TLS versions and sends
// HSTS.
func TestShop_ServesTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, pool := certificate(t)
	e := start(t, map[string]string{"shop.tls_cert": certFile, "shop.tls_key": keyFile})
	slow, cut := dial(t, e), make(chan time.Duration, 1)
	go func() { cut <- slow.drip("\x16\x03\x01\x02\x00") }() // a handshake that never ends
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	client := func(change func(*tls.Config)) *http.Client {
		cfg := &tls.Config{RootCAs: pool, ServerName: "shop.test"}
		if change != nil {
			change(cfg)
		}
		transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: settleWithin}
	}
	secure := "https" + strings.TrimPrefix(e.ShopURL, "http")
	got := sendBy(t, client(nil), http.MethodPost, secure+"/api/v1/products/1/orders", signedIn(t, "ann"), "{}")
	if got.Status != http.StatusAccepted || got.Header.Get("Strict-Transport-Security") == "" {
		t.Fatalf("%d %v %s", got.Status, got.Header, got.Text)
	}
	no := member(t, got.Text, "order_no")
	eventually(t, "the order is there", func() bool {
		return strings.Contains(sendBy(t, client(nil), http.MethodGet, secure+"/api/v1/orders/"+no, signedIn(t, "ann"), "").Text, `"pending"`)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, secure+"/api/v1/orders/"+no+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = signedIn(t, "ann")
	res, err := client(nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != "event: order\n" || res.Proto != "HTTP/1.1" {
		t.Errorf("the stream begins %q (%v) in %s", line, err, res.Proto)
	}
	if _, err := client(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }).Get(secure + "/"); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if res, err := http.Get(e.ShopURL + "/"); err == nil {
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %d", res.StatusCode)
		}
	}
	if took := <-cut; took > 20*time.Second { // the bound is 10 s; the rest is for a busy machine
		t.Errorf("a greeting that never ends was cut off after %s", took)
	}
	e.MustStop() // streams and idle connections do not delay it
}

// certificate writes a certificate and key for shop.test. The pool trusts it.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"shop.test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, pool
}

// A stream of the real binary takes less than 20 KB. All streams get the event.
func TestOrderStream_ThousandsTakeLittleMemory(t *testing.T) {
	const buyers, each, most = 64, 16, 20 << 10
	e := start(t, map[string]string{"admin.pprof": "true"})
	openSale(t, e, engine.Product{ID: 1, Stock: buyers})
	requests := make([]string, buyers)
	var nos [buyers]string
	for i := range requests {
		name := fmt.Sprint("buyer-", i)
		nos[i] = buy(t, e.Buyer(name), 1, engine.Purchase{Quantity: 1})
		requests[i] = "GET /api/v1/orders/" + nos[i] + "/events HTTP/1.1\r\nHost: shop\r\nAuthorization: " + signedIn(t, name).Get("Authorization") + "\r\n\r\n"
	}
	before := inUse(t, e)
	lines := make([]*line, 0, buyers*each)
	for i := range buyers * each {
		lines = append(lines, openLine(t, e, requests[i%buyers]))
	}
	bytes := (inUse(t, e) - before) / (buyers * each)
	if bytes > most {
		t.Errorf("a stream takes %d bytes, bound %d", bytes, most)
	}
	t.Logf("%d streams take %d bytes each", len(lines), bytes)
	if got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/orders/"+nos[0]+"/events", signedIn(t, "buyer-0"), ""); got.Code != seckill.CodeTooHot {
		t.Errorf("one stream too many of a buyer: %d %s", got.Status, got.Text)
	}
	for i, no := range nos {
		pay(t, e, await(t, e.Buyer(fmt.Sprint("buyer-", i)), no, "pending"))
	}
	var heard sync.WaitGroup
	for _, l := range lines {
		l.conn.SetDeadline(time.Now().Add(settleWithin))
		heard.Go(func() { l.until(t, `"paid"`) })
	}
	heard.Wait()
}

// openLine opens an event stream and reads its first event. It repeats after
// busy, because a busy machine may not read the order in time.
func openLine(t *testing.T, e *engine.Engine, request string) (l *line) {
	t.Helper()
	eventually(t, "the stream opens", func() bool {
		l = dial(t, e)
		if err := l.write(request); err != nil {
			t.Fatal(err)
		}
		status, err := l.in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(status, " 503 ") {
			l.conn.Close()
			return false
		}
		l.until(t, `"pending"`)
		return true
	})
	return l
}

// until reads lines until one contains the text.
func (l *line) until(t *testing.T, want string) {
	for {
		got, err := l.in.ReadString('\n')
		if err != nil {
			t.Errorf("waiting for %s: %v", want, err)
			return
		}
		if strings.Contains(got, want) {
			return
		}
	}
}

// inUse is the memory of the engine's heap and stacks, after a collection.
func inUse(t *testing.T, e *engine.Engine) (bytes int) {
	t.Helper()
	if got := sendBy(t, http.DefaultClient, http.MethodGet, e.AdminURL+"/debug/pprof/heap?gc=1", operating("ann"), ""); got.Status != http.StatusOK {
		t.Fatalf("collect: %d", got.Status)
	}
	metrics := sendBy(t, http.DefaultClient, http.MethodGet, e.AdminURL+"/metrics", nil, "").Text
	for text := range strings.Lines(metrics) {
		for _, name := range []string{"go_memstats_heap_inuse_bytes ", "go_memstats_stack_inuse_bytes "} {
			if value, found := strings.CutPrefix(strings.TrimSpace(text), name); found {
				n, err := strconv.ParseFloat(value, 64)
				if err != nil {
					t.Fatal(err)
				}
				bytes += int(n)
			}
		}
	}
	if bytes == 0 {
		t.Fatal("no figures of memory")
	}
	return bytes
}

// Clients of the operator's port that do not read their answers cannot make a
// stop fail. Its exit code is 0.
func TestOperatorPort_StopsInTimeWithClientsThatDoNotRead(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	requests := strings.Repeat("GET /openapi.yaml HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 60)
	for range 50 {
		l := dialTo(t, e.AdminURL)
		if err := l.conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if err := l.write(requests); err != nil {
			t.Fatal(err)
		}
		if _, err := l.conn.Read(make([]byte, 1)); err != nil { // the first answer has begun
			t.Fatal(err)
		}
	}
	e.MustStop()
}
