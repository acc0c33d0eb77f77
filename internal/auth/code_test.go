package auth

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill"
)

func TestLoginCode(t *testing.T) {
	soon, good := `"exp":`+at(2*time.Minute), `"sub":"bob","jti":"once","aud":"seckill-login"`
	longest := strings.Repeat("j", 64)
	for _, tc := range []struct {
		name, payload string
		want          error
	}{
		{"plain", `{` + good + `,` + soon + `}`, nil},
		{"as the shop's clock goes", `{` + good + `,"exp":` + at(MaxCodeLife+DefaultLeeway) + `,"iat":` + at(DefaultLeeway) + `}`, nil},
		{"among audiences", `{"sub":"bob","jti":"once","aud":["x","seckill-login"],` + soon + `}`, nil},
		{"longest id", `{"sub":"bob","jti":"` + longest + `","aud":"seckill-login",` + soon + `}`, nil},
		{"a buyer's token", `{"sub":"bob","jti":"once",` + soon + `}`, ErrNotLoginCode},
		{"another audience", `{"sub":"bob","jti":"once","aud":"seckill",` + soon + `}`, ErrNotLoginCode},
		{"no id", `{"sub":"bob","aud":"seckill-login",` + soon + `}`, ErrCodeID},
		{"empty id", `{"sub":"bob","jti":"","aud":"seckill-login",` + soon + `}`, ErrCodeID},
		{"long id", `{"sub":"bob","jti":"j` + longest + `","aud":"seckill-login",` + soon + `}`, ErrCodeID},
		{"id a number", `{"sub":"bob","jti":1,"aud":"seckill-login",` + soon + `}`, ErrClaims},
		{"long life", `{` + good + `,"exp":` + at(MaxCodeLife+DefaultLeeway+time.Second) + `}`, ErrCodeLife},
		{"no expiry", `{` + good + `}`, ErrNoExpiry},
		{"expired", `{` + good + `,"exp":` + at(-DefaultLeeway) + `}`, ErrExpired},
		{"not yet", `{` + good + `,` + soon + `,"nbf":` + at(DefaultLeeway+time.Second) + `}`, ErrNotYetValid},
		{"nobody", `{"sub":"","jti":"once","aud":"seckill-login",` + soon + `}`, ErrBuyer},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rs := key("RS256", "r")
			e := with(t, setOf(rs))
			for alg, token := range map[string]string{"HS256": seal(t, secret, hs256, tc.payload), "RS256": rs.seal(rs.header(), tc.payload)} {
				code, err := e.LoginCode([]byte(token), Look{Now: now})
				if err != tc.want || err != nil && code != (Code{}) {
					t.Fatalf("%s: code %+v, error %v, want %v", alg, code, err, tc.want)
				}
				if err != nil && seckill.CodeOf(err) != seckill.CodeUnauthenticated {
					t.Errorf("%s: %v", alg, err)
				}
				if err == nil && (code.Buyer != "bob" || code.ID != "once" && code.ID != longest || code.Life < codeLeeways*DefaultLeeway) {
					t.Errorf("%s: code %+v", alg, code)
				}
			}
		})
	}
}

func TestLoginCode_IsNotABuyersToken(t *testing.T) {
	ed := key("EdDSA", "d")
	s := openShop(t, setOf(ed))
	for _, audience := range []string{"", "shop"} {
		e := openEngine(t, s.URL, VerifierOptions{Secrets: [][]byte{secret}, Audience: audience})
		if err := e.fetch(t); err != nil {
			t.Fatal(err)
		}
		for _, aud := range []string{`"seckill-login"`, `["seckill-login"]`, `["shop","seckill-login"]`, `["seckill-login","shop"]`, `"seckill\u002dlogin"`} {
			payload := fmt.Sprintf(`{"sub":"bob","jti":"once","aud":%s,"exp":%s}`, aud, at(time.Minute))
			for _, token := range []string{seal(t, secret, hs256, payload), ed.seal(ed.header(), payload)} {
				if _, err := e.LoginCode([]byte(token), Look{Now: now}); err != nil {
					t.Errorf("aud %s is no code: %v", aud, err)
				}
				e.expect(t, "aud "+aud, []byte(token), ErrLoginCode)
			}
		}
	}
}

func TestLoginCode_IssuerAndSignatureAreChecked(t *testing.T) {
	v, err := OpenVerifier(VerifierOptions{Secrets: [][]byte{secret}, Issuer: "shop", Audience: "sale"})
	if err != nil {
		t.Fatal(err)
	}
	payload := `{"iss":%q,"sub":"bob","jti":"once","aud":"seckill-login","exp":` + at(time.Minute) + `}`
	for _, tc := range []struct {
		token string
		want  error
	}{
		{seal(t, secret, hs256, fmt.Sprintf(payload, "shop")), nil},
		{seal(t, secret, hs256, fmt.Sprintf(payload, "eve")), ErrIssuer},
		{seal(t, []byte("eve's own secret"), hs256, fmt.Sprintf(payload, "shop")), ErrSignature},
		{seal(t, secret, `{"alg":"none"}`, fmt.Sprintf(payload, "shop")), ErrAlgorithm},
		{"nonsense", ErrMalformed},
		{strings.Repeat("x", MaxTokenBytes+1), ErrTooLong},
	} {
		if _, err := v.LoginCode([]byte(tc.token), Look{Now: now}); err != tc.want {
			t.Errorf("error %v, want %v", err, tc.want)
		}
	}
}
