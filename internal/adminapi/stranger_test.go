package adminapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
)

// clock is one that a test sets.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(at.UnixNano())
	return c
}

func (c *clock) now() time.Time { return time.Unix(0, c.ns.Load()) }

func (c *clock) add(d time.Duration) { c.ns.Add(int64(d)) }

// as sends a request under a Host.
func (d *fixture) as(host, method, path string, headers ...string) reply {
	d.Helper()
	request, err := http.NewRequest(method, d.url+path, nil)
	if err != nil {
		d.Fatal(err)
	}
	request.Host = host
	request.Header.Set("Authorization", "Bearer "+token)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		d.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		d.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, text}
}

// A browser that was led here by an attacker's name sends that name.
func TestHost_ForeignNameIsRefusedOnEveryPath(t *testing.T) {
	d := newFixture(t, func(o *Options) {
		o.Hosts = []string{"engine-1", "Seckill.Internal"}
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
		o.Pprof = true
	})
	paths := []string{"/metrics", "/healthz", "/readyz", "/openapi.yaml", "/admin/v1/products", "/admin/v1/products/1/pause", "/debug/pprof/cmdline", "/nowhere", "/a//b"}
	for _, host := range []string{
		"evil.example", "evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example", "engine-1.evil.example", "evil-engine-1", "engine-10:8081", "1.2.3", "[evil.example]",
	} {
		for _, path := range paths {
			got := d.as(host, "GET", path)
			if doc := got.problem(t); got.status != http.StatusMisdirectedRequest || doc.Status != got.status || doc.Code != seckill.CodeBadRequest || !strings.Contains(doc.Detail, "admin.hosts") {
				t.Errorf("%s for %s: %d %s", path, host, got.status, got.body)
			}
		}
		if got := d.as(host, "POST", "/admin/v1/products/1/pause", "Accept-Language: zh"); got.problem(t).Title != "运营接口不使用此主机名" {
			t.Errorf("in Chinese: %s", got.body)
		}
	}
	if calls := d.engine.changes(); len(calls) != 0 {
		t.Errorf("something was done: %v", calls)
	}
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1:8081", "10.0.0.11:1", "[::1]", "[2001:db8::1]:8081", "localhost", "LOCALHOST:8081", "localhost.", "engine-1", "Engine-1:8081", "seckill.internal.:80",
	} {
		for _, path := range []string{"/metrics", "/healthz", "/readyz", "/admin/v1/products"} {
			if got := d.as(host, "GET", path); got.status != 200 {
				t.Errorf("%s for %s: %d %s", path, host, got.status, got.body)
			}
		}
	}
	if log := d.log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "unknown host") || !strings.Contains(log, "evil.example") {
		t.Errorf("the log says %s", log)
	}
}

// Some load balancers probe with HTTP/1.0, without a Host.
func TestHost_MayBeMissing(t *testing.T) {
	d := newFixture(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /readyz HTTP/1.0\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != 200 {
		t.Errorf("%v, %v", response, err)
	}
}

func lines(log, holds string) (found []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, holds) {
			found = append(found, line)
		}
	}
	return found
}

func TestWrongToken_IsLoggedOnceASecond(t *testing.T) {
	clock := newClock()
	var counted atomic.Int32
	d := newFixture(t, func(o *Options) {
		o.Now, o.GuessWait = clock.now, time.Nanosecond
		o.Meter = testMeter{suspect: func(why string) {
			if why == suspectWrong {
				counted.Add(1)
			}
		}}
	})
	d.client = http.DefaultClient
	for i, method := range []string{"GET", "HEAD", "POST", "DELETE", "BREW"} {
		for range 10 {
			d.do(method, "/admin/v1/products", "", "Authorization: Bearer guess-hunter2")
		}
		warned := lines(d.log.String(), "level=WARN")
		if len(warned) != i+1 {
			t.Fatalf("%d warnings after %d seconds: %s", len(warned), i+1, d.log.String())
		}
		line := warned[i]
		if !strings.Contains(line, "wrong token") || !strings.Contains(line, "method="+method) || !strings.Contains(line, "remote=127.0.0.1:") || strings.Contains(line, "hunter2") {
			t.Errorf("%s: %s", method, line)
		}
		if strings.Contains(line, "left_out=9") != (i > 0) {
			t.Errorf("the lines left out are not counted: %s", line)
		}
		clock.add(alert.LogEvery)
	}
	if n := counted.Load(); n != 50 {
		t.Errorf("%d of 50 wrong tokens were counted", n)
	}
	d.do("GET", "/admin/v1/products", "", "Authorization: ")
	if len(lines(d.log.String(), "no token")) != 1 {
		t.Errorf("a missing token: %s", d.log.String())
	}
}

