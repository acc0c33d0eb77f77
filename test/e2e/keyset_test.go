package e2e

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"

	"seckill"
	"seckill/test/engine"
)

// login is a shop's login. It signs tokens and publishes its keys; it can be
// down.
type login struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string // as published; nil while it is down
}

func openLogin(t *testing.T) *login {
	l := &login{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.keys == nil {
			http.Error(w, "maintenance", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"keys":[%s]}`, strings.Join(l.keys, ","))
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *login) publish(keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys
}

// signing is a private key of the login with its published key.
type signing struct {
	method  jwtlib.SigningMethod
	kid     string
	private crypto.Signer
	jwk     string
}

// newSignings makes a key of each accepted kind.
func newSignings(t *testing.T) []signing {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	es, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := es.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	public, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return []signing{
		{jwtlib.SigningMethodRS256, "r", rs, fmt.Sprintf(`{"kty":"RSA","kid":"r","alg":"RS256","use":"sig","e":"AQAB","n":%q}`, text(rs.N.Bytes()))},
		{jwtlib.SigningMethodES256, "e", es, fmt.Sprintf(`{"kty":"EC","kid":"e","crv":"P-256","x":%q,"y":%q}`, text(point[1:33]), text(point[33:]))},
		{jwtlib.SigningMethodPS384, "p", rs, fmt.Sprintf(`{"kty":"RSA","kid":"p","e":"AQAB","n":%q}`, text(rs.N.Bytes()))},
		{jwtlib.SigningMethodEdDSA, "d", ed, fmt.Sprintf(`{"kty":"OKP","kid":"d","crv":"Ed25519","x":%q}`, text(public))},
	}
}

// token signs a buyer in for an hour.
func (s signing) token(t *testing.T, buyer string, audience ...string) http.Header {
	t.Helper()
	made := jwtlib.NewWithClaims(s.method, jwtlib.RegisteredClaims{
		Issuer: "https://login.example", Subject: buyer, Audience: audience, ExpiresAt: jwtlib.NewNumericDate(time.Now().Add(time.Hour)),
	})
	made.Header["kid"] = s.kid
	signed, err := made.SignedString(s.private)
	if err != nil {
		t.Fatal(err)
	}
	return bearer(signed)
}

// The shop's login is down when the engine starts. Its buyers get busy, until
// the engine has fetched the keys by itself.
func TestKeySet_LoginKeysVerifyBuyers(t *testing.T) {
	t.Parallel()
	l, keys := openLogin(t), newSignings(t)
	e := start(t, map[string]string{"auth.jwks_url": l.URL, "auth.issuer": "https://login.example", "auth.audience": "sale", "auth.jwks_refresh": "10s"})
	openSale(t, e, engine.Product{ID: 1, Stock: 10})
	buyAs := func(who http.Header) reply {
		return send(t, e, http.MethodPost, e.ShopURL+"/api/v1/products/1/orders", who, `{"quantity":1}`)
	}
	for _, k := range keys {
		for what, got := range map[string]reply{
			"buy":         buyAs(k.token(t, "ann", "sale")),
			"read orders": send(t, e, http.MethodGet, e.ShopURL+"/api/v1/orders", k.token(t, "ann", "sale"), ""),
		} {
			if got.Status != http.StatusServiceUnavailable || got.Code != seckill.CodeBusy || got.Header.Get("Retry-After") == "" {
				t.Errorf("%s with %s: %d %s, Retry-After %q", what, k.kid, got.Status, got.Text, got.Header.Get("Retry-After"))
			}
		}
	}
	l.publish(keys[0].jwk, keys[1].jwk, keys[2].jwk, keys[3].jwk)
	for _, k := range keys {
		eventually(t, "a token of "+k.kid+" buys", func() bool {
			return buyAs(k.token(t, "buyer "+k.kid, "sale", "other")).Status == http.StatusAccepted
		})
	}
	for name, who := range map[string]http.Header{
		"another audience": keys[0].token(t, "bob", "other"), "no audience": keys[0].token(t, "bob"),
		"a login code": keys[0].token(t, "bob", "sale", "seckill-login"),
		"another key":  signing{keys[3].method, "d", newSignings(t)[3].private, ""}.token(t, "bob", "sale"),
		"no issuer":    signedIn(t, "bob"),
	} {
		if got := buyAs(who); got.Status != http.StatusUnauthorized || got.Code != seckill.CodeUnauthenticated {
			t.Errorf("%s: %d %s", name, got.Status, got.Text)
		}
	}
	families := scrape(t, e)
	if n := value(families, "seckill_jwks_keys"); n != 4 {
		t.Errorf("%v keys", n)
	}
	if n := value(families, "seckill_duty_failures_total", "duty", "jwks"); !(n >= 1) {
		t.Errorf("%v failures", n)
	}
	if age := value(families, "seckill_jwks_age_seconds"); !(age >= 0 && age < 30) {
		t.Errorf("fetched %v s ago", age)
	}

	// If a key is removed, its tokens are refused, also tokens that were used a
	// moment ago.
	gone := keys[0].token(t, "cid", "sale")
	if got := buyAs(gone); got.Status != http.StatusAccepted {
		t.Fatalf("before: %d %s", got.Status, got.Text)
	}
	l.publish(keys[1].jwk)
	eventually(t, "its key has left the set", func() bool { return buyAs(gone).Status == http.StatusUnauthorized })
	if got := buyAs(keys[1].token(t, "dan", "sale")); got.Status != http.StatusAccepted {
		t.Errorf("the key that stayed: %d %s", got.Status, got.Text)
	}
}
