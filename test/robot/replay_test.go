package robot

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/challenge"
	"seckill/internal/payment/paysandbox"
	"seckill/test/engine"
)

// replays sends valid requests again, to both instances at once. The buyer
// limit is five, so that only the used token can refuse a second order.
func replays(t *testing.T, p *pair) {
	b := p.open(t, engine.Product{ID: 1, Stock: 50, PerUserLimit: 5})
	honest := p.crowd(t, b, 1)
	eve := New(t).Account(p.a, "robot-eve")
	b.gives(eve.Name, 1)
	no := replayedPurchase(b, p, eve)
	replayedAnswer(b, p)
	replayedLogin(b, p, eve)
	replayedLink(b, p, eve)
	replayedMoney(b, p, eve, no)
	honest()
	b.close()
}

const replayed = 16

// replayedPurchase repeats one purchase many times. It is one order.
func replayedPurchase(b *book, p *pair, eve Account) (no string) {
	token := eve.Work(1)
	var nos [replayed]string
	Together(replayed, func(i int) { nos[i] = eve.At(p.either(i)).Press(1, token).OrderNo })
	return one(b.t, "orders of one purchase", nos[:])
}

// replayedAnswer redeems one challenge many times, buys with each token,
// cancels, and buys again with them. There is one order, and it stays
// cancelled.
func replayedAnswer(b *book, p *pair) {
	eve := New(b.t).Account(p.b, "robot-mallory")
	posed, _ := eve.Ask(1, "")
	answer := challenge.Solve(posed.ID, posed.Difficulty)
	var tokens, nos [replayed]string
	again := func(i int) {
		tokens[i] = eve.At(p.either(i)).Redeem(1, posed.ID, answer).Token
		nos[i] = eve.At(p.either(i+1)).Press(1, tokens[i]).OrderNo
	}
	Together(replayed, again)
	no := one(b.t, "orders of one challenge", nos[:])
	pending(b, eve, no)
	if got := eve.decided(http.MethodPost, "/api/v1/orders/"+no+"/cancel", "{}"); got.Status != http.StatusOK {
		b.t.Errorf("cancel: %s", got)
	}
	Together(replayed, again)
	if after := one(b.t, "orders of one challenge after a cancel", nos[:]); after != no {
		b.t.Errorf("a used challenge bought %s after %s", after, no)
	}
}

// pending waits until the worker has written an order.
func pending(b *book, buyer Account, no string) {
	b.eventually("order "+no+" is pending", func() bool {
		return strings.Contains(buyer.Send(http.MethodGet, "/api/v1/orders/"+no, "").Text, `"pending"`)
	})
}

// replayedLogin exchanges one login code many times. It is one login.
func replayedLogin(b *book, p *pair, eve Account) {
	code := signed(b.t, jwt.MapClaims{"sub": "robot-lou", "aud": "seckill-login", "jti": "robot", "exp": in(time.Minute)})
	var logins atomic.Int32 // tokens of the same second are equal
	Together(replayed, func(i int) {
		got := eve.As("").At(p.either(i)).decided(http.MethodPost, "/api/v1/login", fmt.Sprintf(`{"code":%q}`, code))
		if got.Token != "" {
			logins.Add(1)
			return
		}
		b.refused("a used login code", seckill.CodeUnauthenticated, got)
	})
	if got := logins.Load(); got != 1 {
		b.t.Errorf("one code gave %d logins", got)
	}
	b.refused("a login code as a login", seckill.CodeUnauthenticated, eve.As(code).Press(1, ""))
}

