package robot

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/test/engine"
	"seckill/test/server"
)

// pair is two instances of one shop on one Redis and one MariaDB, and the
// shop's login.
type pair struct {
	a, b *engine.Engine
	key  *rsa.PrivateKey // private key of the login; the login publishes the public one
}

// keyID is the key's id in the published key set.
const keyID = "r"

func openPair(t *testing.T) *pair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[%s]}`, publicJWK(key))
	}))
	t.Cleanup(login.Close)
	settings := engine.Join(
		engine.OnRedis(server.SharedRedis(t).Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)),
		map[string]string{
			"auth.jwks_url": login.URL, "token.required": "true", "challenge.kind": "pow", "challenge.pow_bits": "8", "challenge.per_buyer_per_minute": "1000",
		})
	return &pair{engine.Start(t, engine.Options{Settings: settings}), engine.Start(t, engine.Options{Settings: settings}), key}
}

func publicJWK(key *rsa.PrivateKey) string {
	return fmt.Sprintf(`{"kty":"RSA","kid":%q,"alg":"RS256","use":"sig","e":"AQAB","n":%q}`, keyID, base64.RawURLEncoding.EncodeToString(key.N.Bytes()))
}

// either alternates between the instances.
func (p *pair) either(i int) *engine.Engine { return []*engine.Engine{p.a, p.b}[i%2] }

// open begins a scene's book and waits until both instances have its products.
func (p *pair) open(t *testing.T, products ...engine.Product) *book {
	t.Helper()
	b := open(t, p.a, products...)
	visitor := New(t).Account(p.b, "visitor")
	for _, id := range b.products {
		b.eventually("the other instance sells it too", func() bool {
			return strings.Contains(visitor.Send(http.MethodGet, fmt.Sprintf("/api/v1/products/%d", id), "").Text, `"on_sale"`)
		})
	}
	return b
}

// crowd sends honest buyers to both instances.
func (p *pair) crowd(t *testing.T, b *book, product uint32) (wait func()) {
	honest := New(t)
	return b.crowd(product, true, func(i int, name string) Account { return honest.Account(p.either(i), name) })
}

// signed is a token with these claims, signed by the shop's login.
func signed(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(engine.JWTSecret))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// in is a time in the form of a claim.
func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

// A token that works once works once at both instances together.
func TestRobot_TwoInstancesEnforceTheLimits(t *testing.T) {
	t.Parallel()
	p := openPair(t)
	for name, scene := range map[string]func(*testing.T, *pair){
		"replays":          replays,
		"shared tokens":    sharedTokens,
		"parallel guesses": parallelGuesses,
		"many accounts":    manyAccounts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene(t, p)
		})
	}
}
