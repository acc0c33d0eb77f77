package shopapi

import (
	"slices"

	"github.com/valyala/fasthttp"

	"seckill"
)

// Permissions of pages from other origins. A browser caches them for preflightLife, the
// longest time that any browser allows.
const (
	corsMethods   = "GET, POST"
	corsHeaders   = "Authorization, Content-Type, Idempotency-Key, Accept-Language, " + seckill.RequestIDHeader
	corsExposed   = "Retry-After, Content-Language, " + seckill.RequestIDHeader
	preflightLife = "7200"
)

// cors lets pages of the configured origins use the API, and nothing else. A page sends
// the buyer's token in a header, never in a cookie. So browsers add no credentials.
type cors []string

// allow tells the browser whether the page may read the response, and which headers.
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

// preflight answers a CORS preflight. It ignores the path, so that preflights of a crowd
// cost little.
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
