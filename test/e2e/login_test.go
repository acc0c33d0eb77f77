package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
)

// A code works once, and only before it expires.
func TestLoginCode_IsExchangedOnce(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"log.level": "debug", "page.login_url": "https://shop.example/login", "page.pay_url": "https://shop.example/pay", "page.login_ttl": "1h"})
	if got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/page", nil, ""); got.Text != `{"demo":false,"login_url":"https://shop.example/login","pay_url":"https://shop.example/pay"}` {
		t.Errorf("the page gets %s", got.Text)
	}
	login := func(code string) reply {
		return send(t, e, http.MethodPost, e.ShopURL+"/api/v1/login", nil, fmt.Sprintf(`{"code":%q}`, code))
	}
	claims := func(changes ...string) map[string]any {
		c := map[string]any{"sub": "ann", "aud": "seckill-login", "jti": t.Name() + strings.Join(changes, ""), "exp": time.Now().Add(time.Minute).Unix()}
		for i := 0; i < len(changes); i += 2 {
			delete(c, changes[i])
			if changes[i+1] != "" {
				c[changes[i]] = changes[i+1]
			}
		}
		return c
	}
	code := signToken(t, claims())
	got := login(code)
	if got.Status != http.StatusOK {
		t.Fatalf("%d %s", got.Status, got.Text)
	}
	exchanged := decode[struct {
		Token, Buyer string
		ExpiresAt    time.Time `json:"expires_at"`
	}](t, got.Text)
	if life := time.Until(exchanged.ExpiresAt); exchanged.Buyer != "ann" || life < 59*time.Minute || life > time.Hour {
		t.Errorf("exchanged for %s until %s", exchanged.Buyer, exchanged.ExpiresAt)
	}
	eventually(t, "the token is taken", func() bool { // a busy machine may answer busy first
		got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/orders", bearer(exchanged.Token), "")
		if got.Code == seckill.CodeUnauthenticated {
			t.Fatalf("the token is not taken: %s", got.Text)
		}
		return got.Status == http.StatusOK
	})
	late, long := claims("jti", "late"), claims("jti", "long")
	late["exp"], long["exp"] = time.Now().Add(-2*time.Minute).Unix(), time.Now().Add(time.Hour).Unix()
	for name, code := range map[string]string{
		"a second time":     code,
		"expired":           signToken(t, late),
		"long-lived":        signToken(t, long),
		"a buyer's token":   signToken(t, claims("aud", "")),
		"the exchanged one": exchanged.Token,
		"without an id":     signToken(t, claims("jti", "")),
		"without a buyer":   signToken(t, claims("sub", "")),
		"forged":            sign(t, "not the secret of this shop at all", hs256, claims("jti", "forged")),
		"of no algorithm":   sign(t, engine.JWTSecret, map[string]string{"alg": "none"}, claims("jti", "none")),
		"nonsense":          "nonsense",
	} {
		if got := login(code); got.Code != seckill.CodeUnauthenticated {
			t.Errorf("%s: %d %s", name, got.Status, got.Text)
		}
	}
	for name, body := range map[string]string{"nothing": "", "no code": "{}", "too long": `{"code":"` + strings.Repeat("x", 4097) + `"}`, "no object": `"x"`} {
		if got := send(t, e, http.MethodPost, e.ShopURL+"/api/v1/login", nil, body); got.Code != seckill.CodeBadRequest {
			t.Errorf("%s: %d %s", name, got.Status, got.Text)
		}
	}
	if got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/orders", bearer(signToken(t, claims("jti", "bearer"))), ""); got.Code != seckill.CodeUnauthenticated {
		t.Errorf("a login code passes for a buyer's token: %d", got.Status)
	}
	checkLog(t, e, code, exchanged.Token)
}
