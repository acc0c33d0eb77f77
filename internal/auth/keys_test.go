package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill"
)

func TestKey_ServesOnlyItsAlgorithm(t *testing.T) {
	rs, e := sameKeys["RS256"], with(t, sameSet())
	claims := `{"sub":"bob","exp":` + at(time.Hour) + `}`
	for _, p := range sameKeys {
		e.expect(t, p.alg, p.token(), nil)
		e.expect(t, p.alg+" by another key", otherKey(p.alg, p.kid).token(), ErrForged)
		e.expect(t, p.alg+" by nobody", []byte(strings.Join(strings.Split(string(p.token()), ".")[:2], ".")+"."), ErrForged)
		for _, asked := range sameKeys {
			if asked.alg != p.alg {
				header := fmt.Sprintf(`{"alg":%q,"kid":%q}`, asked.alg, p.kid)
				e.expect(t, p.alg+" key named by "+asked.alg, []byte(p.seal(header, claims)), ErrKey)
				header = fmt.Sprintf(`{"alg":%q,"kid":%q}`, asked.alg, asked.kid)
				e.expect(t, p.alg+" signature as "+asked.alg, []byte(p.seal(header, claims)), ErrForged)
			}
		}
	}
	for _, alg := range []string{"none", "None", "", "PS257", "RS1", "ES256K", "EdDsa", "Ed25519"} {
		e.expect(t, "alg "+alg, []byte(rs.seal(fmt.Sprintf(`{"alg":%q,"kid":%q}`, alg, rs.kid), claims)), ErrAlgorithm)
	}
	e.expect(t, "crit", []byte(rs.seal(`{"alg":"RS256","crit":["exp"]}`, claims)), ErrAlgorithm)
	e.expect(t, "kid no string", []byte(rs.seal(`{"alg":"RS256","kid":1}`, claims)), ErrMalformed)
	e.expect(t, "HS256 by the secret", []byte(seal(t, secret, hs256, claims)), nil)
}

// A key without "alg" serves all algorithms of its type and curve; "alg" restricts it.
func TestKeyWithoutAlg_ServesItsTypeAndCurve(t *testing.T) {
	rsa, p256, p384, p521, ed := key("RS256", "rsa"), key("ES256", "p256"), key("ES384", "p384"), key("ES512", "p521"), key("EdDSA", "ed")
	e := with(t, set(rsa.jwk("alg", ""), p256.jwk("alg", ""), p384.jwk("alg", ""), p521.jwk("alg", ""), ed.jwk("alg", "")))
	if stats := e.keys.Stats(); stats.Keys != 5 {
		t.Fatalf("%d keys: %s", stats.Keys, e.log.String())
	}
	for _, alg := range publicAlgorithms {
		for _, k := range []pair{rsa, p256, p384, p521, ed} {
			want := error(ErrKey)
			if material(alg) == material(k.alg) {
				want = nil
			}
			e.expect(t, alg+" with the key "+k.kid, key(alg, k.kid).token(), want)
		}
		e.expect(t, alg+" without a name", key(alg, "").token(), nil)
	}
}

// golang-jwt does not check the curve: without our own check, it would accept an
// ES384 signature by a P-256 key.
func TestKey_OfACurveServesOnlyItsHash(t *testing.T) {
	e := with(t, setOf(key("ES256", "weak")))
	signed := base64url([]byte(`{"alg":"ES384","kid":"weak"}`)) + "." + base64url([]byte(`{"sub":"bob","exp":`+at(time.Hour)+`}`))
	private, sum := made()["ES256"].(*ecdsa.PrivateKey), sha512.Sum384([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, private, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 48)), s.FillBytes(make([]byte, 48))...)
	if err := jwt.SigningMethodES384.Verify(signed, signature, private.Public()); err != nil {
		t.Logf("the library has learnt to refuse it: %v", err)
	}
	e.expect(t, "ES384 with P-256", []byte(signed+"."+base64url(signature)), ErrKey)
}

// The classic attack: use the public key, which is no secret, as the HMAC secret.
func TestPublicKey_IsNeverASecret(t *testing.T) {
	e := with(t, sameSet())
	alone := openEngine(t, openShop(t, sameSet()).URL, VerifierOptions{})
	if err := alone.fetch(t); err != nil {
		t.Fatal(err)
	}
	for _, p := range sameKeys {
		der, err := x509.MarshalPKIXPublicKey(p.private.Public())
		if err != nil {
			t.Fatal(err)
		}
		halves := [][]byte{[]byte(p.jwk()), []byte(p.jwk("alg", "")), []byte(setOf(p)), der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}
		if raw, ok := p.private.Public().(ed25519.PublicKey); ok {
			halves = append(halves, raw)
		}
		for i, half := range halves {
			for _, alg := range []string{"HS256", "HS384", "HS512"} {
				signed := base64url(fmt.Appendf(nil, `{"alg":%q,"kid":%q}`, alg, p.kid)) + "." + base64url([]byte(`{"sub":"bob","exp":`+at(time.Hour)+`}`))
				sum, err := jwt.GetSigningMethod(alg).Sign(signed, half)
				if err != nil {
					t.Fatal(err)
				}
				why := fmt.Sprintf("%s with half %d of %s", alg, i, p.alg)
				e.expect(t, why, []byte(signed+"."+base64url(sum)), ErrSignature)
				alone.expect(t, why+", without secrets", []byte(signed+"."+base64url(sum)), ErrAlgorithm)
			}
		}
	}
}

