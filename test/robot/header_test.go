package robot

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"seckill"
	"seckill/test/engine"
)

const (
	// proxyAddr is the one proxy that the engine trusts.
	proxyAddr = "127.0.0.9"
	// rate is the number of requests of an address per second, and the burst.
	rate = 5
)

// spoofs are header lines that claim another address; %d makes many of them.
var spoofs = [][2]string{
	{"X-Forwarded-For", "203.0.113.%d"}, {"x-forwarded-for", "203.0.113.%d"}, {"X-Forwarded-For", "127.0.0.1, 203.0.113.%d"}, {"X-Forwarded-For", "203.0.113.%d, " + proxyAddr},
	{"Forwarded", "for=203.0.113.%d"}, {"Forwarded", `for="[2001:db8::%d]";proto=https`}, {"X-Real-IP", "203.0.113.%d"}, {"X-Real-Ip", "203.0.113.%d"},
	{"True-Client-IP", "203.0.113.%d"}, {"CF-Connecting-IP", "203.0.113.%d"}, {"X-Client-IP", "203.0.113.%d"}, {"X-Cluster-Client-IP", "203.0.113.%d"},
	{"X-Originating-IP", "203.0.113.%d"}, {"X_Forwarded_For", "203.0.113.%d"}, {"Via", "1.1 203.0.113.%d"}, {"Client-IP", "203.0.113.%d"},
	{"Host", "host-%d.example"}, {"X-Forwarded-Host", "host-%d.example"}, {"Origin", "https://host-%d.example"}, {"User-Agent", "browser/%d"},
}

// headerSpoofing claims other addresses in headers, directly and behind the
// trusted proxy. It also hides a purchase in another request, or sends it with
// another method.
func headerSpoofing(t *testing.T) {
	e := engine.Start(t, engine.Options{Settings: map[string]string{"limit.ip_per_second": fmt.Sprint(rate), "shop.trusted_proxies": proxyAddr}})
	b := open(t, e, engine.Product{ID: 1, Stock: 400})
	people, robot := New(t), New(t)
	honest := b.crowd(1, false, func(i int, name string) Account {
		if i%2 == 0 {
			return people.Account(e, name).From(fmt.Sprintf("127.0.1.%d", i+1))
		}
		return people.Account(e, name).From(proxyAddr).Saying("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i+1))
	})
	const tries = 10
	oneBudget(b, robot, "127.0.0.7", tries*len(spoofs), func(i int, a Account) Account {
		spoof := spoofs[i%len(spoofs)]
		return a.Saying(spoof[0], fmt.Sprintf(spoof[1], i))
	})
	oneBudget(b, robot, proxyAddr, tries*len(spoofs), func(i int, a Account) Account {
		spoof := spoofs[i%len(spoofs)]
		return proxied(a.Saying(spoof[0], fmt.Sprintf(spoof[1], i)), "192.0.2.66", i%2 == 0)
	})
	otherMethods(b, robot.Account(e, "robot-methods").From("127.0.0.8"))
	smuggled(b, e, robot)
	honest()
	b.close()
}

// proxied is the request as a proxy forwards it. The proxy adds the client's
// address at the end of the client's own header line, or as another line.
func proxied(a Account, client string, sameLine bool) Account {
	for name, lines := range a.header {
		if http.CanonicalHeaderKey(name) != "X-Forwarded-For" {
			continue
		}
		if last := len(lines) - 1; sameLine {
			lines[last] += ", " + client
			return a
		}
		return a.Saying(name, client)
	}
	return a.Saying("X-Forwarded-For", client)
}

// oneBudget sends purchases of many accounts from one address, each disguised,
// and adds the sold ones to the book. It checks that their number stays within
// the rate of one address for the time that the engine's clock shows.
func oneBudget(b *book, robot *Robot, from string, accounts int, disguise func(i int, a Account) Account) {
	b.t.Helper()
	clock := clock{robot.Account(b.at, "robot-clock").From(from)}
	began := clock.now()
	answers := make([]Answer, accounts)
	buyer := func(i int) Account { return robot.Account(b.at, fmt.Sprintf("robot-%s-%d", from, i)).From(from) }
	Together(handsPerAddress, func(hand int) {
		for i := hand; i < accounts; i += handsPerAddress {
			answers[i] = disguise(i, buyer(i)).Buy(b.products[0], "")
		}
	})
	took := clock.since(began)
	may, sold, written := rate+int(took.Seconds()*rate), 0, b.buyers(b.products[0])
	for i, got := range answers {
		switch name := buyer(i).Name; {
		case got.Status == http.StatusAccepted, got.Undecided() && written[name]: // "busy" means unknown
			b.gives(name, 1)
			sold++
		case got.Code != seckill.CodeRateLimited && !got.Undecided():
			b.t.Errorf("account %d: %s", i, got)
		}
	}
	b.t.Logf("%d accounts bought %d in %s, and may buy %d", accounts, sold, took, may)
	if sold > may {
		b.t.Errorf("%d accounts of one address bought %d in %s, and may buy %d", accounts, sold, took, may)
	}
}

// otherMethods sends a purchase with a method override header, and asks for the
// operator's paths with a path override header.
func otherMethods(b *book, eve Account) {
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if got := eve.Saying(name, http.MethodPost).Send(method, "/api/v1/products/1/orders?_method=POST", `{"quantity":1}`); got.Status != http.StatusMethodNotAllowed {
				b.t.Errorf("%s that says %s: %s", method, name, got)
			}
		}
	}
	for _, name := range []string{"X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix", "X-Forwarded-Path"} {
		if got := eve.As(engine.AdminToken).Saying(name, "/admin/v1/products").Send(http.MethodGet, "/api/v1/time", ""); got.NowMS == 0 {
			b.t.Errorf("%s: %s", name, got)
		}
	}
	if got := eve.As(engine.AdminToken).Saying("Host", strings.TrimPrefix(eve.at.AdminURL, "http://")).Send(http.MethodGet, "/admin/v1/products", ""); got.Status != http.StatusNotFound {
		b.t.Errorf("the operator's path under the operator's name: %s", got)
	}
}

