package shopapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/api"
)

const contentJSON = "application/json"

// routeStatus names a counter of answers.
type routeStatus struct {
	route  string
	status int
}

// count counts an answer. It holds on to the counters, so that counting costs no
// lookup by label.
func (s *Server) count(route string, status int) {
	key := routeStatus{route, status}
	s.counting.RLock()
	c := s.counters[key]
	s.counting.RUnlock()
	if c == nil {
		c = s.opt.Metrics.Route(route, strconv.Itoa(status))
		s.counting.Lock()
		s.counters[key] = c
		s.counting.Unlock()
	}
	c.Inc()
}

// body answers with bytes that must not change.
func (s *Server) body(ctx *fasthttp.RequestCtx, route string, status int, contentType string, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentType(contentType)
	if ctx.IsHead() {
		ctx.Response.SkipBody = true
	}
	ctx.Response.SetBodyRaw(body)
	s.count(route, status)
}

// bodyStream answers 200 with a body that consists of several pieces.
func (s *Server) bodyStream(ctx *fasthttp.RequestCtx, route, contentType string, body io.Reader, size int) {
	ctx.Response.Header.SetContentType(contentType)
	ctx.Response.SetBodyStream(body, size)
	s.count(route, fasthttp.StatusOK)
}

// json answers with a value.
func (s *Server) json(ctx *fasthttp.RequestCtx, route string, status int, value any) {
	body, err := encodeJSON(value)
	if err != nil {
		s.refuse(ctx, route, err)
		return
	}
	if len(body) > smallAnswer && !hold(ctx, cap(body)) {
		ctx.SetConnectionClose()
		s.answer(ctx, route, &seckill.Error{Code: seckill.CodeTooHot})
		return
	}
	ctx.Response.Header.Set("Cache-Control", "no-store")
	s.body(ctx, route, status, contentJSON, body)
}

// result answers with a value, unless err says why there is none.
func (s *Server) result(ctx *fasthttp.RequestCtx, route string, value any, err error) {
	if err != nil {
		s.refuse(ctx, route, err)
		return
	}
	s.json(ctx, route, fasthttp.StatusOK, value)
}

// smallAnswer is the size up to which answers are not counted: pictures, single
// orders and short lists. They fit into the kernel's send buffer four times, and
// must not be refused because others leave long lists unread.
const smallAnswer = 16 << 10

// hold counts the bytes of an answer that is not shared, until it is written. It
// reports false if clients leave too much unread already.
func hold(ctx *fasthttp.RequestCtx, size int) bool {
	conn, ok := ctx.Conn().(*unhurriedConn)
	return !ok || conn.Hold(size)
}

func encodeJSON(value any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // addresses are for people to copy
	err := encoder.Encode(value)
	return bytes.TrimRight(body.Bytes(), "\n"), err
}

// lang is the reader's language.
func (s *Server) lang(ctx *fasthttp.RequestCtx) seckill.Lang {
	return api.Language(ctx.Request.Header.Peek("Accept-Language"))
}

// refuse answers with the error's problem document. What carries no code is
// our own failure: it is logged, and the shopper sees busy. Whoever asks decides
// how often, so of each route's failures one a second is written.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, route string, err error) {
	var refusal *seckill.Error
	if !errors.As(err, &refusal) || refusal.Code == seckill.CodeBusy {
		s.complain(ctx, route, err)
	}
	s.answer(ctx, route, err)
}

func (s *Server) complain(ctx *fasthttp.RequestCtx, route string, err error) {
	s.complaints.Say(slog.LevelWarn, route, "request failed", "request_id", string(requestID(ctx)), "route", route, "error", alert.Clip(err.Error()))
}

// answer is refuse for what is no failure of ours.
func (s *Server) answer(ctx *fasthttp.RequestCtx, route string, err error) {
	lang := s.lang(ctx)
	status, body := api.ProblemOf(err, lang)
	if after := api.RetryAfter(err); after != "" {
		ctx.Response.Header.Set("Retry-After", after)
	} else if status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set("Retry-After", "1")
	}
	if status == fasthttp.StatusUnauthorized {
		ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
	}
	s.document(ctx, route, status, body, lang)
}

// Headers of every refusal, in the form that they have on the wire: a crowd is
// refused, and writing them so is a fifteenth of our own part of that.
var (
	cacheControl     = []byte("Cache-Control")
	noStore          = []byte("no-store")
	contentLanguage  = []byte("Content-Language")
	english, chinese = []byte(seckill.English.String()), []byte(seckill.Chinese.String())
)

func (s *Server) document(ctx *fasthttp.RequestCtx, route string, status int, body []byte, lang seckill.Lang) {
	in := english
	if lang == seckill.Chinese {
		in = chinese
	}
	ctx.Response.Header.SetCanonical(cacheControl, noStore)
	ctx.Response.Header.SetCanonical(contentLanguage, in)
	var room [512]byte // more than a code alone needs
	s.body(ctx, route, status, api.ProblemType, nil)
	ctx.Response.SetBody(api.AppendWithID(room[:0], body, requestID(ctx)))
}

// adaptor serves a net/http handler: for what is not hot.
func adaptor(h http.Handler) fasthttp.RequestHandler { return fasthttpadaptor.NewFastHTTPHandler(h) }
