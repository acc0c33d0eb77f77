// Package shopapi is the public HTTP API on fasthttp: the page, purchases behind the
// gates, and a buyer's own orders.
//
//   - server.go, library.go, route.go, answer.go: the server, its settings and routes
//   - deadline.go, framing.go, chunks.go: connections and request framing
//   - buy.go, challenge.go, list.go, order.go, login.go, link.go: the routes
//   - stream.go, watch.go, return.go: event streams, and units that may come back
//   - page*.go, site.go, policy.go, cors.go: the shopper's page
package shopapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/admission"
	"seckill/internal/api"
	"seckill/internal/challenge"

	"seckill/internal/alert"
	"seckill/internal/auth"
	"seckill/internal/metrics"
	"seckill/internal/order"
	"seckill/internal/purchase"
	"seckill/internal/sale"
)

// requestDeadline bounds every request except purchases.
const requestDeadline = 3 * time.Second

// Options are the server's dependencies and settings.
type Options struct {
	Catalog *sale.Catalog
	Clock   *sale.Clock
	Door    *admission.Doorkeeper
	Rates   Rates
	Proxies *admission.Proxies // trusted X-Forwarded-For senders
	Stage   *purchase.Stage
	Orders  *order.Orders
	// Challenges issues challenges and purchase tokens.
	Challenges *challenge.Issuer
	Terms      api.ShopTerms
	Page       fs.FS
	// PagePolicy is the page's Content-Security-Policy.
	PagePolicy string
	Metrics    *metrics.Metrics
	Logger     *slog.Logger
	// Sandbox serves the sandbox provider's pay page at SandboxPath; nil for none.
	SandboxPath string
	Sandbox     http.Handler
	// Links makes and reads links that show an order without a login.
	Links *auth.LinkSigner
	// Login exchanges the login codes of the shop, whose login page is LoginURL; nil
	// and "" for none.
	Login    *Login
	LoginURL string
	// PayURL is the shop's own cashier, "" for none.
	PayURL string
	// CORSOrigins are the origins whose pages may use the API.
	CORSOrigins []string
	// DemoLogin signs a demo buyer's token; nil without a demo.
	DemoLogin func(buyer string) (string, error)
	// Watch follows orders for event streams.
	Watch *Watch
	// Returns knows until when a sold-out product's units may come back; nil for
	// none.
	Returns *Returns
	// TLS: this port serves TLS, so browsers are told to require it (HSTS).
	TLS bool
	// Ready reports why purchases cannot be served, or nil.
	Ready func(ctx context.Context) error
}

// Server is the public HTTP server.
type Server struct {
	opt        Options
	http       *fasthttp.Server
	page       *pages
	pay        fasthttp.RequestHandler
	cors       cors
	list       listCache
	complaints *alert.ThrottledLog // log of failures that requests cause
	counting   sync.RWMutex
	counters   map[routeStatus]prometheus.Counter
	// ending: every response closes its connection.
	ending atomic.Bool
}

// New makes a server. Serve starts it.
func New(opt Options) (*Server, error) {
	page, err := loadPages(opt.Page)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opt: opt, page: page, cors: opt.CORSOrigins, counters: make(map[routeStatus]prometheus.Counter),
		complaints: alert.NewThrottledLog(opt.Logger, time.Now),
	}
	if opt.Sandbox != nil {
		s.pay = adaptor(opt.Sandbox)
	}
	s.http = s.newHTTP()
	return s, nil
}

// Serve serves a listener until Shutdown.
func (s *Server) Serve(l *api.Listener) error { return s.http.Serve(unhurried{l}) }

// EndConnections makes every later response close its connection. Idle connections stay
// until their next request or Shutdown.
func (s *Server) EndConnections() { s.ending.Store(true) }

// Shutdown stops accepting, ends event streams, and waits for requests in progress.
func (s *Server) Shutdown(ctx context.Context) error {
	s.opt.Watch.Close()
	return s.http.ShutdownWithContext(ctx)
}

