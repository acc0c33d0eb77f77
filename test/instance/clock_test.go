package instance

import (
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill"
	"seckill/test/engine"
)

// The instance's clock is an hour ahead of Redis', as after Redis' was set back.
// Buyers come with logins of the right time.
func TestBuyersTokens_JudgedByTheInstancesClock(t *testing.T) {
	t.Parallel()
	const ahead, leeway = time.Hour, 2 * time.Minute
	settings := shared(t, map[string]string{"auth.leeway": leeway.String(), "page.login_url": "https://shop.example/login", "token.required": "true", "challenge.kind": "none"})
	e := engine.New(t, engine.Options{Settings: settings})
	e.StartArmed("clock:+" + ahead.String())
	must(t, "start", e.WaitReady())
	openSale(t, e, engine.Product{ID: 1, Stock: 5, PerUserLimit: 1})
	now := time.Now().Add(ahead)

	ann := e.BearerOf("ann", dated(t, "ann", now, now.Add(time.Minute)))
	// Challenges and purchase tokens are made and judged by the ledger's clock.
	posed, err := ann.Challenge(t.Context(), 1, "")
	must(t, "ask for a challenge", err)
	token, err := ann.Token(t.Context(), 1, posed.ID, "")
	must(t, "answer the challenge", err)
	until(t, "ann has bought", func() bool {
		_, err := ann.Buy(t.Context(), 1, engine.Purchase{Quantity: 1, Token: token})
		if code := engine.CodeOf(err); err != nil && code != seckill.CodeBusy && code != seckill.CodeTooHot {
			t.Fatalf("ann buys with a login of this minute: %v", err)
		}
		return err == nil
	})
	for what, login := range map[string]struct {
		issued, expires time.Time
		want            seckill.Code
	}{
		"made within the leeway ahead":  {now.Add(leeway / 2), now.Add(time.Hour), ""},
		"ended within the leeway":       {now.Add(-time.Hour), now.Add(-leeway / 2), ""},
		"made far ahead":                {now.Add(2 * leeway), now.Add(time.Hour), seckill.CodeUnauthenticated},
		"ended, but not by Redis' time": {now.Add(-time.Hour), now.Add(-ahead / 2), seckill.CodeUnauthenticated},
	} {
		_, err := e.BearerOf("ann", dated(t, "ann", login.issued, login.expires)).Orders(t.Context())
		if got := engine.CodeOf(err); got != login.want && got != seckill.CodeBusy {
			t.Errorf("a login that was %s was answered %q (%v), want %q", what, got, err, login.want)
		}
	}
	code := sign(t, jwt.MapClaims{"sub": "bob", "aud": "seckill-login", "jti": t.Name(), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()})
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if status, err := exchange(e, code); status != want {
			t.Errorf("a login code was answered %d, %v, want %d", status, err, want)
		}
	}
}

// dated is a buyer's login with its dates.
func dated(t *testing.T, buyer string, issued, expires time.Time) string {
	t.Helper()
	return sign(t, jwt.MapClaims{"sub": buyer, "iat": issued.Unix(), "nbf": issued.Unix(), "exp": expires.Unix()})
}
