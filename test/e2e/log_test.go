package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/test/engine"
)

// Both log formats, with good and bad requests.
func TestLog_HasNoSecretAtLevelDebug(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			e := start(t, map[string]string{"log.level": "debug", "log.format": format, "order.expire_after": "500ms"})
			openSale(t, e, engine.Product{ID: 1, Stock: 5, PerUserLimit: 5})
			ann := e.Buyer("ann")
			token := askToken(t, e, "ann", 1)
			no := buy(t, ann, 1, engine.Purchase{Quantity: 1, Token: token})
			payURL, err := ann.BeginPayment(t.Context(), no)
			if err != nil {
				t.Fatal(err)
			}
			await(t, ann, no, "cancelled")
			pay(t, e, await(t, ann, no, "cancelled")) // late
			refundedOnce(t, e, no, price, "late")
			forged := sign(t, "not the secret of this shop at all", hs256, map[string]any{"sub": "ann", "exp": time.Now().Add(time.Hour).Unix()})
			for _, header := range []http.Header{bearer(forged), bearer("nonsense-" + forged), signedIn(t, "ann")} {
				header.Set("X-Signature", "0badc0de0badc0de")
				header.Set("Cookie", "session=c00kie-c00kie")
				for _, url := range []string{
					e.ShopURL + "/api/v1/products/1/orders", e.ShopURL + "/api/v1/payments/sandbox/notify", e.ShopURL + "/api/v1/orders/" + no + "/cancel",
					e.AdminURL + "/admin/v1/products/1/pause", e.AdminURL + "/admin/v1/orders?buyer=a-private-person",
				} {
					sendBy(t, http.DefaultClient, http.MethodPost, url, header, `{"token":"`+token+`x"}`)
				}
			}
			for _, ending := range []string{"\r\nBroken\r\n\r\n", "\x01\r\n\r\n", "\r\nX: " + strings.Repeat("x", 9<<10)} {
				l := dial(t, e)
				_ = l.write("GET / HTTP/1.1\r\nAuthorization: Bearer " + token + ending)
				if got, answered := l.answer(); !answered || got.Status != http.StatusBadRequest {
					t.Errorf("a broken head: %d %s", got.Status, got.Text)
				}
			}
			e.MustStop()
			log := e.Log()
			if !strings.Contains(log, "terminated signal received") || !strings.Contains(log, "stopped") || len(log) < 500 {
				t.Errorf("the log is missing: %q", log)
			}
			_, address, _ := strings.Cut(payURL, "sig=")
			checkLog(t, e, token, forged, "0badc0de", "c00kie", "a-private-person", address[:20], signature(""))
		})
	}
}

// Any client can send any number of bad requests. None of them writes a log
// line, because the log would grow without bound and contain texts of the
// client.
func TestLog_BadRequestsAddNothing(t *testing.T) {
	t.Parallel()
	l, keys := openLogin(t), newSignings(t) // down: no keys are published
	e := start(t, map[string]string{"auth.jwks_url": l.URL, "log.level": "info"})
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	eventually(t, "the keys were missed", func() bool { return strings.Contains(e.Log(), "duty=jwks") })
	before := len(e.Log())
	name := strings.Repeat("stranger", 500)
	unknown := keys[2].token(t, "ann")
	code := strings.TrimPrefix(unknown.Get("Authorization"), "Bearer ")
	for range 50 {
		for _, c := range []struct {
			method, path, body string
			status             int
		}{
			{http.MethodPost, "/api/v1/payments/" + name + "/notify", `{}`, http.StatusNotFound},
			{http.MethodGet, "/api/v1/payments/" + name + "/notify", ``, http.StatusNotFound},
			{http.MethodPost, "/api/v1/payments/sandbox/notify", `{"order_no":"` + name + `"}`, http.StatusForbidden},
			{http.MethodGet, "/api/v1/orders", ``, http.StatusServiceUnavailable},
			{http.MethodPost, "/api/v1/products/1/orders", `{}`, http.StatusServiceUnavailable},
			{http.MethodPost, "/api/v1/login", `{"code":"` + code + `"}`, http.StatusServiceUnavailable},
		} {
			if got := send(t, e, c.method, e.ShopURL+c.path, unknown.Clone(), c.body); got.Status != c.status {
				t.Fatalf("%s %.60s: %d %s", c.method, c.path, got.Status, got.Text)
			}
		}
	}
	if grown := e.Log()[before:]; len(grown) > 1000 || strings.Contains(grown, "stranger") {
		t.Errorf("the log grew by %d bytes: %.2000s", len(grown), grown)
	}
}
