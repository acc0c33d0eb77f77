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
	// watcher is who looks, for the bound of event streams: a buyer, or an
	// order's link.
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
		return s.found(ctx, route, seen{watcher: buyer}, func(deadline context.Context) (seckill.Order, error) {
			return s.opt.Orders.Find(deadline, buyer, no)
		})
	}
	if err := s.opt.Links.Check(link, no, s.opt.Clock.Now()); err != nil {
		s.refuse(ctx, route, err)
		return seen{}, false
	}
	// No buyer's name has a control character.
	as := seen{watcher: "\x00" + no.String(), byLink: true}
	return s.found(ctx, route, as, func(deadline context.Context) (seckill.Order, error) {
		return s.opt.Orders.Shown(deadline, no)
	})
}

func (s *Server) found(ctx *fasthttp.RequestCtx, route string, as seen, read func(context.Context) (seckill.Order, error)) (seen, bool) {
	deadline, cancel := bounded()
	defer cancel()
	var err error
	if as.order, err = read(deadline); err != nil {
		s.refuse(ctx, route, err)
		return seen{}, false
	}
	return as, true
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