// smuggled sends requests that a proxy and the engine may read differently,
// with hidden purchases. Each comes from another address, so that no rate limit
// refuses it. Every answer must be a refusal, and no unit may be sold.
func smuggled(b *book, e *engine.Engine, robot *Robot) {
	bearer := robot.Account(e, "robot-smuggler").Bearer
	const line, body = "POST /api/v1/products/1/orders HTTP/1.1\r\n", `{"quantity":1}`
	head := "Host: shop\r\nAuthorization: Bearer " + bearer + "\r\n"
	hidden := line + head + "Content-Length: 14\r\n\r\n" + body
	chunks := "e\r\n" + body + "\r\n0\r\n\r\n"
	tried := 0
	for what, text := range map[string]string{
		"a length and chunks":             line + head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunks and a length":             line + head + "Transfer-Encoding: chunked\r\nContent-Length: 14\r\n\r\n" + chunks,
		"two lengths":                     line + head + "Content-Length: 14\r\nContent-Length: 0\r\n\r\n" + body + hidden,
		"a list of lengths":               line + head + "Content-Length: 14, 14\r\n\r\n" + body,
		"chunks behind a tab":             line + head + "Transfer-Encoding:\tchunked\r\nContent-Length: 14\r\n\r\n" + chunks,
		"an encoding of its own":          line + head + "Transfer-Encoding: xchunked\r\n\r\n" + chunks,
		"two encodings":                   line + head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunks,
		"a space before the colon":        line + head + "Content-Length : 14\r\n\r\n" + body,
		"a folded length":                 line + head + "Content-Length:\r\n 14\r\n\r\n" + body,
		"a bare line feed in the head":    line + head + "X-A: a\nContent-Length: 14\r\n\r\n" + body,
		"a bare line feed before a head":  strings.Replace(line, "\r\n", "\n", 1) + head + "Content-Length: 14\r\n\r\n" + body,
		"a bare line feed after a pause":  "GET /api/v1/time HTTP/1.1\r\nHost: shop\r\n\r\n" + strings.Replace(line, "\r\n", "\n", 1) + head + "Content-Length: 14\r\n\r\n" + body,
		"a bare carriage return":          line + head + "X-A: a\rContent-Length: 14\r\n\r\n" + body,
		"a NUL":                           line + head + "X-A: \x00\r\nContent-Length: 14\r\n\r\n" + body,
		"two hosts":                       line + head + "Host: other\r\nContent-Length: 14\r\n\r\n" + body,
		"no host":                         line + strings.TrimPrefix(head, "Host: shop\r\n") + "Content-Length: 14\r\n\r\n" + body,
		"a head beyond its bound":         line + head + "X-Long: " + strings.Repeat("x", 9<<10) + "\r\nContent-Length: 14\r\n\r\n" + body,
		"a thousand header lines":         line + head + strings.Repeat("X-Many: 1234567\r\n", 1000) + "Content-Length: 14\r\n\r\n" + body,
		"a body beyond its bound":         line + head + "Content-Length: 99999\r\n\r\n" + body,
		"a chunk's size that overflows":   line + head + "Transfer-Encoding: chunked\r\n\r\n1000000000000000e\r\n" + body + "\r\n0\r\n\r\n",
		"a chunk that is longer":          line + head + "Transfer-Encoding: chunked\r\n\r\n1\r\n" + body + "\r\n0\r\n\r\n" + hidden,
		"chunks that end in a line feed":  line + head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\n" + hidden,
		"a trailer that ends in one":      line + head + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\n" + hidden,
		"no encoding and no length":       line + head + "Transfer-Encoding: identity\r\n\r\n" + hidden,
		"the operator's path, absolutely": "GET " + e.AdminURL + "/admin/v1/products HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer " + engine.AdminToken + "\r\n\r\n",
		"HTTP/2 without being asked":      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden,
	} {
		tried++
		for _, got := range robot.Speak(e, fmt.Sprintf("127.0.2.%d", tried), text) {
			if got.Status/100 == 2 && got.NowMS == 0 {
				b.t.Errorf("%s: %s", what, got)
			}
		}
	}
}