func TestVerifier_RefusesAlgorithmsWithoutSecretsOrKeys(t *testing.T) {
	rs := key("RS256", "r")
	hs := []byte(seal(t, secret, hs256, `{"sub":"bob","exp":`+at(time.Hour)+`}`))
	e := openEngine(t, openShop(t, setOf(rs)).URL, VerifierOptions{})
	if err := e.fetch(t); err != nil {
		t.Fatal(err)
	}
	e.expect(t, "HS256 without a secret", hs, ErrAlgorithm)
	e.expect(t, "RS256 with keys", rs.token(), nil)
	(&engine{Verifier: open(t, secret)}).expect(t, "RS256 without keys", rs.token(), ErrAlgorithm)
}

func TestKeys_UnnamedKeyAcceptedOnlyIfOneFits(t *testing.T) {
	rs, rs2, es := key("RS256", "r"), otherKey("RS256", "r2"), key("ES256", "e")
	unnamed := key("RS256", "").token()
	with(t, setOf(rs, es)).expect(t, "one that fits", unnamed, nil)
	with(t, setOf(key("RS256", ""), es)).expect(t, "one that has no name either", unnamed, nil)
	with(t, setOf(key("RS256", ""), key("RS256", ""))).expect(t, "one that is listed twice", unnamed, nil)
	with(t, setOf(rs, rs2)).expect(t, "two that fit", unnamed, ErrKeyUnnamed)
	with(t, setOf(key("RS256", ""), otherKey("RS256", ""))).expect(t, "two that have no name", unnamed, ErrKeyUnnamed)
	with(t, setOf(es)).expect(t, "none that fits", unnamed, ErrKey)
	with(t, setOf(key("RS256", ""))).expect(t, "a name that the only one does not have", rs.token(), ErrKey)
}

// A remembered token is valid no longer than its key.
func TestKeys_RememberedTokenIsRefusedWithoutItsKey(t *testing.T) {
	for _, alg := range publicAlgorithms {
		old, fresh := key(alg, "2025"), otherKey(alg, "2026")
		s := openShop(t, setOf(old))
		e := openEngine(t, s.URL, VerifierOptions{})
		steps := []struct {
			body       string
			old, fresh error
		}{
			{setOf(old), nil, ErrKey},
			{setOf(old, fresh), nil, nil},
			{setOf(fresh), ErrKey, nil},
			{set(), ErrKey, ErrKey},
			{setOf(fresh, old), nil, nil},
			{setOf(otherKey(alg, "2025")), ErrForged, ErrKey}, // an old name on a new key
		}
		oldToken, freshToken := old.token(), fresh.token()
		for i, step := range steps {
			s.publish(step.body)
			if err := e.fetch(t); err != nil {
				t.Fatal(err)
			}
			for range 2 { // verified, then remembered
				e.expect(t, fmt.Sprintf("%s, step %d, the old key", alg, i), oldToken, step.old)
				e.expect(t, fmt.Sprintf("%s, step %d, the fresh key", alg, i), freshToken, step.fresh)
			}
		}
	}
}

// Readers see either the old or the new set while keys change. A removed key
// accepts no token.
func TestKeys_RotateDuringTraffic(t *testing.T) {
	stays, goes := key("ES256", "stays"), key("EdDSA", "goes")
	s := openShop(t, setOf(stays, goes))
	e := openEngine(t, s.URL, VerifierOptions{})
	if err := e.fetch(t); err != nil {
		t.Fatal(err)
	}
	var crowd sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		crowd.Go(func() {
			lasting, leaving := stays.token(), goes.token()
			for {
				select {
				case <-over:
					return
				default:
				}
				e.expect(t, "a key that stays", lasting, nil)
				if _, err := e.AppendBuyer(nil, leaving, Look{Now: now}); err != nil && err != ErrKey && err != ErrKeysDue {
					t.Errorf("a key that leaves: %v", err)
				}
			}
		})
	}
	for i := range 20 {
		s.publish(setOf(stays))
		if i%2 == 0 {
			s.publish(setOf(goes, stays))
		}
		if err := e.fetch(t); err != nil {
			t.Error(err)
		}
	}
	close(over)
	crowd.Wait()
	// After the crowd has ended: this may fetch again, which moves the shared clock.
	e.expect(t, "after the last fetch", goes.token(), ErrKey)
}

