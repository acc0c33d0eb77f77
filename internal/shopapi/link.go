package shopapi

import (
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/auth"
	"seckill/internal/order"
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

// shown is an order as who looks may see it. Its buyer gets the link to it, for a
// cashier to lead back with; who came by a link gets neither that nor what could
// name the buyer.
func shown(o *seckill.Order, byLink bool, links *auth.LinkSigner, now time.Time) api.Order {
	if byLink {
		bare := order.Bare(*o)
		return api.OrderOf(&bare)
	}
	as := api.OrderOf(o)
	as.Link = links.Of(o, now)
	return as
}
