package shopapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/notify"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/payment/paysandbox"
	"seckill/test/rig"
)

// purse is a provider whose callbacks are what a test says. It acknowledges as
// the sandbox does, unless a test says otherwise.
type purse struct {
	payment.Provider
	notice      payment.Notice
	got         func(header http.Header, body []byte) // nil for nobody who looks
	acknowledge func(refusal error) payment.Acknowledgement
}

func (p *purse) Acknowledge(refusal error) payment.Acknowledgement {
	if p.acknowledge != nil {
		return p.acknowledge(refusal)
	}
	return (&paysandbox.Sandbox{}).Acknowledge(refusal)
}

func (p *purse) Notice(_ context.Context, header http.Header, body []byte) (payment.Notice, error) {
	if p.got != nil {
		p.got(header, body)
	}
	return p.notice, nil
}

// notifyServer takes callbacks of the purse; money of one queued order is on its
// way.
func notifyServer(t *testing.T) (*rig.Rig, *purse, *Server, *fasthttp.RequestCtx) {
	t.Helper()
	r := rig.New(t)
	no := r.Buy(t, r.Open(t, 7, 5), "bob")[0]
	with := &purse{notice: payment.Notice{
		Provider: "purse", TradeNo: "t1", OrderNo: no.String(), AmountCents: 999, Currency: "CNY", PaidAt: r.Time.Now(),
	}}
	s, _ := hotServer(t)
	s.opt.Orders = &order.Orders{
		Store: r.Store, Ledger: r.Ledger, Queue: r.Queue, Catalog: r.Catalog, ReadWithin: time.Minute,
		Providers: map[string]payment.Provider{"purse": with}, Duties: background.NewDuties(notify.NoBoard{}), OnPayment: func(uint32, string) {},
	}
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod(fasthttp.MethodPost)
	ctx.Request.SetRequestURI("/api/v1/payments/purse/notify")
	ctx.Request.SetBodyString(`{}`)
	return r, with, s, ctx
}

// A provider that is told 503 comes again; one that is told 200 has done its
// part, whatever becomes of the money.
func TestNotify_QueuedOrderIsBusySoProviderRetries(t *testing.T) {
	r, with, s, ctx := notifyServer(t)
	perform(t, s, ctx, fasthttp.StatusServiceUnavailable)
	if body := string(ctx.Response.Body()); !strings.Contains(body, `"code":"busy"`) || len(ctx.Response.Header.Peek("Retry-After")) == 0 {
		t.Errorf("got %s", body)
	}
	r.ConfirmAll(t)
	perform(t, s, ctx, fasthttp.StatusOK)
	if body, kind := string(ctx.Response.Body()), string(ctx.Response.Header.ContentType()); body != `{"result":"ok"}` || kind != contentJSON {
		t.Errorf("acknowledged with %s %s", kind, body)
	}
	no, err := seckill.ParseOrderNo([]byte(with.notice.OrderNo))
	if err != nil {
		t.Fatal(err)
	}
	if status := r.Status(t, no); status != seckill.OrderPaid {
		t.Errorf("the order is %s", status)
	}
	perform(t, s, ctx, fasthttp.StatusOK) // once more, and counts once
	with.notice.AmountCents++
	perform(t, s, ctx, fasthttp.StatusConflict)
}

// Alipay reads the text of the body and ignores the status.
func TestNotify_ProviderChoosesItsAcknowledgement(t *testing.T) {
	r, with, s, ctx := notifyServer(t)
	with.acknowledge = func(refusal error) payment.Acknowledgement {
		text := "success"
		if refusal != nil {
			text = "fail " + string(seckill.CodeOf(refusal))
		}
		return payment.Acknowledgement{Status: fasthttp.StatusOK, ContentType: "text/plain; charset=utf-8", Body: []byte(text)}
	}
	expect := func(want string) {
		t.Helper()
		perform(t, s, ctx, fasthttp.StatusOK)
		if body, kind := string(ctx.Response.Body()), string(ctx.Response.Header.ContentType()); body != want || kind != "text/plain; charset=utf-8" {
			t.Errorf("answered %s %q, want %q", kind, body, want)
		}
	}
	expect("fail busy")
	r.ConfirmAll(t)
	expect("success")
	with.notice.AmountCents++
	expect("fail wrong_state")
}
