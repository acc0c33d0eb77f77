package shopapi

import (
	"encoding/json"
	"net"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
)

const contentEvents = "text/event-stream"

// events streams the states of an order, beginning with the present one. The stream is
// the connection's last response: the HTTP server hands the connection over.
func (s *Server) events(ctx *fasthttp.RequestCtx, no seckill.OrderNo) {
	seen, ok := s.see(ctx, "events", no)
	if !ok {
		return
	}
	h := &ctx.Response.Header
	h.SetCanonical(cacheControl, noStore)
	if ctx.IsHead() {
		s.body(ctx, "events", fasthttp.StatusOK, contentEvents, nil)
		return
	}
	stream := s.opt.Watch.follow(&seen)
	if stream == nil {
		s.refuse(ctx, "events", &seckill.Error{Code: seckill.CodeTooHot})
		return
	}
	h.SetContentType(contentEvents)
	h.Set("X-Accel-Buffering", "no")
	const untilItEnds = -2 // of fasthttp: no length, and Connection: close
	h.SetContentLength(untilItEnds)
	s.count("events", fasthttp.StatusOK)
	first := append(h.AppendBytes(nil), eventText(shown(&seen.order, seen.byLink, s.opt.Links, s.opt.Clock.Now()))...)
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) { s.stream(stream, c, first) })
}

// stream takes over a connection. The garbage collector frees fasthttp's wrapper with its
// buffers.
func (s *Server) stream(stream *stream, c net.Conn, first []byte) {
	conn := c.(interface{ UnsafeConn() net.Conn }).UnsafeConn().(*unhurriedConn)
	conn.Conn.NeverWait()
	s.opt.Watch.begin(stream, conn.Conn, first)
}

// final reports whether an order's status cannot change any more by itself.
func final(s seckill.OrderStatus) bool {
	return s == seckill.OrderCancelled || s == seckill.OrderFailed || s == seckill.OrderRefunded
}

func eventText(o api.Order) []byte {
	body, err := json.Marshal(o)
	if err != nil { // strings and numbers cannot fail
		panic(err)
	}
	text := append([]byte("event: order\ndata: "), body...)
	return append(text, '\n', '\n')
}
