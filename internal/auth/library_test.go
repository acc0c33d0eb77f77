package auth

import (
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// library returns the buyer that libraryClaims reads.
func library(token string, keys map[string]pair) (string, error) {
	claims, err := libraryClaims(token, keys)
	if err != nil {
		return "", err
	}
	return claims.GetSubject()
}

// libraryClaims reads a token with a full JWT library under the same rules and
// keys.
func libraryClaims(token string, keys map[string]pair) (jwt.MapClaims, error) {
	parser := jwt.NewParser(
		jwt.WithValidMethods(append([]string{"HS256", "HS384", "HS512"}, publicAlgorithms...)),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithLeeway(DefaultLeeway),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return now }),
	)
	claims := jwt.MapClaims{}
	_, err := parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, hmac := t.Method.(*jwt.SigningMethodHMAC); hmac {
			return secret, nil
		}
		p, known := keys[t.Method.Alg()]
		if kid, named := t.Header["kid"]; !known || named && kid != "" && kid != p.kid {
			return nil, errors.New("no such key")
		}
		return p.private.Public(), nil
	})
	return claims, err
}

// sameKeys are what we and the library verify with.
var sameKeys = func() map[string]pair {
	keys := map[string]pair{}
	for _, alg := range publicAlgorithms {
		keys[alg] = key(alg, alg[:2]+alg[len(alg)-1:])
	}
	return keys
}()

// sameSet is the JWKS of their public halves.
func sameSet() string { return setOf(slices.Collect(maps.Values(sameKeys))...) }

// notWider fails if we accept a token that the library refuses, or read another
// buyer from it.
func notWider(t *testing.T, v *Verifier, token string) {
	t.Helper()
	ours, err := v.AppendBuyer(nil, []byte(token), Look{Now: now})
	if err != nil {
		return
	}
	theirs, err := library(token, sameKeys)
	if err != nil || theirs != string(ours) {
		t.Fatalf("we read buyer %q, the library %q with error %v, from %s", ours, theirs, err, token)
	}
	if claimed, proof := v.Claimed(nil, []byte("Bearer "+token)); proof == ProofNone || string(claimed) != string(ours) {
		t.Fatalf("we read buyer %q, and %q (%d) without a proof, from %s", ours, claimed, proof, token)
	}
	if again, err := v.AppendBuyer(nil, []byte(token), Look{Now: now}); err != nil || string(again) != string(ours) {
		t.Fatalf("we read buyer %q, and then %q with error %v, from %s", ours, again, err, token)
	}
}

// bothWays lists the library's signing keys by algorithm.
func bothWays() map[string]any {
	ways := map[string]any{"HS256": secret, "HS384": secret, "HS512": secret}
	for alg, p := range sameKeys {
		ways[alg] = p.private
	}
	return ways
}

func TestVerifier_AcceptsTokensOfLibrary(t *testing.T) {
	e := with(t, sameSet())
	for _, claims := range []jwt.Claims{
		jwt.MapClaims{"sub": "bob", "exp": now.Add(time.Hour).Unix()},
		jwt.MapClaims{"sub": "bob", "exp": float64(now.Add(time.Hour).Unix()) + 0.5, "roles": []string{"a", "b"}, "https://x/y": nil},
		jwt.RegisteredClaims{
			Subject: "bob", Issuer: "shop", Audience: jwt.ClaimStrings{"a", "b"}, ID: "1",
			ExpiresAt: jwt.NewNumericDate(now.Add(time.Hour)), IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now),
		},
	} {
		for alg, private := range bothWays() {
			for _, kid := range []string{"", sameKeys[alg].kid} {
				made := jwt.NewWithClaims(jwt.GetSigningMethod(alg), claims)
				if kid != "" {
					made.Header["kid"] = kid
				}
				token, err := made.SignedString(private)
				if err != nil {
					t.Fatal(err)
				}
				e.expect(t, alg+" "+kid, []byte(token), nil)
				notWider(t, e.Verifier, token)
			}
		}
	}
}

