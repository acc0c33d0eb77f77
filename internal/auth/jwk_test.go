package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// The vectors are examples of RFC 7515, RFC 7520 and RFC 8037.
var vectors = []struct {
	name              string
	alg               algorithm
	key               string
	signed, signature string
}{
	{"RFC 7515 A.2", algRS256,
		`{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}`,
		"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
		"cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"},
	{"RFC 7515 A.3", algES256,
		`{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`,
		"eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
		"DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"},
	{"RFC 7520 4.2", algPS384,
		`{"kty":"RSA","kid":"bilbo.baggins@hobbiton.example","use":"sig","e":"AQAB","n":"n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvNd7nqQ0VEiZQHz_AJmSCpMaJMRBSFKrKb2wqVwGU_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6Aj-oBHqFEHYpPe7Tpe-OfVfHd1E6cS6M1FZcD1NNLYD5lFHpPI9bTwJlsde3uhGqC0ZCuEHg8lhzwOHrtIQbS0FVbb9k3-tVTU4fg_3L_vniUFAKwuCLqKnS2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuaxwUkRz5iaiQkqgc5gHdrNP5zw"}`,
		"eyJhbGciOiJQUzM4NCIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9.SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGUgcm9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4",
		"cu22eBqkYDKgIlTpzDXGvaFfz6WGoz7fUDcfT0kkOy42miAh2qyBzk1xEsnk2IpN6-tPid6VrklHkqsGqDqHCdP6O8TTB5dDDItllVo6_1OLPpcbUrhiUSMxbbXUvdvWXzg-UD8biiReQFlfz28zGWVsdiNAUf8ZnyPEgVFn442ZdNqiVJRmBqrYRXe8P_ijQ7p8Vdz0TTrxUeT3lm8d9shnr2lfJT8ImUjvAA2Xez2Mlp8cBE5awDzT0qI0n6uiP1aCN_2_jLAeQTlqRHtfa64QQSUmFAAjVKPbByi7xho0uTOcbH510a6GYmJUAfmWjwZ6oD4ifKo8DYM-X72Eaw"},
	{"RFC 7520 4.3", algES512,
		`{"kty":"EC","kid":"bilbo.baggins@hobbiton.example","use":"sig","crv":"P-521","x":"AHKZLLOsCOzz5cY97ewNUajB957y-C-U88c3v13nmGZx6sYl_oJXu9A5RkTKqjqvjyekWF-7ytDyRXYgCF5cj0Kt","y":"AdymlHvOiLxXkEhayXQnNCvDX4h9htZaCJN34kfmC6pV5OhQHiraVySsUdaQkAgDPrwQrJmbnX9cwlGfP-HqHZR1"}`,
		"eyJhbGciOiJFUzUxMiIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9.SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGUgcm9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4",
		"AE_R_YZCChjn4791jSQCrdPZCNYqHXCTZH0-JZGYNlaAjP2kqaluUIIUnC9qvbu9Plon7KRTzoNEuT4Va2cmL1eJAQy3mtPBu_u_sDDyYjnAMDxXPn7XrT0lw-kvAD890jl8e2puQens_IEKBpHABlsbEPX6sFY8OcGDqoRuBomu9xQ2"},
	{"RFC 8037 A.4", algEdDSA,
		`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`,
		"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
		"hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"},
}

func TestKeys_VerifyExamplesOfTheRFCs(t *testing.T) {
	for _, v := range vectors {
		keys, unused, err := parseSet([]byte(set(v.key)))
		if err != nil || len(keys) != 1 || !keys[0].serves(v.alg) {
			t.Errorf("%s: keys %v, %v, error %v", v.name, keys, unused, err)
			continue
		}
		verify := func(signed, signature string) error {
			return (&parts{alg: v.alg, signed: []byte(signed), signature: []byte(signature)}).verify(keys[0].public)
		}
		if err := verify(v.signed, v.signature); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		for _, other := range [][2]string{{v.signed + "x", v.signature}, {v.signed, v.signature[4:]}, {v.signed, ""}} {
			if err := verify(other[0], other[1]); err != ErrSignature {
				t.Errorf("%s: %q with signature %q: %v", v.name, other[0], other[1], err)
			}
		}
	}
}

func mustPair(t *testing.T, alg string, make func() (crypto.Signer, error)) pair {
	t.Helper()
	private, err := make()
	if err != nil {
		t.Fatal(err)
	}
	return pair{alg, "weak", private}
}

