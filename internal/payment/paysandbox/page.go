package paysandbox

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"seckill"
	"seckill/internal/api"
)

// deliverTimeout bounds how long the buyer waits after pressing the button.
const deliverTimeout = 10 * time.Second

//go:embed page.html page.css
var files embed.FS

// page is the pay page: template, style, and a content security policy that
// allows exactly this style and no script.
type page struct {
	sandbox  *Sandbox
	template *template.Template
	style    template.CSS
	policy   string // up to the targets of forms
}

// Page returns the pay page, to be served at PagePath. GET shows it. POST pays:
// it delivers a signed callback and sends the buyer back to the order.
func (s *Sandbox) Page() http.Handler {
	style, err := files.ReadFile("page.css")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	hash := sha256.Sum256(style)
	return &page{
		sandbox:  s,
		template: template.Must(template.ParseFS(files, "page.html")),
		style:    template.CSS(style),
		policy: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; frame-ancestors 'none'; form-action ",
			base64.StdEncoding.EncodeToString(hash[:])),
	}
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lang := api.Language([]byte(r.Header.Get("Accept-Language")))
	b, err := p.sandbox.readBill(r.URL.Query())
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		text := textsOf(lang)
		p.draw(w, http.StatusMethodNotAllowed, bill{}, view{Text: text, Problem: text.Altered})
	case err != nil:
		p.refuse(w, lang, b, err)
	case r.Method == http.MethodPost:
		p.pay(w, r, lang, b)
	default:
		p.draw(w, http.StatusOK, b, p.view(lang, b))
	}
}

// pay delivers the callback after the button is pressed. If that fails, the
// page is shown again: pressing again cannot pay twice.
func (p *page) pay(w http.ResponseWriter, r *http.Request, lang seckill.Lang, b bill) {
	if err := p.sandbox.press(r.Context(), b); err != nil {
		p.sandbox.log.WarnContext(r.Context(), "sandbox payment not delivered", "order_no", b.orderNo.String(), "error", err)
		again := p.view(lang, b)
		again.Problem = seckill.CodeOf(err).Text(lang)
		if refusal := (*seckill.Error)(nil); errors.As(err, &refusal) {
			again.Problem = refusal.Text(lang)
		}
		p.draw(w, seckill.CodeOf(err).Status(), b, again)
		return
	}
	p.head(w, b)
	w.Header().Set("Location", orderURL(b))
	w.WriteHeader(http.StatusSeeOther)
}

// press makes and delivers the callback, even if the buyer leaves the page
// meanwhile.
func (s *Sandbox) press(ctx context.Context, b bill) error {
	header, body, err := s.callback(b, s.tradeNo(b))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTimeout)
	defer cancel()
	if err := s.deliver(ctx, header, body); err != nil {
		return fmt.Errorf("deliver callback: %w", err)
	}
	return nil
}

// orderURL returns the address to which the buyer returns.
func orderURL(b bill) string {
	if b.back != "" {
		return b.back
	}
	return "/#/orders/" + b.orderNo.String()
}

// formTargets returns the addresses that the policy allows after pressing the
// button: this page, and the page of the order, which may be on another site.
// Browsers apply the policy to redirects too.
func formTargets(b bill) string {
	if u, err := url.Parse(b.back); err == nil && u.Host != "" {
		return "'self' " + u.Scheme + "://" + u.Host
	}
	return "'self'"
}

// refuse shows why the buyer cannot pay here.
func (p *page) refuse(w http.ResponseWriter, lang seckill.Lang, b bill, err error) {
	text := textsOf(lang)
	status, v := http.StatusForbidden, view{Text: text, Problem: text.Altered}
	if errors.Is(err, errExpired) {
		status, v.Problem, v.Back = http.StatusGone, text.Expired, orderURL(b)
	}
	p.draw(w, status, b, v)
}

// view is the data of the template. Without Amount it shows no button.
type view struct {
	Text                     texts
	Style                    template.CSS
	Problem                  string
	OrderNo, Amount, Minutes string
	Back                     string
}

func (p *page) view(lang seckill.Lang, b bill) view {
	text := textsOf(lang)
	return view{
		Text: text, OrderNo: b.orderNo.String(), Amount: text.amount(b.amountCents, b.currency),
		Minutes: text.minutes(b.expires.Sub(p.sandbox.now())), Back: orderURL(b),
	}
}

func (p *page) draw(w http.ResponseWriter, status int, b bill, v view) {
	v.Style = p.style
	p.head(w, b)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", v.Text.Tag)
	w.WriteHeader(status)
	// Execute fails only if the buyer has disconnected.
	_ = p.template.Execute(w, v)
}

// head sets the headers of every answer. An address allows a payment, so it is
// neither cached nor sent as a referrer.
func (p *page) head(w http.ResponseWriter, b bill) {
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy+formTargets(b))
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept-Language")
}