// A difference to the library would be seen here before it is found by fuzzing.
func TestVerifier_RefusesWhatLibraryRefuses(t *testing.T) {
	e := with(t, sameSet())
	for name, claims := range map[string]string{
		"expired": `{"sub":"bob","exp":` + at(-DefaultLeeway) + `}`, "not yet": `{"sub":"bob","exp":` + at(time.Hour) + `,"nbf":` + at(2*DefaultLeeway) + `}`,
		"no expiry": `{"sub":"bob"}`, "no JSON": `{`,
	} {
		for alg, p := range sameKeys {
			token := p.seal(p.header(), claims)
			_, err := e.AppendBuyer(nil, []byte(token), Look{Now: now})
			if _, theirs := library(token, sameKeys); err == nil || theirs == nil {
				t.Errorf("%s %s: we say %v, the library %v", alg, name, err, theirs)
			}
		}
	}
}

// numbers are edge cases of JSON's number grammar.
var numbers = []string{
	"0", "-0", "0.0", "-0.5E-7", "1e308", "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "-1.7976931348623159e308",
	"1e309", "1e400", "-1e400", "1E+400", "1e-400", "-1e-400", "5e-324", "0e400", "0.0e99999999999", "1e99999999999999999999", "1e-99999999999999999999",
	strings.Repeat("9", 308), strings.Repeat("9", 309), "1" + strings.Repeat("0", 308), "1" + strings.Repeat("0", 309), "-1" + strings.Repeat("0", 309),
	strings.Repeat("1", 400) + "e-100", strings.Repeat("1", 400) + "e-92", strings.Repeat("1", 400) + "e-91", "0." + strings.Repeat("0", 400) + "1e401", "0." + strings.Repeat("0", 400) + "1e800",
	"0." + strings.Repeat("9", 400), "01", "1.", ".5", "1e", "+1", "0x1p4", "1_0", "NaN", "Infinity", "1e4.0",
}

// withNumber puts a number into headers and claims whose value is skipped.
func withNumber(number string) (headers, claims []string) {
	exp := at(time.Hour)
	return []string{
			`{"alg":"HS256","x":` + number + `}`,
			`{"alg":"HS256","x":[{"y":` + number + `}]}`,
		}, []string{
			`{"sub":"bob","exp":` + exp + `,"x":` + number + `}`,
			`{"x":` + number + `,"sub":"bob","exp":` + exp + `}`,
			`{"sub":"bob","exp":` + exp + `,"x":{"y":[1,` + number + `]}}`,
		}
}

// bounded matches numbers within the bounds of the scanner.
var bounded = regexp.MustCompile(`^[^eE]+([eE][+-]?[0-9]{1,2})?$`)

// withinBounds reports whether a number has the length that we accept.
func withinBounds(number string) bool { return len(number) <= maxNumber && bounded.MatchString(number) }

func TestSkippedNumbers_AgreeWithTheLibraryWithinBounds(t *testing.T) {
	e := with(t, setOf(sameKeys["EdDSA"]))
	for _, number := range numbers {
		headers, claims := withNumber(number)
		var tokens []string
		for _, header := range headers {
			tokens = append(tokens, seal(t, secret, header, `{"sub":"bob","exp":`+at(time.Hour)+`}`))
		}
		for _, payload := range claims {
			tokens = append(tokens, seal(t, secret, hs256, payload))
		}
		for i, token := range tokens {
			_, ours := e.AppendBuyer(nil, []byte(token), Look{Now: now})
			if _, theirs := library(token, sameKeys); (ours == nil) != (theirs == nil && withinBounds(number)) {
				t.Errorf("%.40s, token %d: we say %v, the library %v", number, i, ours, theirs)
			}
			notWider(t, e.Verifier, token)
		}
	}
}

