package shopapi

import (
	"context"
	"net/http"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/api"
)

// ordersPage is the default number of orders per page.
const ordersPage = 20

// bounded returns the deadline of requests other than purchases.
func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), requestDeadline)
}

func (s *Server) listOrders(ctx *fasthttp.RequestCtx) {
	buyer, ok := s.buyer(ctx, "orders")
	if !ok {
		return
	}
	limit, err := pageLimit(ctx.QueryArgs(), ordersPage)
	if err != nil {
		s.refuse(ctx, "orders", err)
		return
	}
	var before seckill.OrderNo
	if args := ctx.QueryArgs(); args.Has("before") {
		if before, err = seckill.ParseOrderNo(args.Peek("before")); err != nil {
			s.refuse(ctx, "orders", seckill.Errorf(seckill.CodeBadRequest, "before: %w", err))
			return
		}
	}
	deadline, cancel := bounded()
	defer cancel()
	listed, err := s.opt.Orders.List(deadline, buyer, before, limit)
	s.result(ctx, "orders", struct {
		Orders  []api.Order `json:"orders"`
		Partial bool        `json:"partial"`
	}{api.List(listed.Orders, api.OrderOf), listed.Partial}, err)
}

func (s *Server) readOrder(ctx *fasthttp.RequestCtx, no seckill.OrderNo) {
	if seen, ok := s.see(ctx, "order", no); ok {
		s.json(ctx, "order", fasthttp.StatusOK, shown(&seen.order, seen.byLink, s.opt.Links, s.opt.Clock.Now()))
	}
}

func (s *Server) cancel(ctx *fasthttp.RequestCtx, no seckill.OrderNo) {
	buyer, ok := s.buyer(ctx, "cancel")
	if !ok {
		return
	}
	if err := readJSON(ctx); err != nil {
		s.refuse(ctx, "cancel", err)
		return
	}
	deadline, cancel := bounded()
	defer cancel()
	o, err := s.opt.Orders.CancelOwn(deadline, buyer, no)
	s.result(ctx, "cancel", api.OrderOf(&o), err)
}

func (s *Server) payment(ctx *fasthttp.RequestCtx, no seckill.OrderNo) {
	buyer, ok := s.buyer(ctx, "payment")
	if !ok {
		return
	}
	var provider string
	if err := readJSON(ctx, field{"provider", &provider}); err != nil {
		s.refuse(ctx, "payment", err)
		return
	}
	if provider == "" {
		s.refuse(ctx, "payment", seckill.Errorf(seckill.CodeBadRequest, "provider must be set"))
		return
	}
	deadline, cancel := bounded()
	defer cancel()
	session, err := s.opt.Orders.BeginPayment(deadline, buyer, no, provider)
	s.result(ctx, "payment", struct {
		PayURL    string   `json:"pay_url"`
		ExpiresAt api.Time `json:"expires_at"`
	}{session.PayURL, api.Time(session.ExpiresAt)}, err)
}

// notify handles a callback of a configured provider. It logs each refused callback with
// its sender, because money is concerned. Callbacks with a wrong signature are not
// logged: any client can send them.
func (s *Server) notify(ctx *fasthttp.RequestCtx, provider string) {
	header := make(http.Header)
	for name, value := range ctx.Request.Header.All() {
		header.Add(string(name), string(value))
	}
	deadline, cancel := bounded()
	defer cancel()
	body := append([]byte(nil), ctx.Request.Body()...)
	_, err := s.opt.Orders.Notify(deadline, provider, header, body)
	switch code := seckill.CodeOf(err); {
	case err == nil:
	case code == seckill.CodeTokenInvalid: // not signed by the provider
	case code == seckill.CodeBusy: // our failure; the provider retries
		s.complain(ctx, "notify", err)
	default:
		s.opt.Logger.Warn("payment notice refused", "provider", provider, "error", alert.Clip(err.Error()))
	}
	acknowledgement := s.opt.Orders.Acknowledge(provider, err)
	if acknowledgement.Status == 0 {
		s.answer(ctx, "notify", err)
		return
	}
	ctx.Response.Header.SetCanonical(cacheControl, noStore)
	s.body(ctx, "notify", acknowledgement.Status, acknowledgement.ContentType, acknowledgement.Body)
}