func ec(curve elliptic.Curve) func() (crypto.Signer, error) {
	return func() (crypto.Signer, error) { return ecdsa.GenerateKey(curve, rand.Reader) }
}

// smallRSA is a public key of few bits. The library cannot make one, and the test
// needs no signature by it.
func smallRSA(bits uint) string {
	n := new(big.Int).SetBit(big.NewInt(1), int(bits-1), 1)
	return fmt.Sprintf(`{"kty":"RSA","kid":"weak","e":"AQAB","n":%q}`, base64url(n.Bytes()))
}

func TestKeys_BadEntriesAreIgnoredAndLogged(t *testing.T) {
	good, rs, es, ed := key("EdDSA", "good"), key("RS256", "weak"), key("ES256", "weak"), key("EdDSA", "weak")
	point := es.private.Public().(*ecdsa.PublicKey)
	encoded, err := point.Bytes() // 4, X, Y
	if err != nil {
		t.Fatal(err)
	}
	x := base64url(encoded[1 : 1+half])
	modulus := base64url(rs.private.Public().(*rsa.PublicKey).N.Bytes())
	for name, entry := range map[string]string{
		"1024 bits":                   smallRSA(1024),
		"2047 bits":                   smallRSA(2047),
		"8200 bits":                   smallRSA(8200),
		"an even exponent":            rs.jwk("e", "Ag"),
		"an exponent of one":          rs.jwk("e", "AQ"),
		"an exponent beyond 31 bits":  rs.jwk("e", "gAAAAQ"),
		"an exponent beyond 64 bits":  rs.jwk("e", "AQAAAAAAAAABAAE"),
		"no exponent":                 rs.jwk("e", ""),
		"no modulus":                  rs.jwk("n", ""),
		"a modulus that is no base64": rs.jwk("n", "!!!!"),
		"P-224":                       mustPair(t, "", ec(elliptic.P224())).jwk(),
		"P-256 that says P-384":       es.jwk("crv", "P-384"),
		"P-256 that says ES384":       es.jwk("alg", "ES384"),
		"P-384 that says ES256":       mustPair(t, "", ec(elliptic.P384())).jwk("alg", "ES256"),
		"P-521 that says ES384":       mustPair(t, "", ec(elliptic.P521())).jwk("alg", "ES384"),
		"secp256k1":                   es.jwk("crv", "secp256k1"),
		"a point off the curve":       es.jwk("y", x),
		"half a point":                es.jwk("y", ""),
		"a long coordinate":           es.jwk("x", base64url(make([]byte, half+1))),
		"Ed448":                       ed.jwk("crv", "Ed448"),
		"X25519":                      ed.jwk("crv", "X25519"),
		"half an Ed25519 key":         ed.jwk("x", base64url(make([]byte, 16))),
		"RSA for encryption":          rs.jwk("alg", "RSA-OAEP", "use", ""),
		"RSA of an unknown alg":       rs.jwk("alg", "RS257"),
		"RSA that says ES256":         rs.jwk("alg", "ES256"),
		"RSA that says HS256":         rs.jwk("alg", "HS256"),
		"EC that says HS384":          es.jwk("alg", "HS384"),
		"Ed25519 that says HS512":     ed.jwk("alg", "HS512"),
		"RSA that says none":          rs.jwk("alg", "none"),
		"EC that says EdDSA":          es.jwk("alg", "EdDSA"),
		"a secret":                    `{"kty":"oct","kid":"weak","k":"AAAAAAAAAAAAAAAAAAAAAA"}`,
		"no kty":                      rs.jwk("kty", ""),
		"RSA that says EC":            rs.jwk("kty", "EC"),
		"a published private half":    fmt.Sprintf(`{"kty":"RSA","kid":"weak","e":"AQAB","n":%q,"d":"AQAB"}`, modulus),
		"a key for encryption":        rs.jwk("use", "enc"),
		"a key for signing alone":     fmt.Sprintf(`{"kty":"RSA","kid":"weak","e":"AQAB","n":%q,"key_ops":["sign"]}`, modulus),
		"operations of a wrong type":  rs.jwk("key_ops", "verify"),
		"a member twice":              strings.Replace(rs.jwk(), `{`, `{"kty":"RSA",`, 1),
		"certificates that are none":  strings.Replace(rs.jwk(), `{`, `{"x5c":["AAAA"],`, 1),
		"a coordinate cut short":      es.jwk("x", base64url(make([]byte, half-1))),
		"padding":                     ed.jwk("x", base64url(ed.private.Public().(ed25519.PublicKey))+"="),
		"an Ed25519 key of order one": ed.jwk("x", base64url(append([]byte{1}, make([]byte, ed25519.PublicKeySize-1)...))),
		"an empty private half":       strings.Replace(rs.jwk(), `{`, `{"d":"",`, 1),
		"a name of a wrong type":      `{"kty":"RSA","kid":7}`,
		"an array":                    `[]`,
		"nothing":                     `null`,
	} {
		e := with(t, set(entry, good.jwk()))
		if stats := e.keys.Stats(); stats.Keys != 1 {
			t.Errorf("%s: %d keys", name, stats.Keys)
		}
		e.expect(t, name+": the other key", good.token(), nil)
		for _, p := range []pair{rs, es, ed} {
			e.expect(t, name+": "+p.alg, p.token(), ErrKey)
		}
		otherUse := name == "a key for encryption" || name == "a key for signing alone"
		if said := strings.Contains(e.log.String(), "ignored"); said == otherUse {
			t.Errorf("%s: the log says %q", name, e.log.String())
		}
	}
}

