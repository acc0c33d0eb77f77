package shopapi

import (
	"bytes"
	"context"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
)

var (
	apiPrefix      = []byte("/api/v1/")
	productsPrefix = []byte("products/")
	ordersSuffix   = []byte("/orders")
)

// Handle routes by hand, to be fast: a purchase needs one prefix test and a number.
func (s *Server) Handle(ctx *fasthttp.RequestCtx) {
	defer s.recoverPanic(ctx)
	s.guard(ctx)
	if s.ending.Load() {
		ctx.SetConnectionClose()
	}
	if status, reason := refusedFraming(ctx); status != 0 {
		s.refuseFraming(ctx, status, reason)
		return
	}
	path := ctx.Path()
	// Each operation has one spelling. fasthttp decodes and cleans paths. Paths such
	// as //api or %2e%2e would match here, but not in a proxy's rules.
	if !bytes.Equal(path, ctx.URI().PathOriginal()) {
		s.notFound(ctx)
		return
	}
	if encoding := ctx.Request.Header.ContentEncoding(); len(encoding) > 0 {
		s.refuse(ctx, "bad", seckill.Errorf(seckill.CodeBadRequest, "Content-Encoding is not supported: send the body as it is"))
		return
	}
	rest, ok := bytes.CutPrefix(path, apiPrefix)
	if !ok {
		s.other(ctx, string(path))
		return
	}
	if len(s.cors) > 0 {
		s.cors.allow(ctx)
	}
	if product := purchasedProduct(rest); product != 0 && ctx.IsPost() {
		s.buy(ctx, product)
		return
	}
	s.api(ctx, rest)
}

// purchasedProduct returns the product of products/{id}/orders, or 0 for other paths.
func purchasedProduct(path []byte) uint32 {
	rest, of := bytes.CutPrefix(path, productsPrefix)
	id, orders := bytes.CutSuffix(rest, ordersSuffix)
	if !of || !orders {
		return 0
	}
	return productID(id)
}

// api routes below /api/v1/, except purchases.
func (s *Server) api(ctx *fasthttp.RequestCtx, rest []byte) {
	if s.preflight(ctx) {
		return
	}
	if len(rest) > 0 && rest[len(rest)-1] == '/' {
		s.notFound(ctx)
		return
	}
	first, rest, _ := bytes.Cut(rest, []byte{'/'})
	switch string(first) {
	case "products":
		s.products(ctx, rest)
	case "orders":
		s.orders(ctx, rest)
	case "time":
		if len(rest) > 0 {
			s.notFound(ctx)
		} else if s.method(ctx, "time", fasthttp.MethodGet) {
			s.time(ctx)
		}
	case "page":
		if len(rest) > 0 {
			s.notFound(ctx)
		} else if s.method(ctx, "pageinfo", fasthttp.MethodGet) {
			s.pageInfo(ctx)
		}
	case "login":
		if len(rest) > 0 || s.opt.Login == nil {
			s.notFound(ctx)
		} else if s.method(ctx, "login", fasthttp.MethodPost) {
			s.login(ctx)
		}
	case "payments":
		provider, action, _ := bytes.Cut(rest, []byte{'/'})
		if string(action) == "notify" && s.opt.Orders.Takes(string(provider)) {
			if !s.method(ctx, "notify", fasthttp.MethodPost) {
				return
			}
			name := string(provider)
			notify := func(ctx *fasthttp.RequestCtx) { s.notify(ctx, name) }
			if _, chunks := framing(&ctx.Request.Header); chunks {
				s.inChunks(ctx, notify)
			} else {
				notify(ctx)
			}
			return
		}
		s.notFound(ctx)
	default:
		s.notFound(ctx)
	}
}