// FuzzNumber compares the scanner's numbers with encoding/json.
func FuzzNumber(f *testing.F) {
	for _, number := range numbers {
		f.Add(number)
	}
	f.Fuzz(func(t *testing.T, number string) {
		if len(number) > maxDecoded || strings.TrimSpace(number) != number || len(number) == 0 || number[0] != '-' && (number[0] < '0' || number[0] > '9') {
			return
		}
		s := scanner{text: []byte(number)}
		ours := s.number() && s.at == len(number)
		var value any
		if theirs := json.Unmarshal([]byte(number), &value); ours != (theirs == nil && withinBounds(number)) {
			t.Errorf("%s: we take it: %t, encoding/json says %v", number, ours, theirs)
		}
	})
}

func TestSigner_LibraryAcceptsTokens(t *testing.T) {
	token, err := sign(secret, "用户一", now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if buyer, err := library(token, nil); err != nil || buyer != "用户一" {
		t.Errorf("buyer %q, error %v", buyer, err)
	}
}

// FuzzClaims signs its input, so that the search reaches the code behind the
// signature.
func FuzzClaims(f *testing.F) {
	exp := at(time.Hour)
	for _, payload := range []string{
		`{"sub":"bob","exp":` + exp + `}`,
		`{"sub":"\u7528\ud83d\ude00","exp":` + exp + `,"nbf":0,"iat":1e9}`,
		`{"sub":"bob","exp":` + exp + `,"x":[{"y":[true,false,null,-0.5E-7]}],"":""}`,
		`{"\u0073ub":"bob","exp":` + exp + `.99}`,
		`{"sub":"bob","sub":"eve","exp":` + exp + `}`,
		`{"sub":"bob","exp":` + at(-DefaultLeeway+time.Second) + `}`,
		`{"sub":"bob","exp":` + exp + `,"x":1e400}`,
		`{"sub":"bob","exp":` + exp + `,"x":[-1.7976931348623159e308,1e-400]}`,
		` { } `, `[]`, `{`, `{"a":"\`, `{"sub":"\ud800"}`,
	} {
		f.Add(hs256, payload)
	}
	f.Add(`{"alg":"HS256","kid":"a","alg":"none"}`, `{}`)
	f.Add(`{"alg":"HS256","x":1e400}`, `{"sub":"bob","exp":`+exp+`}`)
	for _, p := range sameKeys {
		f.Add(p.header(), `{"sub":"bob","aud":["a","seckill-login"],"iss":"shop","exp":`+exp+`}`)
	}
	f.Add(`{"alg":"EdDSA","kid":"\u0045dA"}`, `{"sub":"bob","aud":["a" , "b"],"iss":"shop","jti":"1","exp":`+exp+`}`)
	f.Add(`{"alg":"ES256"}`, `{"sub":"bob","aud":"a","exp":`+exp+`}`)
	e := with(f, sameSet())
	f.Fuzz(func(t *testing.T, header, payload string) {
		notWider(t, e.Verifier, seal(t, secret, header, payload))
		for _, alg := range []string{"ES256", "EdDSA"} { // FuzzAgainstLibrary signs with every algorithm
			notWider(t, e.Verifier, sameKeys[alg].seal(header, payload))
		}
	})
}

// FuzzToken changes the token itself.
func FuzzToken(f *testing.F) {
	good := seal(f, secret, hs256, `{"sub":"bob","exp":`+at(time.Hour)+`}`)
	f.Add(good)
	f.Add(good + "\n")
	f.Add(strings.ReplaceAll(good, ".", ".."))
	f.Add("..")
	for _, p := range sameKeys {
		f.Add(string(p.token()))
	}
	e := with(f, sameSet())
	f.Fuzz(func(t *testing.T, token string) { notWider(t, e.Verifier, token) })
}

func BenchmarkLibrary(b *testing.B) {
	for alg, private := range bothWays() {
		made := jwt.NewWithClaims(jwt.GetSigningMethod(alg), jwt.MapClaims{"iss": "shop", "sub": "buyer-0000042", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
		token, err := made.SignedString(private)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(alg, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := library(token, sameKeys); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
