package shopapi

import (
	"context"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/admission"
	"seckill/internal/api"
	"seckill/internal/purchase"
	"seckill/internal/sale"
)

// requests is a pool, so that the gates' buffers are not allocated per request.
var requests = sync.Pool{New: func() any { return new(admission.Request) }}

// The accepted answer around its order number and its status.
var (
	acceptedHead   = []byte(`{"order_no":"`)
	acceptedStatus = []byte(`","status":"`)
	acceptedTail   = []byte(`"}`)
)

// buy handles a purchase: first the gates, then the seller.
func (s *Server) buy(ctx *fasthttp.RequestCtx, product uint32) {
	on := s.opt.Catalog.Find(product)
	if on == nil { // it is over or does not exist
		var err error
		if on, err = s.opt.Catalog.LookForVisitor(context.Background(), product); err != nil {
			s.refuse(ctx, "product", err)
			return
		}
		if on == nil {
			s.notFound(ctx)
			return
		}
	}
	req := requests.Get().(*admission.Request)
	*req = admission.Request{
		Authorization: ctx.Request.Header.Peek("Authorization"),
		Addr:          s.client(ctx),
		Key:           ctx.Request.Header.Peek("Idempotency-Key"),
		Body:          ctx.Request.Body(),
	}
	var pass admission.Pass
	refusal := s.opt.Door.Admit(on, req, &pass)
	requests.Put(req)
	if refusal.Code != "" {
		s.turnAway(ctx, on, refusal)
		return
	}
	bought, err := s.opt.Stage.Buy(on, purchase.Claim{
		Buyer: pass.Buyer, Quantity: pass.Quantity, Key: pass.Key, Ref: pass.Ref,
	})
	if err != nil {
		s.refused(ctx, on, err)
		return
	}
	on.Accepted.Add(1)
	s.opt.Metrics.Accepted.Inc()
	ctx.SetStatusCode(fasthttp.StatusAccepted)
	ctx.Response.Header.SetContentType(contentJSON)
	ctx.Response.Header.SetCanonical(cacheControl, noStore)
	ctx.Response.AppendBody(acceptedHead)
	var text [seckill.OrderNoLen]byte
	number, _ := bought.OrderNo.AppendText(text[:0])
	ctx.Response.AppendBody(number)
	ctx.Response.AppendBody(acceptedStatus)
	ctx.Response.AppendBodyString(bought.Status.String())
	ctx.Response.AppendBody(acceptedTail)
	s.count("buy", fasthttp.StatusAccepted)
}

// turnAway answers a claim that a gate refused. This is never a failure of the server.
// Without details, the response is shared bytes and costs no allocation.
func (s *Server) turnAway(ctx *fasthttp.RequestCtx, on *sale.Sale, r admission.Refusal) {
	on.CountRefused(r.Code)
	s.opt.Metrics.Refused(r.Code, r.Gate)
	switch {
	case r.Code == seckill.CodeRateLimited:
		s.limited(ctx, "buy", r.RetryAfter)
	case r.Detail != "" || r.RetryAfter > 0:
		s.answer(ctx, "buy", &seckill.Error{Code: r.Code, Detail: r.Detail, RetryAfter: int(r.RetryAfter / time.Second)})
	default:
		s.plain(ctx, r.Code)
	}
}

// refused answers a claim that the purchase stage or the ledger refused.
func (s *Server) refused(ctx *fasthttp.RequestCtx, on *sale.Sale, err error) {
	code := seckill.CodeOf(err)
	on.CountRefused(code)
	gate := admission.Gate("")
	if code == seckill.CodeTooHot {
		gate = admission.GateQueue
	}
	s.opt.Metrics.Refused(code, gate)
	if e, ok := err.(*seckill.Error); ok && e.Detail == "" && len(e.OrderNos) == 0 {
		s.plain(ctx, code)
		return
	}
	s.refuse(ctx, "buy", err)
}

// plain answers with a code without details.
func (s *Server) plain(ctx *fasthttp.RequestCtx, code seckill.Code) {
	lang := s.lang(ctx)
	status, body := api.ProblemOfCode(code, lang)
	if status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set("Retry-After", "1")
	}
	s.document(ctx, "buy", status, body, lang)
}