// products routes below /api/v1/products.
func (s *Server) products(ctx *fasthttp.RequestCtx, rest []byte) {
	if len(rest) == 0 {
		if s.method(ctx, "products", fasthttp.MethodGet) {
			s.listProducts(ctx)
		}
		return
	}
	idText, action, _ := bytes.Cut(rest, []byte{'/'})
	on, err := s.opt.Catalog.LookForVisitor(context.Background(), productID(idText)) // has its own deadline
	if err != nil {
		s.refuse(ctx, "product", err)
		return
	}
	switch string(action) {
	case "orders":
		if s.method(ctx, "buy", fasthttp.MethodPost) { // of no product: Handle routes purchases
			s.notFound(ctx)
		}
	case "":
		if s.method(ctx, "product", fasthttp.MethodGet) {
			s.readProduct(ctx, on)
		}
	case "challenge":
		if s.method(ctx, "challenge", fasthttp.MethodPost) {
			s.challenge(ctx, on)
		}
	case "token":
		if s.method(ctx, "token", fasthttp.MethodPost) {
			s.token(ctx, on)
		}
	default:
		s.notFound(ctx)
	}
}

// productID reads a product id. It returns 0, which no product has, for other texts.
func productID(text []byte) uint32 {
	if len(text) == 0 || len(text) > 10 || text[0] == '0' {
		return 0
	}
	var id uint64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0
		}
		id = id*10 + uint64(c-'0')
	}
	if id > 1<<32-1 {
		return 0
	}
	return uint32(id)
}

// orders routes below /api/v1/orders.
func (s *Server) orders(ctx *fasthttp.RequestCtx, rest []byte) {
	if len(rest) == 0 {
		if s.method(ctx, "orders", fasthttp.MethodGet) {
			s.listOrders(ctx)
		}
		return
	}
	noText, action, _ := bytes.Cut(rest, []byte{'/'})
	no, err := seckill.ParseOrderNo(noText)
	if err != nil {
		s.notFound(ctx)
		return
	}
	switch string(action) {
	case "":
		if s.method(ctx, "order", fasthttp.MethodGet) {
			s.readOrder(ctx, no)
		}
	case "events":
		if s.method(ctx, "events", fasthttp.MethodGet) {
			s.events(ctx, no)
		}
	case "payment":
		if s.method(ctx, "payment", fasthttp.MethodPost) {
			s.payment(ctx, no)
		}
	case "cancel":
		if s.method(ctx, "cancel", fasthttp.MethodPost) {
			s.cancel(ctx, no)
		}
	default:
		s.notFound(ctx)
	}
}

// other routes paths outside the API: page, spec, health, demo, sandbox.
func (s *Server) other(ctx *fasthttp.RequestCtx, path string) {
	switch {
	case path == "/healthz":
		if s.method(ctx, "healthz", fasthttp.MethodGet) {
			s.json(ctx, "healthz", 200, map[string]string{"status": "ok"})
		}
	case path == "/readyz":
		if s.method(ctx, "readyz", fasthttp.MethodGet) {
			s.ready(ctx)
		}
	case path == "/openapi.yaml":
		if s.method(ctx, "openapi", fasthttp.MethodGet) {
			s.body(ctx, "openapi", 200, "application/yaml", seckill.OpenAPI)
		}
	case s.opt.DemoLogin != nil && path == "/demo/login":
		if s.method(ctx, "demo", fasthttp.MethodGet) {
			s.demoLogin(ctx)
		}
	case s.pay != nil && path == s.opt.SandboxPath:
		if s.withinRate(ctx, "sandbox") {
			s.pay(ctx)
		}
	default:
		s.static(ctx, path)
	}
}

func (s *Server) notFound(ctx *fasthttp.RequestCtx) {
	s.refuse(ctx, "unknown", &seckill.Error{Code: seckill.CodeNotFound})
}

// method answers 405 for another method (HEAD counts as GET), and 429 if the address
// exceeds its rate.
func (s *Server) method(ctx *fasthttp.RequestCtx, route, want string) bool {
	if got := ctx.Method(); string(got) == want || want == fasthttp.MethodGet && ctx.IsHead() {
		return s.withinRate(ctx, route)
	}
	ctx.Response.Header.Set("Allow", want)
	err := seckill.Errorf(seckill.CodeBadRequest, "the method must be %s", want)
	lang := s.lang(ctx)
	s.document(ctx, route, fasthttp.StatusMethodNotAllowed, api.ProblemWithStatus(fasthttp.StatusMethodNotAllowed, err, lang), lang)
	return false
}
