package identity

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// library reads a token with a full JWT library under the same rules.
func library(token string) (string, error) {
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{"HS256"}),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithLeeway(Leeway),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return now }),
	)
	claims := jwt.MapClaims{}
	if _, err := parser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return secret, nil }); err != nil {
		return "", err
	}
	return claims.GetSubject()
}

// notWider fails if we accept a token that the library refuses, or read
// another buyer from it.
func notWider(t *testing.T, token string) {
	t.Helper()
	ours, err := open(t, secret).AppendBuyer(nil, []byte(token), now)
	if err != nil {
		return
	}
	theirs, err := library(token)
	if err != nil || theirs != string(ours) {
		t.Fatalf("we read buyer %q, the library %q with error %v, from %s", ours, theirs, err, token)
	}
}

func TestTokensOfTheLibraryAreAccepted(t *testing.T) {
	v := open(t, secret)
	for _, claims := range []jwt.Claims{
		jwt.MapClaims{"sub": "bob", "exp": now.Add(time.Hour).Unix()},
		jwt.MapClaims{"sub": "bob", "exp": float64(now.Add(time.Hour).Unix()) + 0.5, "roles": []string{"a", "b"}, "https://x/y": nil},
		jwt.RegisteredClaims{
			Subject: "bob", Issuer: "shop", Audience: jwt.ClaimStrings{"a", "b"}, ID: "1",
			ExpiresAt: jwt.NewNumericDate(now.Add(time.Hour)), IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now),
		},
	} {
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
		if err != nil {
			t.Fatal(err)
		}
		if buyer, err := v.AppendBuyer(nil, []byte(token), now); err != nil || string(buyer) != "bob" {
			t.Errorf("buyer %q, error %v", buyer, err)
		}
	}
}

func TestOurTokensAreAcceptedByTheLibrary(t *testing.T) {
	token, err := Sign(secret, "用户一", now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if buyer, err := library(token); err != nil || buyer != "用户一" {
		t.Errorf("buyer %q, error %v", buyer, err)
	}
}

// FuzzClaims signs whatever it is given, so that the search is behind the
// signature, where a mistake would matter.
func FuzzClaims(f *testing.F) {
	exp := at(time.Hour)
	for _, payload := range []string{
		`{"sub":"bob","exp":` + exp + `}`,
		`{"sub":"\u7528\ud83d\ude00","exp":` + exp + `,"nbf":0,"iat":1e9}`,
		`{"sub":"bob","exp":` + exp + `,"x":[{"y":[true,false,null,-0.5E-7]}],"":""}`,
		`{"\u0073ub":"bob","exp":` + exp + `.99}`,
		`{"sub":"bob","sub":"eve","exp":` + exp + `}`,
		`{"sub":"bob","exp":` + at(-Leeway+time.Second) + `}`,
		` { } `, `[]`, `{`, `{"a":"\`, `{"sub":"\ud800"}`,
	} {
		f.Add(hs256, payload)
	}
	f.Add(`{"alg":"HS256","kid":"a","alg":"none"}`, `{}`)
	f.Fuzz(func(t *testing.T, header, payload string) {
		notWider(t, seal(t, secret, header, payload))
	})
}

// FuzzToken changes the token itself.
func FuzzToken(f *testing.F) {
	good := seal(f, secret, hs256, `{"sub":"bob","exp":`+at(time.Hour)+`}`)
	f.Add(good)
	f.Add(good + "\n")
	f.Add(strings.ReplaceAll(good, ".", ".."))
	f.Add("..")
	f.Fuzz(notWider)
}

func BenchmarkLibrary(b *testing.B) {
	token := seal(b, secret, hs256, `{"iss":"shop","sub":"buyer-0000042","iat":`+at(0)+`,"exp":`+at(time.Hour)+`}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := library(token); err != nil {
			b.Fatal(err)
		}
	}
}