func TestKeys_SignatureIsCheckedOncePerToken(t *testing.T) {
	es, ed := key("ES256", "e"), key("EdDSA", "d")
	s := openShop(t, setOf(es))
	e := openEngine(t, s.URL, VerifierOptions{})
	token := es.token()
	for i, body := range []string{setOf(es), setOf(es), setOf(ed, es)} { // fetched again, unchanged, joined
		s.publish(body)
		if err := e.fetch(t); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			e.expect(t, fmt.Sprint("fetch ", i), token, nil)
		}
	}
	if n := e.keys.Stats().Signatures; n != 1 {
		t.Errorf("%d signatures were checked, want 1", n)
	}
	// A remembered token expires too.
	late := now.Add(time.Hour + DefaultLeeway)
	if _, err := e.AppendBuyer(nil, token, Look{Now: late}); err != ErrExpired {
		t.Errorf("at its end: %v", err)
	}
	early := es.seal(es.header(), `{"sub":"bob","exp":`+at(time.Hour)+`,"nbf":`+at(0)+`}`)
	e.expect(t, "from now on", []byte(early), nil)
	if _, err := e.AppendBuyer(nil, []byte(early), Look{Now: now.Add(-DefaultLeeway - time.Second)}); err != ErrNotYetValid {
		t.Errorf("before its time: %v", err)
	}
}

// While the key is unknown, the answer is "not known yet"; afterwards it is "no".
func TestKeys_UnknownKeyCausesOneFetch(t *testing.T) {
	known, added, nobodys := key("EdDSA", "known"), otherKey("EdDSA", "added"), key("EdDSA", "nobody's")
	s := openShop(t, setOf(known))
	e := openEngine(t, s.URL, VerifierOptions{})
	if err := e.fetch(t); err != nil {
		t.Fatal(err)
	}
	e.expect(t, "a fresh set tells", nobodys.token(), ErrKey)
	if n := e.wakes.Load(); n != 0 {
		t.Fatalf("%d fetches were asked for, a moment after the last", n)
	}
	s.publish(setOf(known, added))
	e.pass(KeysSpacing)

	// During a slow fetch, all requests get busy.
	began, goOn := make(chan struct{}), make(chan struct{})
	s.answers(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-goOn
		_, _ = w.Write([]byte(setOf(known, added)))
	})
	asking := added.token()
	for range 1000 {
		e.expect(t, "an older set cannot tell", asking, ErrKeysDue)
	}
	if n := e.wakes.Load(); n != 1 {
		t.Fatalf("%d fetches were asked for, want 1", n)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.keys.Round(t.Context()) }()
	<-began
	e.expect(t, "while it is fetched", added.token(), ErrKeysDue)
	e.expect(t, "while it is fetched, of nobody", nobodys.token(), ErrKeysDue)
	e.expect(t, "while it is fetched, a known one", known.token(), nil)
	if seckill.CodeOf(ErrKeysDue) != seckill.CodeBusy || ErrKeysDue.RetryAfter < 1 {
		t.Errorf("the answer is %+v", ErrKeysDue)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	e.expect(t, "fetched", added.token(), nil)
	e.expect(t, "fetched, of nobody", nobodys.token(), ErrKey)
	if n := e.wakes.Load(); n != 1 {
		t.Errorf("%d fetches were asked for, want 1", n)
	}
}

func TestKeys_FloodOfUnknownKeysFetchesEveryTenSeconds(t *testing.T) {
	s := openShop(t, setOf(key("EdDSA", "known")))
	e := openEngine(t, s.URL, VerifierOptions{})
	const seconds, each = 60, 50
	for second := range seconds {
		var flood sync.WaitGroup
		for i := range each {
			flood.Go(func() {
				header := fmt.Sprintf(`{"alg":"EdDSA","kid":"random %d %d"}`, second, i)
				if _, err := e.AppendBuyer(nil, []byte(base64url([]byte(header))+".x.x"), Look{Now: now}); err != ErrKey && err != ErrKeysDue {
					t.Errorf("error %v", err)
				}
			})
		}
		flood.Wait()
		for e.wakes.Load() > 0 { // as a loop would
			e.wakes.Add(-1)
			if err := e.keys.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
			_ = e.keys.Round(t.Context()) // woken twice
		}
		e.pass(time.Second)
	}
	if n := s.fetches.Load(); n != seconds/10 {
		t.Errorf("%d fetches in %d seconds", n, seconds)
	}
	if n := e.keys.Stats().Signatures; n != 0 {
		t.Errorf("%d signatures were checked", n)
	}
}