func TestKeys_CommonFormsOfIssuersAreRead(t *testing.T) {
	rs, es, ed := key("RS256", "k"), key("ES256", "k"), key("EdDSA", "k")
	for name, c := range map[string]struct {
		entry string
		key   pair
	}{
		"RSA without alg and use":    {rs.jwk("alg", "", "use", ""), rs},
		"EC without alg and use":     {es.jwk("alg", "", "use", ""), es},
		"Ed25519 without alg":        {ed.jwk("alg", ""), ed},
		"operations":                 {strings.Replace(rs.jwk("use", ""), `{`, `{"key_ops":["verify","sign"],`, 1), rs},
		"members without a value":    {strings.Replace(rs.jwk(), `{`, `{"key_ops":[],"d":null,"crv":null,"x":null,"x5c":[],"oth":[],`, 1), rs},
		"an address of certificates": {strings.Replace(rs.jwk(), `{`, `{"x5u":"http://127.0.0.1:1/","iat":1,`, 1), rs},
	} {
		e := with(t, set(c.entry))
		e.expect(t, name, c.key.token(), nil)
	}
	// One name for an RSA and an EC key: the token's algorithm decides.
	e := with(t, setOf(rs, es, ed))
	for _, p := range []pair{rs, es, ed} {
		e.expect(t, "a shared name: "+p.alg, p.token(), nil)
	}
	// One name for two RSA keys: each serves the algorithm that it names.
	ps := otherKey("PS512", "k")
	e = with(t, setOf(rs, ps))
	e.expect(t, "RS256 of a shared name", rs.token(), nil)
	e.expect(t, "PS512 of a shared name", ps.token(), nil)
	// One name for two keys of an algorithm: the first is used, the log names the other.
	e = with(t, setOf(rs, otherKey("RS256", "k")))
	e.expect(t, "the first", rs.token(), nil)
	e.expect(t, "the second", otherKey("RS256", "k").token(), ErrForged)
	if !strings.Contains(e.log.String(), "has the name of another key") {
		t.Errorf("the log says %q", e.log.String())
	}
}

func TestKeys_UnchangedSetIsLoggedOnce(t *testing.T) {
	e := with(t, set(key("RS256", "r").jwk(), smallRSA(1024)))
	for range 3 {
		if err := e.fetch(t); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(e.log.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, e.log.String())
	}
}

// FuzzSet looks for sets that break the parser, and for keys that accept a
// signature that they did not make.
func FuzzSet(f *testing.F) {
	f.Add([]byte(sameSet()))
	for _, v := range vectors {
		f.Add([]byte(set(v.key)))
	}
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"","e":""},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},null,7]}`))
	signature := []byte(base64url(make([]byte, 2*half)))
	f.Fuzz(func(t *testing.T, body []byte) {
		keys, _, err := parseSet(body)
		if err != nil && len(keys) > 0 || len(keys) > maxKeys {
			t.Fatalf("%d keys, error %v", len(keys), err)
		}
		for _, k := range keys {
			for _, alg := range k.algs {
				nobodys := parts{alg: alg, signed: []byte("message"), signature: signature}
				if alg.bySecret() || alg >= algorithms || k.public == nil || nobodys.verify(k.public) == nil {
					t.Fatalf("key %+v", k)
				}
			}
		}
	})
}
