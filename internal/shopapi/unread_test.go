package shopapi

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/metrics"
	"seckill/internal/sale"
)

const (
	patience        = 30 * time.Second
	testWriteBuffer = 16 << 10
)

// manyProducts are products on sale with ids from 1, each about 800 bytes long.
func manyProducts(n int) products {
	now := time.Now().UTC()
	list := make(products, n)
	for i := range list {
		list[i] = seckill.Product{
			ID: uint32(i + 1), Group: uint32(i + 1), Ref: fmt.Sprintf("sku-%d", i+1), Name: fmt.Sprintf("Phone %d, 手机", i+1),
			ImageURL: fmt.Sprintf("https://img.example/%d/%s.jpg", i+1, strings.Repeat("x", 400)), Currency: "CNY", PriceCents: int64(100 + i),
			PerUserLimit: 1, Shards: 1, Epoch: 1, Stock: 10, Strategy: seckill.StrategyAsync, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
		}
	}
	return list
}

// productSource is a source of products that a test can change.
type productSource struct {
	atomic.Pointer[products]
	past products // read by id alone
	err  error    // of such a reading
}

func (s *productSource) Product(_ context.Context, id uint32) (seckill.Product, error) {
	for _, p := range s.past {
		if p.ID == id {
			return p, s.err
		}
	}
	return seckill.Product{}, cmp.Or(s.err, error(seckill.Errorf(seckill.CodeNotFound, "no such product")))
}

func (s *productSource) CurrentProducts(context.Context) ([]seckill.Product, error) {
	return append([]seckill.Product(nil), *s.Load()...), nil
}

// listServer is a public server that has only products.
func listServer(tb testing.TB, list products) (*Server, *productSource) {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	source := &productSource{}
	source.Store(&list)
	catalog := sale.NewCatalog(source)
	if err := catalog.Refresh(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	s, err := New(Options{
		Catalog: catalog, Metrics: metrics.New("test"), Logger: log,
		Clock: sale.NewClock(func(context.Context) (time.Time, error) { return time.Now(), nil }, log),
		Watch: NewWatch(nil, nil, time.Now, log),
		Page:  fstest.MapFS{"index.html": {Data: []byte("page")}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s, source
}

// blockedWrites is a listener that counts the writes that wait for a reader.
type blockedWrites struct {
	net.Listener
	now atomic.Int64
}

func (b *blockedWrites) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &blockedWrite{conn.(*net.TCPConn), b}, nil
}

type blockedWrite struct {
	*net.TCPConn
	of *blockedWrites
}

func (c *blockedWrite) Write(b []byte) (int, error) {
	c.of.now.Add(1)
	defer c.of.now.Add(-1)
	return c.TCPConn.Write(b)
}

// serve runs the server on a port of this machine.
func serve(tb testing.TB, s *Server, opt api.ListenOptions) (*api.Listener, *blockedWrites) {
	tb.Helper()
	l, err := api.Listen("127.0.0.1:0", opt)
	if err != nil {
		tb.Fatal(err)
	}
	blocked := &blockedWrites{Listener: l.Listener}
	l.Listener = blocked
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			tb.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			tb.Errorf("serve: %v", err)
		}
	})
	return l, blocked
}

// dialDeaf connects with a receive buffer as small as the kernel allows.
func dialDeaf(tb testing.TB, address string) net.Conn {
	tb.Helper()
	dialer := net.Dialer{Timeout: patience, Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1)
		})
		if err != nil {
			return err
		}
		return failed
	}}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return conn
}

func heapAfterGC() int64 {
	runtime.GC()
	runtime.GC() // the first one only empties the pools into their victim lists
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// eventually polls until the condition holds.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	late, again := time.After(patience), time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-late:
			tb.Fatalf("not within %s: %s", patience, what)
		case <-again.C:
		}
	}
}

