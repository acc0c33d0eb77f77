package shopapi

import "github.com/valyala/fasthttp"

// pageInfo is what the page has to know of this shop before anything else.
func (s *Server) pageInfo(ctx *fasthttp.RequestCtx) {
	s.json(ctx, "pageinfo", fasthttp.StatusOK, struct {
		Demo     bool   `json:"demo"`
		LoginURL string `json:"login_url"`
		PayURL   string `json:"pay_url"`
	}{s.opt.DemoLogin != nil, s.opt.LoginURL, s.opt.PayURL})
}
