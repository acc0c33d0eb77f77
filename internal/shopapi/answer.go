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

// routeStatus is the key of a response counter.
type routeStatus struct {
	route  string
	status int
}

// count counts a response. It caches the counters, so that counting needs no lookup by
// label.
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

// bodyStream answers 200 with a body of several pieces.
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

// result answers with a value, or with err if it is not nil.
func (s *Server) result(ctx *fasthttp.RequestCtx, route string, value any, err error) {
	if err != nil {
		s.refuse(ctx, route, err)
		return
	}
	s.json(ctx, route, fasthttp.StatusOK, value)
}

// smallAnswer is the size up to which responses are not counted: pictures, single orders
// and short lists. The kernel's send buffer holds four of them. They must not be refused
// because other clients leave long lists unread.
const smallAnswer = 16 << 10

// hold counts the bytes of a response that is not shared, until it is written. It returns
// false if clients leave too many bytes unread already.
func hold(ctx *fasthttp.RequestCtx, size int) bool {
	conn, ok := ctx.Conn().(*unhurriedConn)
	return !ok || conn.Hold(size)
}

func encodeJSON(value any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // keep URLs readable
	err := encoder.Encode(value)
	return bytes.TrimRight(body.Bytes(), "\n"), err
}

// lang returns the client's language.
func (s *Server) lang(ctx *fasthttp.RequestCtx) seckill.Lang {
	return api.Language(ctx.Request.Header.Peek("Accept-Language"))
}

// refuse answers with the error's problem document. An error without a code is a failure
// of the server: it is logged, and the client gets busy. Clients decide how often this
// happens, so the log has at most one line per second and route.
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

// answer is refuse for errors that are not the server's failure.
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

// Headers of all refusals, as bytes of the response. A crowd gets refusals, and this
// saves a fifteenth of our own CPU time for one.
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
	var room [512]byte // more than needed for a code without details
	s.body(ctx, route, status, api.ProblemType, nil)
	ctx.Response.SetBody(api.AppendWithID(room[:0], body, requestID(ctx)))
}

// adaptor serves a net/http handler, for routes that are not hot.
func adaptor(h http.Handler) fasthttp.RequestHandler { return fasthttpadaptor.NewFastHTTPHandler(h) }