// attackUnread has clients ask again and again, and read nothing. It returns by
// how much memory has grown when all of them are blocked.
func attackUnread(t *testing.T, clients int, path string) int64 {
	t.Helper()
	s, _ := listServer(t, manyProducts(2000))
	l, blocked := serve(t, s, api.ListenOptions{WriteBuffer: testWriteBuffer})
	// One full round first: what the server keeps anyway is not the attack's.
	if status, _, err := fasthttp.Get(nil, "http://"+l.Addr().String()+path); err != nil || status != fasthttp.StatusOK {
		t.Fatalf("got %d, %v", status, err)
	}
	before := heapAfterGC()
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: shop\r\n\r\n")
	for range clients {
		if _, err := dialDeaf(t, l.Addr().String()).Write([]byte(strings.Repeat(string(request), 100))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, fmt.Sprintf("%d writes are blocked", clients), func() bool { return blocked.now.Load() >= int64(clients) })
	return heapAfterGC() - before
}

// TestListProducts_UnreadAnswersCostLittle plays clients that never read.
func TestListProducts_UnreadAnswersCostLittle(t *testing.T) {
	const clients = 400
	// A connection's own part: its goroutine, and the buffers of fasthttp.
	const perClient = 64 << 10
	for _, path := range []string{"/api/v1/products", "/api/v1/products?limit=99&after=1"} {
		t.Run(path, func(t *testing.T) {
			grown := attackUnread(t, clients, path)
			t.Logf("%d unread answers hold %d KiB, %d each", clients, grown>>10, grown/clients)
			if grown > clients*perClient {
				t.Errorf("%d unread answers hold %d MiB, want at most %d", clients, grown>>20, clients*perClient>>20)
			}
		})
	}
}

// TestUnreadAnswers_BoundedPerAddress has clients ask for answers of their own,
// such as lists of orders, and read nothing.
func TestUnreadAnswers_BoundedPerAddress(t *testing.T) {
	const clients, answer, most = 60, 100 << 10, 1 << 20
	s, _ := listServer(t, nil)
	s.http.Handler = func(ctx *fasthttp.RequestCtx) {
		s.json(ctx, "orders", fasthttp.StatusOK, strings.Repeat("x", answer))
	}
	l, blocked := serve(t, s, api.ListenOptions{MaxPerAddr: 1000, MaxUnreadPerAddr: most, WriteBuffer: testWriteBuffer})
	request := []byte("GET /api/v1/orders HTTP/1.1\r\nHost: shop\r\n\r\n")
	ask := func() (*fasthttp.Response, error) {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		var got fasthttp.Response
		return &got, got.Read(bufio.NewReader(conn))
	}
	before := heapAfterGC()
	var attackers []net.Conn
	for range clients {
		conn := dialDeaf(t, l.Addr().String())
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
		attackers = append(attackers, conn)
	}
	// Those within the bound stay blocked; the others are refused and closed.
	var got *fasthttp.Response
	eventually(t, "a reader is refused", func() (refused bool) {
		var err error
		got, err = ask()
		return err == nil && got.StatusCode() != fasthttp.StatusOK
	})
	if got.StatusCode() != fasthttp.StatusServiceUnavailable || !got.ConnectionClose() || !strings.Contains(string(got.Body()), `"too_hot"`) {
		t.Errorf("beyond the bound: %d %s", got.StatusCode(), got.Body())
	}
	eventually(t, "every attacker is blocked or refused", func() bool { return l.Open() == int(blocked.now.Load()) })
	if l.Unread() > most || l.Open() > most/answer {
		t.Errorf("%d bytes are unread on %d connections, want at most %d", l.Unread(), l.Open(), most)
	}
	if grown := heapAfterGC() - before; grown > 4*most {
		t.Errorf("unread answers hold %d KiB", grown>>10)
	}
	for _, conn := range attackers {
		conn.Close()
	}
	eventually(t, "the next reader is served when the attackers are gone", func() bool {
		got, err := ask()
		return err == nil && got.StatusCode() == fasthttp.StatusOK && len(got.Body()) > answer
	})
	eventually(t, "nothing is counted in the end", func() bool { return l.Unread() == 0 })
}

func BenchmarkListProducts(b *testing.B) {
	s, _ := listServer(b, manyProducts(2000))
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI("/api/v1/products")
	b.ReportAllocs()
	for b.Loop() {
		perform(b, s, ctx, fasthttp.StatusOK)
	}
	b.ReportMetric(float64(len(ctx.Response.Body())), "bytes/answer")
}
