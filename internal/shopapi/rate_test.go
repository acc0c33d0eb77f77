package shopapi

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"seckill/internal/admission"
	"seckill/internal/auth"
)

// thin is a limit of one request an hour.
func thin(tb testing.TB) *admission.Limiter {
	tb.Helper()
	l, err := admission.New(admission.Options{PerSecond: 1.0 / 3600, Burst: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// from is where a request comes from.
func from(ctx *fasthttp.RequestCtx, peer, forwarded string) {
	ctx.SetRemoteAddr(&net.TCPAddr{IP: net.ParseIP(peer), Port: 4711})
	ctx.Request.Header.Del("X-Forwarded-For")
	if forwarded != "" {
		ctx.Request.Header.Set("X-Forwarded-For", forwarded)
	}
}

// checkLimited wants a 429 that says when to come again.
func checkLimited(tb testing.TB, ctx *fasthttp.RequestCtx) {
	tb.Helper()
	h := &ctx.Response.Header
	if got := ctx.Response.StatusCode(); got != fasthttp.StatusTooManyRequests {
		tb.Fatalf("answered %d %s", got, ctx.Response.Body())
	}
	after := string(h.Peek("Retry-After"))
	if seconds, err := strconv.Atoi(after); err != nil || seconds < 1 || seconds > 3600 {
		tb.Errorf("Retry-After %q", after)
	}
}

func TestRate_PurchaseOverLimitHasRetryAfterAndAllocatesNothing(t *testing.T) {
	for _, name := range []string{"address", "buyer", "product"} {
		t.Run(name, func(t *testing.T) {
			s, _ := hotServer(t)
			ctx := hotRequest(t, "buyer-1")
			switch limit := thin(t); name {
			case "address":
				s.opt.Door.ByAddr = limit
			case "buyer":
				s.opt.Door.ByBuyer = limit
			case "product":
				s.opt.Door.ByProduct, s.opt.Door.ByHolder = limit, limit // the second claim is a holder's
			}
			perform(t, s, ctx, fasthttp.StatusAccepted)
			perform(t, s, ctx, fasthttp.StatusTooManyRequests)
			checkLimited(t, ctx)
			if raceEnabled {
				return // the race detector allocates itself
			}
			if got := testing.AllocsPerRun(1000, func() { perform(t, s, ctx, fasthttp.StatusTooManyRequests) }); got > 0 {
				t.Errorf("a limited purchase allocates %v times, budget 0", got)
			}
		})
	}
}

func TestRate_SoldOutSpendsNoBudget(t *testing.T) {
	s, on := hotServer(t)
	s.opt.Door.ByAddr = thin(t)
	on.RaiseSoldOut(time.Now().Add(time.Hour))
	ctx := hotRequest(t, "buyer-1")
	for range 3 { // it uses none of the budget up either
		perform(t, s, ctx, fasthttp.StatusConflict)
		if got := ctx.Response.Header.Peek("Retry-After"); got != nil {
			t.Errorf("Retry-After: %s", got)
		}
	}
	on.ClearSoldOut()
	perform(t, s, ctx, fasthttp.StatusAccepted)
}

// Every route but a few that are named with a reason is limited by address:
// those that come later are, too.
func TestRate_RoutesAreLimitedByAddress(t *testing.T) {
	free := []string{"buy", "notify", "healthz", "readyz", "time", "page", "pageinfo", "openapi"}
	s, _ := hotServer(t)
	for _, route := range append(free, "products", "product", "challenge", "token", "orders", "order", "events", "payment",
		"cancel", "demo", "login", "sandbox", "one that comes later") {
		s.opt.Rates.ByAddr = thin(t)
		var ctx fasthttp.RequestCtx
		from(&ctx, "192.0.2.1", "")
		if !s.withinRate(&ctx, route) {
			t.Errorf("%s: the first request was limited", route)
		}
		if got := s.withinRate(&ctx, route); got != slices.Contains(free, route) {
			t.Errorf("%s: the second request passes: %v", route, got)
		} else if !got {
			checkLimited(t, &ctx)
		}
		from(&ctx, "192.0.2.2", "")
		if !s.withinRate(&ctx, route) {
			t.Errorf("%s: another address was limited", route)
		}
	}
}

// What stands beside the API is limited as well.
func TestRate_SandboxAndDemoAreLimitedByAddress(t *testing.T) {
	for _, path := range []string{"/demo/login?user=ann", "/sandbox/pay"} {
		s, _ := hotServer(t)
		s.opt.Rates.ByAddr = thin(t)
		s.opt.DemoLogin = func(buyer string) (string, error) { return "token of " + buyer, nil }
		s.opt.SandboxPath, s.pay = "/sandbox/pay", func(*fasthttp.RequestCtx) {}
		var ctx fasthttp.RequestCtx
		from(&ctx, "192.0.2.1", "")
		ctx.Request.SetRequestURI(path)
		perform(t, s, &ctx, fasthttp.StatusOK)
		perform(t, s, &ctx, fasthttp.StatusTooManyRequests)
		checkLimited(t, &ctx)
	}
}

func TestRate_OtherRequestsOfABuyerHaveTheirOwnBudget(t *testing.T) {
	const no = "SK01M757NBG70000008J6JNWTNKR"
	for _, c := range []struct{ method, path string }{
		{"POST", "/api/v1/products/7/challenge"},
		{"POST", "/api/v1/products/7/token"},
		{"GET", "/api/v1/orders"},
		{"GET", "/api/v1/orders/" + no},
		{"GET", "/api/v1/orders/" + no + "/events"},
		{"POST", "/api/v1/orders/" + no + "/payment"},
		{"POST", "/api/v1/orders/" + no + "/cancel"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			s, _ := hotServer(t)
			s.opt.Rates.ByBuyer = thin(t)
			s.opt.Rates.ByBuyer.Allow(admission.TextKey("ann"), s.opt.Clock.Now())
			ctx := hotRequest(t, "ann")
			ctx.Request.Header.SetMethod(c.method)
			ctx.Request.SetRequestURI(c.path)
			s.Handle(ctx)
			checkLimited(t, ctx)
			// Purchases are counted apart, and others are not concerned.
			perform(t, s, hotRequest(t, "ann"), fasthttp.StatusAccepted)
			if ok, _ := s.opt.Rates.ByBuyer.Allow(admission.TextKey("bob"), s.opt.Clock.Now()); !ok {
				t.Error("bob is limited")
			}
		})
	}
}

// refuting finds every token forged, by a public key, unless it is spared that.
type refuting struct{ admission.Buyers }

func (refuting) verdict(look auth.Look) error {
	if look.Spare {
		return auth.ErrSpared
	}
	return auth.ErrForged
}

func (r refuting) FromHeader(dst, _ []byte, look auth.Look) ([]byte, error) {
	return dst, r.verdict(look)
}

func (r refuting) LoginCode(_ []byte, look auth.Look) (auth.Code, error) {
	return auth.Code{}, r.verdict(look)
}

func TestRate_ForgerIsRefusedOnEveryAuthenticatedRoute(t *testing.T) {
	for _, c := range []struct{ method, path string }{
		{"POST", "/api/v1/products/7/orders"},
		{"GET", "/api/v1/orders"},
		{"POST", "/api/v1/login"},
	} {
		s, _ := hotServer(t)
		s.opt.Door.ByForger = thin(t)
		known := s.opt.Door.Buyers
		s.opt.Door.Buyers = refuting{known}
		s.opt.Login = &Login{Read: s.opt.Door.ReadCode}
		for _, status := range []int{401, 429, 429} {
			ctx := hotRequest(t, "ann")
			ctx.Request.Header.SetMethod(c.method)
			ctx.Request.SetRequestURI(c.path)
			ctx.Request.SetBodyString(`{"quantity":1,"code":"a code"}`)
			perform(t, s, ctx, status)
			if status == fasthttp.StatusTooManyRequests {
				checkLimited(t, ctx)
			}
		}
		// A neighbour behind the same address, whom the secret proves.
		s.opt.Door.Buyers = known
		perform(t, s, hotRequest(t, "ann"), fasthttp.StatusAccepted)
	}
}

func TestRate_CountsClientBehindTrustedProxies(t *testing.T) {
	s, _ := hotServer(t)
	var err error
	if s.opt.Proxies, err = admission.NewProxies([]string{"10.0.0.0/8"}); err != nil {
		t.Fatal(err)
	}
	s.opt.Door.ByAddr = thin(t)
	ctx := hotRequest(t, "buyer-1")
	for i, c := range []struct {
		peer, forwarded string
		status          int
	}{
		{"10.0.0.1", "203.0.113.7", 202},
		{"10.0.0.1", "203.0.113.7", 429},
		{"10.0.0.2", "198.51.100.1, 203.0.113.7", 429}, // spoofed, through another proxy
		{"10.0.0.1", "203.0.113.8", 202},
		{"203.0.113.9", "198.51.100.2", 202}, // not a proxy: nothing is believed
		{"203.0.113.9", "198.51.100.3", 429},
		{"10.0.0.1", "2001:db8::1", 202},
		{"10.0.0.1", "2001:db8::2", 429}, // the same /64
	} {
		from(ctx, c.peer, c.forwarded)
		t.Log(i, c)
		perform(t, s, ctx, c.status)
	}
	from(ctx, "10.0.0.1", "198.51.100.1, 203.0.113.7")
	if raceEnabled {
		return
	}
	if got := testing.AllocsPerRun(1000, func() { perform(t, s, ctx, fasthttp.StatusTooManyRequests) }); got > 0 {
		t.Errorf("a limited purchase behind a proxy allocates %v times, budget 0", got)
	}
}
