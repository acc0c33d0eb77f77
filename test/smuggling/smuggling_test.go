// Package smuggling sends thousands of unusual requests to the real binary,
// directly and through nginx and HAProxy, and counts the answers. Each request
// must have one answer, and the answer must go to the client that sent the
// request.
package smuggling

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/login"
	"seckill/test/server"
)

const (
	perListener    = 1500 // requests in make test; SECKILL_SMUGGLING_FOR sets a duration instead
	attackers      = 8
	victims        = 3
	answerWithin   = 20 * time.Second       // of a request that must be answered
	silenceAllowed = 300 * time.Millisecond // of a request that need not be
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }

// shop is an engine with an open sale.
type shop struct {
	t      *testing.T
	e      *engine.Engine
	addr   string
	login  string // of the shoppers
	echoID atomic.Int64
}

func openShop(t *testing.T) *shop {
	t.Helper()
	e := engine.Start(t, engine.Options{Settings: map[string]string{"shop.trusted_proxies": "127.0.0.1"}})
	if _, err := e.Operator().OpenSale(t.Context(), engine.Product{ID: 1, Stock: 1_000_000, PerUserLimit: 1000}); err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, e: e, addr: strings.TrimPrefix(e.ShopURL, "http://")}
	s.login = s.signIn("victim")
	return s
}

func (s *shop) signIn(buyer string) (header string) {
	s.t.Helper()
	token, err := login.Token([]byte(engine.JWTSecret), buyer, time.Now().Add(24*time.Hour))
	if err != nil {
		s.t.Fatal(err)
	}
	return "Authorization: Bearer " + token + "\r\n"
}

// purchase is a request that makes an order of the buyer if the engine executes
// it.
func (s *shop) purchase(buyer string) string {
	return "POST " + buyPath + " HTTP/1.1\r\nHost: shop\r\n" + s.signIn(buyer) + "Content-Length: 2\r\n\r\n{}"
}

// echo is an ordinary request with a unique id that its answer repeats.
func (s *shop) echo() (text, id string) {
	id = fmt.Sprintf("m%08d", s.echoID.Add(1))
	body := fmt.Sprintf(`{"%s":1,"%[1]s":1}`, id)
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop\r\n%sContent-Length: %d\r\n\r\n%s", buyPath, s.login, len(body), body), id
}

func (s *shop) orders(buyer string) int {
	s.t.Helper()
	orders, err := s.e.Buyer(buyer).Orders(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return len(orders)
}

var answered = regexp.MustCompile(`(?m)^seckill_http_requests_total\{route="[a-z]+",.*\} (\S+)$`)

// answered counts all answers of the engine's public port.
func (s *shop) answered() (sum int) {
	s.t.Helper()
	res, err := s.e.HTTP().Get(s.e.AdminURL + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, found := range answered.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			s.t.Fatal(err)
		}
		sum += int(n)
	}
	return sum
}

// conn is one client's connection.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, answerWithin)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

type answer struct {
	status int
	body   string
	last   bool // of its connection
}

// read reads a final answer. It returns an error if none came in time.
func (c *conn) read(method string, within time.Duration) (answer, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return answer{}, err
	}
	for {
		res, err := http.ReadResponse(c.in, &http.Request{Method: method})
		if err != nil {
			return answer{}, err
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return answer{}, err
		}
		if res.StatusCode >= 200 {
			return answer{res.StatusCode, string(body), res.Close}, nil
		}
	}
}

// ask sends an echo and reports what is wrong with its answer.
func (c *conn) ask(s *shop) (last bool, err error) {
	text, id := s.echo()
	if _, err := io.WriteString(c, text); err != nil {
		return false, err
	}
	got, err := c.read(http.MethodPost, answerWithin)
	if err != nil {
		return false, err
	}
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, id) {
		return false, fmt.Errorf("the request with id %s got the answer %d %s", id, got.status, got.body)
	}
	return got.last, nil
}