// badRequest answers requests that fasthttp could not read.
func (s *Server) badRequest(ctx *fasthttp.RequestCtx, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// The request timed out. A response could meet a request that the client is
		// just sending and would pass for its answer. A closed connection correctly
		// says that nothing was done.
		ctx.Conn().Close()
		return
	}
	detail := "the request could not be read"
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		detail = "the body is larger than 16 KiB"
	case errors.Is(err, errChunks):
		detail = err.Error()
	case errors.As(err, &small):
		detail = "the request's head is larger than 8 KiB"
	}
	s.guard(ctx)
	s.refuseFraming(ctx, fasthttp.StatusBadRequest, detail)
}

// guard sets the headers of every response: the request id, nosniff, and HSTS if this port
// serves TLS.
func (s *Server) guard(ctx *fasthttp.RequestCtx) {
	var room [seckill.MaxRequestID]byte
	h := &ctx.Response.Header
	h.SetCanonical(requestIDName, seckill.AppendRequestID(room[:0], ctx.Request.Header.PeekBytes(requestIDName)))
	h.SetCanonical(nosniffName, nosniffValue)
	if s.opt.TLS {
		h.SetCanonical(insistName, insistValue)
	}
}

// requestID returns the id that guard set.
func requestID(ctx *fasthttp.RequestCtx) []byte { return ctx.Response.Header.PeekBytes(requestIDName) }

var (
	requestIDName             = []byte(seckill.RequestIDHeader)
	nosniffName, nosniffValue = []byte("X-Content-Type-Options"), []byte("nosniff")
	insistName, insistValue   = []byte("Strict-Transport-Security"), []byte("max-age=31536000")
)

func (s *Server) recoverPanic(ctx *fasthttp.RequestCtx) {
	if p := recover(); p != nil {
		s.opt.Metrics.Panics.Inc()
		ctx.Response.Reset()
		s.guard(ctx)
		s.complaints.Say(slog.LevelError, "panic", "request panicked", "request_id", string(requestID(ctx)),
			"path", alert.Clip(string(ctx.Path())), "panic", alert.Clip(fmt.Sprint(p)), "stack", string(debug.Stack()))
		s.answer(ctx, "panic", seckill.Errorf(seckill.CodeBusy, "internal error"))
	}
}

func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	deadline, cancel := bounded()
	defer cancel()
	if err := s.opt.Ready(deadline); err != nil {
		s.refuse(ctx, "readyz", seckill.Errorf(seckill.CodeBusy, "%w", err))
		return
	}
	s.json(ctx, "readyz", 200, map[string]string{"status": "ok"})
}

func (s *Server) demoLogin(ctx *fasthttp.RequestCtx) {
	buyer := string(ctx.QueryArgs().Peek("user"))
	if err := seckill.CheckBuyer(buyer); err != nil {
		s.refuse(ctx, "demo", err)
		return
	}
	token, err := s.opt.DemoLogin(buyer)
	s.result(ctx, "demo", map[string]string{"token": token, "buyer": buyer}, err)
}

// pageLimit reads ?limit=, between 1 and maxPage. Repeated parameters are ambiguous and
// refused.
func pageLimit(args *fasthttp.Args, unset int) (int, error) {
	var limits, cursors int
	for name := range args.All() {
		switch string(name) {
		case "limit":
			limits++
		case "after", "before":
			cursors++
		}
	}
	if limits > 1 || cursors > 1 {
		return 0, seckill.Errorf(seckill.CodeBadRequest, "limit, after and before must be given once")
	}
	if limits == 0 {
		return unset, nil
	}
	text := args.Peek("limit")
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > maxPage || strconv.Itoa(n) != string(text) {
		return 0, seckill.Errorf(seckill.CodeBadRequest, "limit must be 1 to %d", maxPage)
	}
	return n, nil
}
