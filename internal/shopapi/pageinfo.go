package shopapi

import "github.com/valyala/fasthttp"

// pageInfo returns the settings that the page needs first.
func (s *Server) pageInfo(ctx *fasthttp.RequestCtx) {
	s.json(ctx, "pageinfo", fasthttp.StatusOK, struct {
		Demo     bool   `json:"demo"`
		LoginURL string `json:"login_url"`
		PayURL   string `json:"pay_url"`
	}{s.opt.DemoLogin != nil, s.opt.LoginURL, s.opt.PayURL})
}
