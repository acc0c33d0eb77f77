package shopapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/wire"
)

// bounded is the deadline of a request that reads or moves an order.
func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), requestDeadline)
}

func (s *Server) listOrders(ctx *fasthttp.RequestCtx) {
	buyer, ok := s.buyer(ctx, "orders")
	if !ok {
		return
	}
	limit, err := pageLimit(ctx.QueryArgs())
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
	if err != nil {
		s.refuse(ctx, "orders", err)
		return
	}
	s.json(ctx, "orders", fasthttp.StatusOK, struct {
		Orders  []wire.Order `json:"orders"`
		Partial bool         `json:"partial"`
	}{wire.List(listed.Orders, wire.OrderOf), listed.Partial})
}

func (s *Server) readOrder(ctx *fasthttp.RequestCtx, no seckill.OrderNo) {
	if seen, ok := s.see(ctx, "order", no); ok {
		s.answerOrder(ctx, "order", seen.order, nil)
	}
}

func (s *Server) cancel(ctx *fasthttp.RequestCtx, no seckill.OrderNo) {
	buyer, ok := s.buyer(ctx, "cancel")
	if !ok {
		return
	}
	if err := readJSON(ctx, &struct{}{}); err != nil {
		s.refuse(ctx, "cancel", err)
		return
	}
	deadline, cancel := bounded()
	defer cancel()
	o, err := s.opt.Orders.CancelOwn(deadline, buyer, no)
	s.answerOrder(ctx, "cancel", o, err)
}

func (s *Server) answerOrder(ctx *fasthttp.RequestCtx, route string, o seckill.Order, err error) {
	if err != nil {
		s.refuse(ctx, route, err)
		return
	}
	s.json(ctx, route, fasthttp.StatusOK, wire.OrderOf(&o))
}

func (s *Server) payment(ctx *fasthttp.RequestCtx, no seckill.OrderNo) {
	buyer, ok := s.buyer(ctx, "payment")
	if !ok {
		return
	}
	var with struct {
		Provider text `json:"provider"`
	}
	if err := readJSON(ctx, &with); err != nil {
		s.refuse(ctx, "payment", err)
		return
	}
	if with.Provider == "" {
		s.refuse(ctx, "payment", seckill.Errorf(seckill.CodeBadRequest, "provider must be set"))
		return
	}
	deadline, cancel := bounded()
	defer cancel()
	session, err := s.opt.Orders.BeginPayment(deadline, buyer, no, string(with.Provider))
	if err != nil {
		s.refuse(ctx, "payment", err)
		return
	}
	s.json(ctx, "payment", fasthttp.StatusOK, struct {
		PayURL    string    `json:"pay_url"`
		ExpiresAt wire.Time `json:"expires_at"`
	}{session.PayURL, wire.Time(session.ExpiresAt)})
}

func (s *Server) notify(ctx *fasthttp.RequestCtx, provider string) {
	header := make(http.Header)
	for name, value := range ctx.Request.Header.All() {
		header.Add(string(name), string(value))
	}
	deadline, cancel := bounded()
	defer cancel()
	body := append([]byte(nil), ctx.Request.Body()...)
	if _, err := s.opt.Orders.Notify(deadline, provider, header, body); err != nil {
		level := slog.LevelWarn
		if seckill.CodeOf(err) == seckill.CodeTokenInvalid {
			level = slog.LevelDebug // not the provider's: anybody can send those
		}
		s.opt.Logger.Log(deadline, level, "payment notice refused", "provider", provider, "error", err)
		s.refuse(ctx, "notify", err)
		return
	}
	s.json(ctx, "notify", fasthttp.StatusOK, map[string]string{"result": "ok"})
}