// probe sends one unusual request on a new connection and returns an error if
// the answers are wrong. A sound request has one answer; after it the
// connection is closed or serves an ordinary request. Without a proxy this
// holds for every answered request.
func (s *shop) probe(addr string, r request, straight bool) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, r.text); err != nil && r.sound {
		return fmt.Errorf("send: %w", err)
	}
	within := silenceAllowed
	if r.sound {
		within = answerWithin
	}
	got, err := c.read(r.method, within)
	if err != nil {
		if r.sound {
			return fmt.Errorf("no answer: %w", err)
		}
		return nil
	}
	if !r.sound && !straight {
		return nil // the proxy may rightly have read several requests
	}
	if got.last {
		if err := c.SetReadDeadline(time.Now().Add(answerWithin)); err != nil {
			return err
		}
		rest, err := io.ReadAll(c.in)
		if r.method == http.MethodHead && !bytes.HasPrefix(rest, []byte("HTTP/")) {
			rest = nil // a refusal of an unknown method, or of HAProxy itself, has a body: still one answer
		}
		if len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("after the last answer %d came %.200q (%v)", got.status, rest, err)
		}
		return nil
	}
	if _, err := c.ask(s); err != nil {
		return fmt.Errorf("after the answer %d: %w", got.status, err)
	}
	return nil
}

// shopper sends requests on one kept-alive connection until the context ends.
// It returns an error for the first answer that belongs to another request.
func (s *shop) shopper(ctx context.Context, addr string) error {
	var c *conn
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for ctx.Err() == nil {
		if c == nil {
			var err error
			if c, err = dial(addr); err != nil {
				return err
			}
		}
		last, err := c.ask(s)
		if err != nil {
			return err
		}
		if last {
			c.Close()
			c = nil
		}
	}
	return nil
}

// attack sends unusual requests from several clients while shoppers send
// ordinary ones.
func (s *shop) attack(t *testing.T, addr string, straight bool) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SECKILL_SMUGGLING_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	var until time.Time
	if text := os.Getenv("SECKILL_SMUGGLING_FOR"); text != "" {
		lasting, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		until = time.Now().Add(lasting)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asking, attacking sync.WaitGroup
	for range victims {
		asking.Go(func() {
			if err := s.shopper(ctx, addr); err != nil {
				t.Errorf("a shopper (SECKILL_SMUGGLING_SEED=%d): %v", seed, err)
			}
		})
	}
	var sent, failed atomic.Int64
	for i := range uint64(attackers) {
		attacking.Go(func() {
			g := &generator{rand.New(rand.NewPCG(seed, i)), s.purchase("eve"), s.purchase("mal")}
			for n := sent.Add(1); failed.Load() < 5 && (until.IsZero() && n <= perListener || time.Now().Before(until)); n = sent.Add(1) {
				r := g.next()
				if !straight && g.IntN(3) == 0 {
					r = g.mutated()
				}
				if err := s.probe(addr, r, straight); err != nil {
					failed.Add(1)
					t.Errorf("%.600q: %v (SECKILL_SMUGGLING_SEED=%d)", r.text, err, seed)
				}
			}
		})
	}
	attacking.Wait()
	cancel()
	asking.Wait()
	t.Logf("%d odd requests, seed %d", sent.Load(), seed)
}

// A hidden request that the engine executes would make an order.
func TestOddRequest_HasOneAnswerStraight(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.attack(t, s.addr, true)
	for _, buyer := range []string{"eve", "mal"} {
		if n := s.orders(buyer); n > 0 {
			t.Errorf("hidden requests of %s were executed: %d orders or more", buyer, n)
		}
	}
}

func TestOddRequest_HasOneAnswerBehindNginx(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.behind(server.Nginx(t, s.addr))
}

func TestOddRequest_HasOneAnswerBehindHAProxy(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.behind(server.HAProxy(t, s.addr))
}

// behind attacks through a proxy. The engine must not answer more requests than
// the proxy has sent. A smuggled request would be one more, even if no client
// gets its answer.
func (s *shop) behind(proxy *server.ReverseProxy) {
	t := s.t
	answered, forwarded := s.answered(), proxy.Forwarded()
	for name, addr := range map[string]string{"strict": proxy.Strict, "lax": proxy.Lax} {
		t.Run(name, func(t *testing.T) { s.attack(t, addr, false) })
	}
	late, again := time.After(answerWithin), time.NewTicker(10*time.Millisecond) // the proxy writes its log after the answer
	defer again.Stop()
	for {
		byEngine, byProxy := s.answered()-answered, proxy.Forwarded()-forwarded
		if byEngine <= byProxy {
			t.Logf("the proxy forwarded %d requests, the engine answered %d", byProxy, byEngine)
			break
		}
		select {
		case <-late:
			t.Fatalf("the engine answered %d requests, the proxy forwarded only %d", byEngine, byProxy)
		case <-again.C:
		}
	}
	if n := s.orders("eve"); n > 0 {
		t.Errorf("hidden requests in sound requests were executed: %d orders or more", n)
	}
}