// present sends a token from one of this machine's addresses.
func (d *fixture) present(ctx context.Context, from, token string) (status int, retryAfter string, err error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, "GET", d.url+"/admin/v1/products", nil)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	response.Body.Close()
	return response.StatusCode, response.Header.Get("Retry-After"), nil
}

// wants presents a token and compares the status.
func (d *fixture) wants(status int, from, token string) {
	d.Helper()
	if got, _, err := d.present(d.Context(), from, token); got != status || err != nil {
		d.Errorf("%q from %s: answered %d, %v, want %d", token, from, got, err, status)
	}
}

// spend uses up an address's budget of tokens.
func (d *fixture) spend(from string) {
	d.Helper()
	for range guessBurst {
		d.wants(401, from, "guess")
	}
}

// occupy takes every place of tokens that wait, from an address whose budget is
// spent. It returns when all are taken, and gives the places back when stop closes.
func (d *fixture) occupy(from string, stop chan struct{}) {
	d.Helper()
	const beyond = 10 // these are refused at once, which shows that no place is left
	type answer struct {
		status     int
		retryAfter string
	}
	answers := make(chan answer, maxLate+beyond)
	var crowd sync.WaitGroup
	for range maxLate + beyond {
		crowd.Go(func() {
			status, retryAfter, err := d.present(context.Background(), from, "guess")
			if err != nil {
				d.Error(err)
			}
			answers <- answer{status, retryAfter}
		})
	}
	for range beyond {
		if got := <-answers; got != (answer{429, "1"}) {
			d.Errorf("beyond the bound: %+v", got)
		}
	}
	d.Cleanup(func() {
		if n := len(answers); n != 0 {
			d.Errorf("%d tokens more were answered at once", n)
		}
		close(stop) // a server that stops does not wait for them
		crowd.Wait()
		for range maxLate {
			if got := <-answers; got.status != 429 {
				d.Errorf("a token that was not compared: %+v", got)
			}
		}
	})
}

// If the token were compared first, 429 would tell that it is wrong, and guessing
// on many connections would not be slowed down.
func TestWrongToken_BeyondBudgetIsNotCompared(t *testing.T) {
	clock := newClock() // stands still: no budget comes back
	stop := make(chan struct{})
	d := newFixture(t, func(o *Options) { o.Now, o.GuessWait, o.Stop = clock.now, time.Hour, stop })
	d.spend("127.0.0.2")
	d.occupy("127.0.0.2", stop)
	d.wants(429, "127.0.0.2", token)
	// Other addresses have budgets of their own.
	d.wants(401, "127.0.0.3", "guess")
	d.wants(200, "127.0.0.4", token)
	if log := d.log.String(); !strings.Contains(log, "refused: too many tokens") {
		t.Errorf("the log says %s", log)
	}
}

func TestWrongToken_RecentOperatorIsNotLockedOut(t *testing.T) {
	clock := newClock()
	stop := make(chan struct{})
	d := newFixture(t, func(o *Options) { o.Now, o.GuessWait, o.Stop = clock.now, time.Hour, stop })
	d.wants(200, "127.0.0.1", token)
	d.spend("127.0.0.2")
	d.occupy("127.0.0.2", stop)
	for range 2 * guessBurst {
		d.wants(401, "127.0.0.1", "guess") // somebody behind the same proxy
	}
	d.wants(200, "127.0.0.1", token)
	clock.add(seenFor - time.Second)
	d.wants(200, "127.0.0.1", token)
	clock.add(seenFor - time.Second) // each right token counts anew
	d.wants(200, "127.0.0.1", token)
	clock.add(seenFor)
	d.spend("127.0.0.1")
	d.wants(429, "127.0.0.1", token)
}

