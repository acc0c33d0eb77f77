package shopapi

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/sale"
)

func (s *Server) time(ctx *fasthttp.RequestCtx) {
	body := append(make([]byte, 0, 32), `{"now_ms":`...)
	body = strconv.AppendInt(body, s.opt.Clock.Now().UnixMilli(), 10)
	ctx.Response.Header.Set("Cache-Control", "no-store")
	s.body(ctx, "time", fasthttp.StatusOK, contentJSON, append(body, '}'))
}

// buyerOf answers 404 for an unknown product and 401 for an unknown buyer.
func (s *Server) buyerOf(ctx *fasthttp.RequestCtx, route string, on *sale.Sale) (string, bool) {
	if on == nil {
		s.notFound(ctx)
		return "", false
	}
	return s.buyer(ctx, route)
}

// buyer authenticates the buyer. It answers 401, or 429 if the buyer exceeds the rate.
func (s *Server) buyer(ctx *fasthttp.RequestCtx, route string) (string, bool) {
	var room [seckill.MaxBuyerBytes]byte
	buyer, err := s.opt.Door.Prove(room[:0], ctx.Request.Header.Peek("Authorization"), s.client(ctx))
	if err != nil {
		s.answer(ctx, route, err) // if keys are due, the background fetch logs it
		return "", false
	}
	if !s.buyerWithinRate(ctx, route, buyer) {
		return "", false
	}
	return string(buyer), true
}

// field is a string member of a body.
type field struct {
	name  string
	value *string
}

// readJSON reads the fields of a small JSON object; an empty body is {}. Missing fields
// stay unchanged, unknown ones are ignored.
func readJSON(ctx *fasthttp.RequestCtx, fields ...field) error {
	body := bytes.TrimLeft(ctx.Request.Body(), " \t\r\n")
	if len(body) == 0 {
		return nil
	}
	object, err := api.ReadObject(body)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if err := object.Decode(f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}
