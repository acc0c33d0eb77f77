package shopapi

import (
	"slices"

	"github.com/valyala/fasthttp"

	"seckill"
)

// What a page of another origin may do. A browser asks once and remembers it for
// preflightLife, which is as long as the most patient one does.
const (
	corsMethods   = "GET, POST"
	corsHeaders   = "Authorization, Content-Type, Idempotency-Key, Accept-Language, " + seckill.RequestIDHeader
	corsExposed   = "Retry-After, Content-Language, " + seckill.RequestIDHeader
	preflightLife = "7200"
)

// cors lets pages of the configured origins use the API, and nothing else of
// this server. Buyers are known by a header that the page sends itself, never by
// a cookie: there are no credentials for a browser to add.
type cors []string

// allow tells the browser whether the page that asks may read the answer. What
// is not named here the browser keeps from it.
func (c cors) allow(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Vary", "Origin")
	if origin := ctx.Request.Header.Peek("Origin"); c.has(origin) {
		h.SetBytesV("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", corsExposed)
	}
}

func (c cors) has(origin []byte) bool {
	return len(origin) > 0 && slices.ContainsFunc(c, func(known string) bool { return known == string(origin) })
}

// preflight answers a browser that asks before it sends: of the path nothing is
// looked at, so that a crowd's questions cost nothing.
func (s *Server) preflight(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	if !ctx.IsOptions() || len(h.Peek("Access-Control-Request-Method")) == 0 || !s.cors.has(h.Peek("Origin")) {
		return false
	}
	answer := &ctx.Response.Header
	answer.Set("Access-Control-Allow-Methods", corsMethods)
	answer.Set("Access-Control-Allow-Headers", corsHeaders)
	answer.Set("Access-Control-Max-Age", preflightLife)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	s.count("preflight", fasthttp.StatusNoContent)
	return true
}
