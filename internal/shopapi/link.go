package shopapi

import (
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/auth"
	"seckill/internal/order"
)

// seen is an order with the permissions of its reader.
type seen struct {
	order seckill.Order
	// watcher is the order's buyer, also for a reader with a link: the bound on
	// event streams counts both.
	watcher string
	byLink  bool
}

// see reads an order for its buyer or, without a login, for the holder of a link. It
// checks the link first, so that a forged link reveals nothing about orders.
func (s *Server) see(ctx *fasthttp.RequestCtx, route string, no seckill.OrderNo) (saw seen, ok bool) {
	deadline, cancel := bounded()
	defer cancel()
	link := ctx.QueryArgs().Peek("link")
	saw.byLink = len(link) > 0 && len(ctx.Request.Header.Peek("Authorization")) == 0
	var err error
	if !saw.byLink {
		if saw.watcher, ok = s.buyer(ctx, route); !ok {
			return saw, false
		}
		saw.order, err = s.opt.Orders.Find(deadline, saw.watcher, no)
	} else if err = s.opt.Links.Check(link, no, s.opt.Clock.Now()); err == nil {
		saw.order, saw.watcher, err = s.opt.Orders.Shown(deadline, no)
	}
	if err != nil {
		s.refuse(ctx, route, err)
	}
	return saw, err == nil
}

// shown is the order as its reader may see it. A buyer also gets the link, for the
// cashier. The holder of a link gets neither the link nor data about the buyer.
func shown(o *seckill.Order, byLink bool, links *auth.LinkSigner, now time.Time) api.Order {
	if byLink {
		bare := order.Bare(*o)
		return api.OrderOf(&bare)
	}
	as := api.OrderOf(o)
	as.Link = links.Of(o, now)
	return as
}
