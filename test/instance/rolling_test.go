package instance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/server"
)

const (
	// restartsEnv is how many restarts a campaign has; `make rolling` sets it.
	restartsEnv = "SECKILL_ROLLING_RESTARTS"
	restarts    = 4
	// rollers each buy every rollEvery, over connections that they keep: together
	// as much as two cores serve beside the servers and the race detector.
	rollers   = 64
	rollEvery = 10 * time.Millisecond
	// upstreamHeader says which instance nginx asked last for an answer.
	upstreamHeader = "X-Upstream"
)

// Instances are restarted one right after the other, behind the nginx of the
// documents, while a crowd buys over kept-alive connections: nobody gets an answer that is
// not the engine's.
func TestRollingRestart_BehindNginxNoRequestFails(t *testing.T) {
	a, b := pair(t, shared(t, map[string]string{"shop.drain": "1s"}))
	openSale(t, a, engine.Product{ID: 1, Stock: 1_000_000, PerUserLimit: 1})
	sees(t, b, 1)
	nginx := server.NginxSite(t, func(listen string) string { return documentedSite(t, listen, a, b) })
	crowd := newRollingCrowd(t, "http://"+nginx.Strict)
	count := restarts
	if text := os.Getenv(restartsEnv); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		must(t, "read "+restartsEnv, err)
	}
	crowd.awaitAnswers(a, b)
	for i := range count {
		e := []*engine.Engine{a, b}[i%2]
		e.MustStop()
		e.Start()
	}
	crowd.awaitAnswers(a, b)
	crowd.leave()
	t.Logf("%d restarts, %d answers: %d sold, %d refused by an engine, %d failed", count, crowd.sold.Load()+crowd.refused.Load()+crowd.failed.Load(), crowd.sold.Load(), crowd.refused.Load(), crowd.failed.Load())
	if crowd.failed.Load() > 0 {
		t.Errorf("%d requests failed; nginx says:\n%s", crowd.failed.Load(), nginx.Log())
	}
}

// Behind the same nginx an instance that hangs holds up few, and those for
// seconds: proxy_read_timeout ends their wait, and nginx then leaves it out.
func TestProxy_LeavesAFrozenInstanceOut(t *testing.T) {
	a, b := pair(t, shared(t, nil))
	openSale(t, a, engine.Product{ID: 1, Stock: 1_000})
	sees(t, b, 1)
	nginx := server.NginxSite(t, func(listen string) string { return documentedSite(t, listen, a, b) })
	client := &http.Client{Timeout: 10 * time.Second}
	read := func() (took time.Duration) {
		began := time.Now()
		res, err := client.Get("http://" + nginx.Strict + "/api/v1/products/1")
		must(t, "read the product", err)
		res.Body.Close()
		return time.Since(began)
	}
	b.Signal(syscall.SIGSTOP)
	defer b.Signal(syscall.SIGCONT)
	var all sync.WaitGroup
	var slow atomic.Int64
	for range 20 {
		all.Go(func() {
			if took := read(); took > 2*time.Second {
				slow.Add(1)
				if took > 8*time.Second {
					t.Errorf("a request took %s", took)
				}
			}
		})
	}
	all.Wait()
	if slow.Load() == 0 {
		t.Fatal("nobody reached the frozen instance")
	}
	for range 10 { // it has failed twice: for two seconds nobody is sent there
		if took := read(); took > 2*time.Second {
			t.Errorf("a request after that took %s", took)
		}
	}
}

// documentedSite is the nginx site of docs/front.md before two instances,
// without TLS.
func documentedSite(t *testing.T, listen string, a, b *engine.Engine) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/front.md")
	must(t, "read the documented site", err)
	_, site, _ := strings.Cut(string(page), "```nginx\n")
	site, _, _ = strings.Cut(site, "```")
	for documented, here := range map[string]string{
		"10.0.0.11:8080":                         address(a),
		"10.0.0.12:8080":                         address(b),
		"listen 443 ssl;":                        "listen " + listen + ";",
		"ssl_certificate     /etc/ssl/sale.pem;": "",
		"ssl_certificate_key /etc/ssl/sale.key;": "",
		"proxy_pass http://seckill;":             "proxy_pass http://seckill; add_header " + upstreamHeader + " $upstream_addr always;",
	} {
		if !strings.Contains(site, documented) {
			t.Fatalf("the documented site has no %q:\n%s", documented, site)
		}
		site = strings.ReplaceAll(site, documented, here)
	}
	return site
}

func address(e *engine.Engine) string { return strings.TrimPrefix(e.ShopURL, "http://") }

// rollingCrowd buys until it leaves.
type rollingCrowd struct {
	t    *testing.T
	site string
	end  context.CancelFunc
	all  sync.WaitGroup

	buyers, sold, refused, failed atomic.Int64
	mu                            sync.Mutex
	answeredBy                    map[string]int // answers, by instance
}

func newRollingCrowd(t *testing.T, site string) *rollingCrowd {
	c := &rollingCrowd{t: t, site: site, answeredBy: make(map[string]int)}
	ctx, cancel := context.WithCancel(t.Context())
	c.end = cancel
	t.Cleanup(c.leave)
	for range rollers {
		c.all.Go(func() { c.roll(ctx) })
	}
	return c
}

func (c *rollingCrowd) leave() {
	c.end()
	c.all.Wait()
}

func (c *rollingCrowd) roll(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(rollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.buy(client)
		}
	}
}

// buy counts an answer that is not an engine's as failed. A refusal, such as
// "too hot" on a machine that is short of time, is an answer.
func (c *rollingCrowd) buy(client *http.Client) {
	buyer := fmt.Sprintf("roller-%d", c.buyers.Add(1))
	now := time.Now()
	req, err := http.NewRequest(http.MethodPost, c.site+"/api/v1/products/1/orders", bytes.NewReader([]byte(`{"quantity":1}`)))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+dated(c.t, buyer, now, now.Add(time.Hour)))
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		c.fail("%s got no answer: %v", buyer, err)
		return
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	switch kind := res.Header.Get("Content-Type"); {
	case err != nil:
		c.fail("%s got half an answer: %v", buyer, err)
		return
	case res.StatusCode == http.StatusAccepted:
		c.sold.Add(1)
	case strings.HasPrefix(kind, "application/problem+json"):
		c.refused.Add(1)
	default:
		c.fail("%s was answered %d by %s: %s", buyer, res.StatusCode, res.Header.Get(upstreamHeader), body)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := strings.Split(res.Header.Get(upstreamHeader), ", ")
	c.answeredBy[asked[len(asked)-1]]++
}

func (c *rollingCrowd) fail(format string, args ...any) {
	c.failed.Add(1)
	c.t.Errorf(format, args...)
}

// awaitAnswers waits until each instance has given further answers.
func (c *rollingCrowd) awaitAnswers(engines ...*engine.Engine) {
	c.t.Helper()
	count := func(e *engine.Engine) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.answeredBy[address(e)]
	}
	for _, e := range engines {
		before := count(e)
		until(c.t, "nginx asks "+address(e), func() bool { return count(e) > before+rollers })
	}
}
