package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// pair is a key of the shop, both halves.
type pair struct {
	alg, kid string
	private  crypto.Signer
}

// made are the keys that tests share, because generating RSA keys is slow.
var made = sync.OnceValue(func() map[string]crypto.Signer {
	keys := map[string]crypto.Signer{}
	var err error
	for _, other := range []string{"", " other"} {
		keys["RSA"+other], err = rsa.GenerateKey(rand.Reader, 2048)
		failed(err)
		for alg, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
			keys[alg+other], err = ecdsa.GenerateKey(curve, rand.Reader)
			failed(err)
		}
		_, keys["EdDSA"+other], err = ed25519.GenerateKey(rand.Reader)
		failed(err)
	}
	return keys
})

func failed(err error) {
	if err != nil {
		panic(err)
	}
}

var publicAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// key is the shared key of an algorithm under a name.
func key(alg, kid string) pair { return pair{alg, kid, made()[material(alg)]} }

// otherKey is a second key of an algorithm.
func otherKey(alg, kid string) pair { return pair{alg, kid, made()[material(alg)+" other"]} }

// material names the key of an algorithm. All RSA algorithms share one key, so that
// only name and "alg" differ.
func material(alg string) string {
	if alg[1] == 'S' && alg[0] != 'E' {
		return "RSA"
	}
	return alg
}

func base64url(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// jwk is the public key in JWKS form, with optional further members.
func (p pair) jwk(more ...string) string {
	members := map[string]string{"kid": p.kid, "alg": p.alg, "use": "sig"}
	switch public := p.private.Public().(type) {
	case *rsa.PublicKey:
		members["kty"], members["n"], members["e"] = "RSA", base64url(public.N.Bytes()), base64url(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		failed(err)
		size := (len(point) - 1) / 2
		members["kty"], members["crv"] = "EC", public.Curve.Params().Name
		members["x"], members["y"] = base64url(point[1:1+size]), base64url(point[1+size:])
	case ed25519.PublicKey:
		members["kty"], members["crv"], members["x"] = "OKP", "Ed25519", base64url(public)
	}
	for i := 0; i < len(more); i += 2 {
		members[more[i]] = more[i+1]
	}
	for name, value := range members {
		if value == "" {
			delete(members, name)
		}
	}
	text, err := json.Marshal(members)
	failed(err)
	return string(text)
}

// seal signs any header and payload with the pair's algorithm.
func (p pair) seal(header, payload string) string {
	signed := base64url([]byte(header)) + "." + base64url([]byte(payload))
	signature, err := jwt.GetSigningMethod(p.alg).Sign(signed, p.private)
	failed(err)
	return signed + "." + base64url(signature)
}

// half is the length of each coordinate of an ES256 key.
const half = 32

// header is the header of the key's tokens.
func (p pair) header() string {
	if p.kid == "" {
		return fmt.Sprintf(`{"alg":%q}`, p.alg)
	}
	return fmt.Sprintf(`{"alg":%q,"kid":%q}`, p.alg, p.kid)
}

// token is a token of bob, valid for an hour.
func (p pair) token() []byte {
	return []byte(p.seal(p.header(), `{"sub":"bob","exp":`+at(time.Hour)+`}`))
}

func set(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

func setOf(pairs ...pair) string {
	keys := make([]string, len(pairs))
	for i, p := range pairs {
		keys[i] = p.jwk()
	}
	return set(keys...)
}

// shop publishes its keys over HTTP, and counts how often they are fetched.
type shop struct {
	*httptest.Server
	answer  atomic.Pointer[http.HandlerFunc]
	fetches atomic.Int32
}

func openShop(t testing.TB, body string) *shop {
	t.Helper()
	s := &shop{}
	s.publish(body)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fetches.Add(1)
		(*s.answer.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shop) publish(body string) {
	s.answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
}

func (s *shop) answers(answer http.HandlerFunc) { s.answer.Store(&answer) }

// engine verifies with a shop's keys, on a clock that the test moves.
type engine struct {
	*Verifier
	keys  *Keys
	clock atomic.Int64
	wakes atomic.Int32
	log   strings.Builder
}

func openEngine(t testing.TB, url string, opt VerifierOptions) *engine {
	t.Helper()
	e := &engine{}
	keys, err := NewKeys(KeysOptions{
		URL: url, Log: slog.New(slog.NewTextHandler(&e.log, nil)), Now: func() time.Time { return now.Add(time.Duration(e.clock.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	keys.Wake = func() { e.wakes.Add(1) }
	opt.Keys, opt.Leeway = keys, DefaultLeeway
	if e.Verifier, err = OpenVerifier(opt); err != nil {
		t.Fatal(err)
	}
	e.keys, e.seen = keys, newVerified(64) // the full size takes the race detector long
	return e
}

func (e *engine) pass(d time.Duration) { e.clock.Add(int64(d)) }

// fetch runs one Round, KeysSpacing after the last one.
func (e *engine) fetch(t testing.TB) error {
	t.Helper()
	e.pass(KeysSpacing)
	return e.keys.Round(t.Context())
}

// with returns an engine that has fetched a set.
func with(t testing.TB, body string) *engine {
	t.Helper()
	e := openEngine(t, openShop(t, body).URL, VerifierOptions{Secrets: [][]byte{secret}})
	if err := e.fetch(t); err != nil {
		t.Fatal(err)
	}
	return e
}

// expect checks that a token is bob's or gets an error. For an unknown key it
// fetches first, because only a fresh set refuses it.
func (e *engine) expect(t testing.TB, why string, token []byte, want error) {
	t.Helper()
	buyer, err := e.AppendBuyer(nil, token, Look{Now: now})
	if want == ErrKey && err == ErrKeysDue {
		if err := e.fetch(t); err != nil {
			t.Errorf("%s: %v", why, err)
		}
		buyer, err = e.AppendBuyer(nil, token, Look{Now: now})
	}
	if err != want || err == nil && string(buyer) != "bob" {
		t.Errorf("%s: buyer %q, error %v; want %v", why, buyer, err, want)
	}
}
