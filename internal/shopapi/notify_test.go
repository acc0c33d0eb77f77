package shopapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/test/rig"
)

// purse is a provider whose callbacks are what a test says.
type purse struct {
	payment.Provider
	notice payment.Notice
}

func (p *purse) Notice(context.Context, http.Header, []byte) (payment.Notice, error) {
	return p.notice, nil
}

// A provider that is told 503 comes again; one that is told 200 has done its
// part, whatever becomes of the money.
func TestMoneyForAQueuedOrderIsAskedForAgain(t *testing.T) {
	r := rig.New(t)
	no := r.Buy(t, r.Open(t, 7, 5), "bob")[0]
	with := &purse{notice: payment.Notice{
		Provider: "purse", TradeNo: "t1", OrderNo: no.String(), AmountCents: 999, Currency: "CNY", PaidAt: r.Time.Now(),
	}}
	s, _ := hotServer(t)
	s.opt.Orders = &order.Desk{
		Store: r.Store, Ledger: r.Ledger, Queue: r.Queue, Catalog: r.Catalog, ReadWithin: time.Minute,
		Providers: map[string]payment.Provider{"purse": with}, OnRefund: func() {}, OnPayment: func(string) {},
	}
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod(fasthttp.MethodPost)
	ctx.Request.SetRequestURI("/api/v1/payments/purse/notify")
	ctx.Request.SetBodyString(`{}`)

	perform(t, s, ctx, fasthttp.StatusServiceUnavailable)
	if body := string(ctx.Response.Body()); !strings.Contains(body, `"code":"busy"`) || len(ctx.Response.Header.Peek("Retry-After")) == 0 {
		t.Errorf("got %s", body)
	}
	r.ConfirmAll(t)
	perform(t, s, ctx, fasthttp.StatusOK)
	if status := r.Status(t, no); status != seckill.OrderPaid {
		t.Errorf("the order is %s", status)
	}
	perform(t, s, ctx, fasthttp.StatusOK) // once more, and counts once
	with.notice.AmountCents++
	perform(t, s, ctx, fasthttp.StatusConflict)
}