func TestWrongToken_WaitingTokenIsComparedLater(t *testing.T) {
	clock := newClock()
	d := newFixture(t, func(o *Options) { o.Now, o.GuessWait = clock.now, time.Nanosecond })
	d.spend("127.0.0.2")
	d.wants(401, "127.0.0.2", "guess")
	d.wants(200, "127.0.0.2", token)
}

// Otherwise an attacker who hangs up at once would have tokens compared without
// a wait, and see by the sale whether one was right.
func TestWrongToken_ClientThatLeavesEarlyIsNotCompared(t *testing.T) {
	a := &handler{Options: Options{GuessWait: time.Hour}, late: make(chan struct{}, maxLate)}
	left, leave := context.WithCancel(t.Context())
	leave()
	if a.delay(left) {
		t.Error("its token is compared at once")
	}
	if len(a.late) != 0 {
		t.Error("its place is not given back")
	}
}

func TestOperators_RemembersTheLatestAddresses(t *testing.T) {
	var seen operators
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	const more = 10
	for i := range seenAddresses + more {
		seen.remember(addr(i), at.Add(time.Duration(i)*time.Second))
	}
	seen.remember(netip.Addr{}, at)
	if n := len(seen.at); n != seenAddresses {
		t.Errorf("%d addresses are remembered, want %d", n, seenAddresses)
	}
	now := at.Add((seenAddresses + more) * time.Second)
	for i := range seenAddresses + more {
		if got := seen.lately(addr(i), now); got != (i >= more) {
			t.Errorf("address %d is remembered: %v", i, got)
		}
	}
}

func TestLog_AmbiguousRequestIsRefused(t *testing.T) {
	counted := make(chan string, 2)
	d := newFixture(t, func(o *Options) { o.Meter = testMeter{suspect: func(why string) { counted <- why }} })
	d.client = http.DefaultClient
	if got := d.do("POST", "/admin/v1/products", "", "Authorization: none", "Content-Type: multipart/form-data; boundary=b"); got.status != 415 {
		t.Errorf("answered %d %s", got.status, got.body)
	}
	select {
	case why := <-counted:
		if why != suspectAmbiguous {
			t.Errorf("counted as %s", why)
		}
	default:
		t.Error("it is not counted")
	}
	if log := d.log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "refused: ambiguous request") || strings.Contains(log, `msg="operator request"`) {
		t.Errorf("the log says %s", log)
	}
}

func TestWrongToken_MissingTokenIsNotAGuess(t *testing.T) {
	clock := newClock()
	d := newFixture(t, func(o *Options) { o.Now, o.GuessWait = clock.now, time.Hour })
	for range 2 * guessBurst {
		d.refused(seckill.CodeUnauthenticated, "", "GET", "/admin/v1/products", "", "Authorization: ")
	}
}

func TestLog_UnknownPathsAreThrottled(t *testing.T) {
	clock := newClock()
	d := newFixture(t, func(o *Options) { o.Now = clock.now })
	d.client = http.DefaultClient
	const perSecond, seconds = 50, 3
	for range seconds {
		for i := range perSecond {
			path := fmt.Sprintf("/%d%s", i, strings.Repeat("长", 1000))
			if got := d.do("POST", path, "", "Authorization: none"); got.status != 404 {
				t.Fatal(got.status)
			}
		}
		clock.add(alert.LogEvery)
	}
	written := lines(d.log.String(), "")
	if len(written) != seconds {
		t.Errorf("%d lines in %d seconds", len(written), seconds)
	}
	for _, line := range written {
		if len(line) > 2*alert.MaxText {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	if !strings.Contains(written[len(written)-1], fmt.Sprintf("left_out=%d", perSecond-1)) {
		t.Errorf("lines left out are not counted: %s", written[len(written)-1])
	}
	// The operator's own changes are written each.
	for range 3 {
		d.do("POST", "/admin/v1/products/1/pause", "")
	}
	if n := len(lines(d.log.String(), "/admin/v1/products/1/pause")); n != 3 {
		t.Errorf("%d of 3 changes are in the log", n)
	}
}
