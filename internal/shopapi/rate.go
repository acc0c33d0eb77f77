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

// Rates bound what shoppers ask for beside purchases, which have their own
// among the gates: a page that looks after its orders must not use up what its
// buyer needs for the next sale. A nil limiter is off.
type Rates struct {
	ByAddr  *admission.Limiter
	ByBuyer *admission.Limiter
}

// withinRate answers 429 to an address that asks for too much. It stands
// before every route that is not named here, new ones included.
func (s *Server) withinRate(ctx *fasthttp.RequestCtx, route string) bool {
	switch route {
	case "buy": // has gates of its own
		return true
	case "notify": // providers report everybody's money from a few addresses
		return true
	case "healthz", "readyz": // ask for the engine, not for a shopper
		return true
	case "time", "page", "pageinfo", "openapi": // cost no more than the refusal
		return true
	}
	ok, wait := s.opt.Rates.ByAddr.Allow(admission.AddrKey(s.client(ctx)), s.opt.Clock.Now())
	if !ok {
		s.limited(ctx, route, wait)
	}
	return ok
}

// buyerWithinRate answers 429 to a proven buyer who asks for too much.
func (s *Server) buyerWithinRate(ctx *fasthttp.RequestCtx, route string, buyer []byte) bool {
	ok, wait := s.opt.Rates.ByBuyer.Allow(admission.BytesKey(buyer), s.opt.Clock.Now())
	if !ok {
		s.limited(ctx, route, wait)
	}
	return ok
}

// limited answers 429 with the time to wait. It allocates nothing: those who ask
// too often are many.
func (s *Server) limited(ctx *fasthttp.RequestCtx, route string, wait time.Duration) {
	var room [20]byte // of any number
	ctx.Response.Header.SetBytesV("Retry-After", strconv.AppendInt(room[:0], admission.Seconds(wait), 10))
	lang := s.lang(ctx)
	status, body := api.ProblemOfCode(seckill.CodeRateLimited, lang)
	s.document(ctx, route, status, body, lang)
}

// client is the address of who asks, and the only one that this package uses.
func (s *Server) client(ctx *fasthttp.RequestCtx) netip.Addr {
	peer, _ := netip.AddrFromSlice(ctx.RemoteIP())
	return s.opt.Proxies.Client(peer, &ctx.Request.Header)
}
