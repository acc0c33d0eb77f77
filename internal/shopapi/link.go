package shopapi

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/order"
	"seckill/internal/orderlink"
	"seckill/internal/wire"
)

// seen is an order as somebody may see it.
type seen struct {
	order seckill.Order
	// watcher is the order's buyer, also where somebody looks by a link: the bound
	// of event streams counts both.
	watcher string
	byLink  bool
}

// see reads an order for its buyer or, without one, for who has a link to it. A
// link is checked before anything is looked up: one that is not ours says
// nothing about which orders there are.
func (s *Server) see(ctx *fasthttp.RequestCtx, route string, no seckill.OrderNo) (seen, bool) {
	link := ctx.QueryArgs().Peek("link")
	if len(link) == 0 || len(ctx.Request.Header.Peek("Authorization")) > 0 {
		buyer, ok := s.buyer(ctx, route)
		if !ok {
			return seen{}, false
		}
		return s.found(ctx, route, false, func(deadline context.Context) (seckill.Order, string, error) {
			o, err := s.opt.Orders.Find(deadline, buyer, no)
			return o, buyer, err
		})
	}
	if err := s.opt.Links.Check(link, no, s.opt.Clock.Now()); err != nil {
		s.refuse(ctx, route, err)
		return seen{}, false
	}
	return s.found(ctx, route, true, func(deadline context.Context) (seckill.Order, string, error) {
		return s.opt.Orders.Shown(deadline, no)
	})
}

func (s *Server) found(
	ctx *fasthttp.RequestCtx, route string, byLink bool, read func(context.Context) (o seckill.Order, buyer string, err error),
) (seen, bool) {
	deadline, cancel := bounded()
	defer cancel()
	o, buyer, err := read(deadline)
	if err != nil {
		s.refuse(ctx, route, err)
		return seen{}, false
	}
	return seen{order: o, watcher: buyer, byLink: byLink}, true
}

// shown is an order as who looks may see it. Its buyer gets the link to it, for a
// cashier to lead back with; who came by a link gets neither that nor what could
// name the buyer.
func shown(o *seckill.Order, byLink bool, links *orderlink.Signer, now time.Time) wire.Order {
	if byLink {
		bare := order.Bare(*o)
		return wire.OrderOf(&bare)
	}
	as := wire.OrderOf(o)
	as.Link = links.Of(o, now)
	return as
}