func TestKeys_FailedFetchKeepsTheSet(t *testing.T) {
	known := key("EdDSA", "known")
	plain := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	elsewhere := openShop(t, set())
	for name, answer := range map[string]http.HandlerFunc{
		"an error":       plain(500, setOf(known)),
		"not found":      plain(404, ""),
		"empty":          plain(200, ""),
		"a page":         plain(200, "<html>"),
		"no keys member": plain(200, `{"error":"maintenance"}`),
		"keys null":      plain(200, `{"keys":null}`),
		"keys no array":  plain(200, `{"keys":{}}`),
		"too many keys":  plain(200, set(strings.Split(strings.Repeat("{} ", maxKeys+1), " ")[:maxKeys+1]...)),
		"too long":       plain(200, set()+strings.Repeat(" ", maxSetBytes)),
		"elsewhere":      http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP,
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(setOf(known)))
		},
		"hung up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		s := openShop(t, setOf(known))
		e := openEngine(t, s.URL, VerifierOptions{})
		if err := e.fetch(t); err != nil {
			t.Fatal(err)
		}
		s.answers(answer)
		for range 3 {
			if err := e.fetch(t); err == nil {
				t.Errorf("%s: no error", name)
			}
			if e.keys.Next() != KeysSpacing {
				t.Errorf("%s: the next try is not due soon", name)
			}
		}
		e.expect(t, name, known.token(), nil)
		e.expect(t, name+", an unknown key", key("EdDSA", "other").token(), ErrKeysDue)
		if stats := e.keys.Stats(); stats.Keys != 1 || stats.Age != 3*KeysSpacing {
			t.Errorf("%s: %+v", name, stats)
		}
		s.publish(setOf(known))
		if err := e.fetch(t); err != nil || e.keys.Next() != 0 {
			t.Errorf("%s: afterwards %v", name, err)
		}
		e.expect(t, name+", an unknown key afterwards", key("EdDSA", "other").token(), ErrKey)
	}
	if n := elsewhere.fetches.Load(); n != 0 {
		t.Error("a redirect was followed")
	}
}

func TestFetchKeys_ErrorDoesNotQuoteTheQuery(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	for _, serving := range []bool{true, false} {
		if !serving {
			gone.Close()
		}
		e := openEngine(t, gone.URL+"/keys?key=hunter2", VerifierOptions{})
		err := e.fetch(t)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), strings.TrimPrefix(gone.URL, "http://")) {
			t.Errorf("serving %v: %v", serving, err)
		}
	}
}

func TestKeys_ShopAwayAtStartIsRetried(t *testing.T) {
	known := key("ES256", "known")
	s := openShop(t, setOf(known))
	s.Close()
	e := openEngine(t, s.URL, VerifierOptions{Secrets: [][]byte{secret}})
	e.expect(t, "before the first try", known.token(), ErrKeysDue)
	if err := e.fetch(t); err == nil {
		t.Fatal("fetched from nobody")
	}
	e.expect(t, "after it", known.token(), ErrKeysDue)
	e.expect(t, "a secret's token", []byte(seal(t, secret, hs256, `{"sub":"bob","exp":`+at(time.Hour)+`}`)), nil)

	back := openShop(t, setOf(known))
	e.keys.url = back.URL // a closed port may be somebody else's by now
	if err := e.fetch(t); err != nil {
		t.Fatal(err)
	}
	e.expect(t, "when it is back", known.token(), nil)
}

func TestKeys_HangingFetchTimesOut(t *testing.T) {
	gone := make(chan struct{})
	s := openShop(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.answers(func(_ http.ResponseWriter, r *http.Request) {
		cancel() // once the fetch hangs
		<-r.Context().Done()
		close(gone)
	})
	e := openEngine(t, s.URL, VerifierOptions{})
	e.pass(KeysSpacing)
	if err := e.keys.Round(ctx); err == nil {
		t.Error("no error")
	}
	<-gone
}

func TestKeys_FetchedOnlyOverTLSOrLoopback(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://login.example.com/.well-known/jwks.json": true,
		"https://127.0.0.1:8443/keys?tenant=7":            true,
		"http://127.0.0.1:8080/keys":                      true,
		"http://[::1]/keys":                               true,
		"http://localhost:9/keys":                         true,
		"http://login.example.com/keys":                   false,
		"http://127.0.0.1.example.com/keys":               false,
		"http://10.0.0.1/keys":                            false,
		"http://localhost.example.com/":                   false,
		"https://user:pass@login.example.com/keys":        false,
		"https://login.example.com/keys#x":                false,
		"https:///keys":                                   false,
		"ftp://localhost/keys":                            false,
		"file:///etc/keys":                                false,
		"login.example.com/keys":                          false,
		"":                                                false,
	} {
		if err := CheckKeysURL(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := NewKeys(KeysOptions{URL: address, Now: time.Now}); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