// replayedLink has another buyer's order link. It tries to use it for changes,
// after its expiry, and for another order.
func replayedLink(b *book, p *pair, eve Account) {
	victim := New(b.t).Account(p.a, "honest-victim")
	var nos, links [2]string
	for i := range nos {
		nos[i] = victim.Press(1, victim.Work(1)).OrderNo
		b.gives(victim.Name, 1)
		pending(b, victim, nos[i])
		links[i] = linkOf(b.t, p.a, victim.Name, nos[i])
	}
	order := func(i int, what, link string) string {
		return "/api/v1/orders/" + nos[i] + what + "?link=" + url.QueryEscape(link)
	}
	signer, err := auth.NewLinkSigner([]byte(engine.TokenSecret))
	if err != nil {
		b.t.Fatal(err)
	}
	no, err := seckill.ParseOrderNo([]byte(nos[0]))
	if err != nil {
		b.t.Fatal(err)
	}
	stranger := eve.As("")
	for i := range 2 {
		at := stranger.At(p.either(i))
		if got := at.decided(http.MethodGet, order(0, "", links[0]), ""); got.Status != http.StatusOK || strings.Contains(got.Text, victim.Name) {
			b.t.Errorf("a link shows %s", got)
		}
		b.refused("cancel by link", seckill.CodeUnauthenticated, at.decided(http.MethodPost, order(0, "/cancel", links[0]), "{}"))
		b.refused("pay by link", seckill.CodeUnauthenticated, at.decided(http.MethodPost, order(0, "/payment", links[0]), `{"provider":"sandbox"}`))
		b.refused("another order's link", seckill.CodeTokenInvalid, at.decided(http.MethodGet, order(1, "", links[0]), ""))
		b.refused("an old link", seckill.CodeTokenInvalid, at.decided(http.MethodGet, order(0, "", signer.Sign(no, time.Now().Add(-time.Second))), ""))
		b.refused("a link as a token", seckill.CodeTokenInvalid, eve.At(p.either(i)).Press(1, links[0]))
		b.refused("cancel by another", seckill.CodeNotFound, eve.At(p.either(i)).decided(http.MethodPost, order(0, "/cancel", links[0]), "{}"))
	}
}

// linkOf begins a payment and returns the order link in the address of the pay
// page.
func linkOf(t *testing.T, e *engine.Engine, buyer, no string) string {
	t.Helper()
	address, err := e.Buyer(buyer).BeginPayment(t.Context(), no)
	if err != nil {
		t.Fatal(err)
	}
	pay, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	_, link, _ := strings.Cut(pay.Query().Get("back"), "?link=")
	if link == "" {
		t.Fatalf("no link in %s", address)
	}
	return link
}

// replayedMoney forges a callback, replays a valid one, and alters it to name
// another order. The order is paid once, by the valid one.
func replayedMoney(b *book, p *pair, eve Account, no string) {
	pending(b, eve, no)
	other := eve.Press(1, eve.Work(1)).OrderNo
	b.gives(eve.Name, 1)
	pending(b, eve, other)
	notice := func(no string) string {
		return fmt.Sprintf(`{"order_no":%q,"trade_no":"T-robot","amount_cents":100}`, no)
	}
	deliver := func(i int, body, signature string) Answer {
		at := eve.As("").At(p.either(i))
		if signature != "" {
			at = at.Saying(paysandbox.SignatureHeader, signature)
		}
		return at.decided(http.MethodPost, "/api/v1/payments/sandbox/notify", body)
	}
	by := func(secret, body string) string { return engine.Signature(secret, []byte(body)) }
	truly := by(engine.SandboxSecret, notice(no))
	for i, forged := range []string{"", "00", strings.Repeat("0", len(truly)), by("secret", notice(no)), by(engine.JWTSecret, notice(no)), by(engine.SandboxSecret, notice(other))} {
		b.refused("forged money", seckill.CodeTokenInvalid, deliver(i, notice(no), forged))
	}
	Together(replayed, func(i int) {
		if got := deliver(i, notice(no), truly); got.Status != http.StatusOK {
			b.t.Errorf("true money, replayed: %s", got)
		}
		b.refused("true money, bent", seckill.CodeTokenInvalid, deliver(i, notice(other), truly))
	})
	for no, want := range map[string]int{no: 1, other: 0} {
		payments, err := p.a.Operator().Payments(b.t.Context(), no)
		if err != nil || len(payments) != want {
			b.t.Errorf("%d payments of %s, want %d: %+v (%v)", len(payments), no, want, payments, err)
		}
	}
}
