package shopapi

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/admission"
	"seckill/internal/api"
)

// Rates limit the requests of shoppers, except purchases, which have their own limits.
// So a page that refreshes its orders cannot use up the buyer's purchases. A nil limiter
// is off.
type Rates struct {
	ByAddr  *admission.Limiter
	ByBuyer *admission.Limiter
}

// withinRate answers 429 if the address exceeds its rate. It applies to every route that
// is not named here, new ones included.
func (s *Server) withinRate(ctx *fasthttp.RequestCtx, route string) bool {
	switch route {
	case "buy": // has its own gates
		return true
	case "notify": // providers send all callbacks from a few addresses
		return true
	case "healthz", "readyz": // monitoring of the engine, not a shopper
		return true
	case "time", "page", "pageinfo", "openapi": // as cheap as a refusal
		return true
	}
	ok, wait := s.opt.Rates.ByAddr.Allow(admission.AddrKey(s.client(ctx)), s.opt.Clock.Now())
	if !ok {
		s.limited(ctx, route, wait)
	}
	return ok
}

// buyerWithinRate answers 429 if a verified buyer exceeds the rate.
func (s *Server) buyerWithinRate(ctx *fasthttp.RequestCtx, route string, buyer []byte) bool {
	ok, wait := s.opt.Rates.ByBuyer.Allow(admission.BytesKey(buyer), s.opt.Clock.Now())
	if !ok {
		s.limited(ctx, route, wait)
	}
	return ok
}

// limited answers 429 with Retry-After. It allocates nothing, because such requests are
// frequent.
func (s *Server) limited(ctx *fasthttp.RequestCtx, route string, wait time.Duration) {
	var room [20]byte // of any number
	ctx.Response.Header.SetBytesV("Retry-After", strconv.AppendInt(room[:0], admission.Seconds(wait), 10))
	lang := s.lang(ctx)
	status, body := api.ProblemOfCode(seckill.CodeRateLimited, lang)
	s.document(ctx, route, status, body, lang)
}

// client returns the client address. This package uses no other one.
func (s *Server) client(ctx *fasthttp.RequestCtx) netip.Addr {
	peer, _ := netip.AddrFromSlice(ctx.RemoteIP())
	return s.opt.Proxies.Client(peer, &ctx.Request.Header)
}
