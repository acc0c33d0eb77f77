package auth

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill"
)

var now = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

var secret = []byte("a secret of the shop, 32 bytes..")

const hs256 = `{"alg":"HS256","typ":"JWT"}`

// seal signs any header and payload, also those that no library would make.
func seal(t testing.TB, secret []byte, header, payload string) string {
	t.Helper()
	ring, err := NewRing(secret)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(header)) + "." + encode([]byte(payload))
	sum := ring.Sign([]byte(signed))
	return signed + "." + encode(sum[:])
}

func open(t testing.TB, secrets ...[]byte) *Verifier {
	t.Helper()
	v, err := OpenVerifier(VerifierOptions{Secrets: secrets, Leeway: DefaultLeeway})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sign makes a buyer's token without issuer and audience.
func sign(secret []byte, buyer string, expires time.Time) (string, error) {
	signer, err := NewSigner(secret, "", "")
	if err != nil {
		return "", err
	}
	return signer.Sign(buyer, expires)
}

func at(offset time.Duration) string { return fmt.Sprint(now.Add(offset).Unix()) }

func TestClaims(t *testing.T) {
	later := at(time.Hour)
	exp := `"exp":` + later
	for _, tc := range []struct {
		name, payload, buyer string
		want                 error
	}{
		{"plain", `{"sub":"bob",` + exp + `}`, "bob", nil},
		{"any order, white space", " {\n\"exp\" : " + later + " ,\t\"sub\" : \"bob\" } \r\n", "bob", nil},
		{"case counts in buyers", `{"sub":"Bob",` + exp + `}`, "Bob", nil},
		{"case counts in names", `{"Sub":"eve","sub":"bob",` + exp + `}`, "bob", nil},
		{"raw UTF-8", `{"sub":"用户一",` + exp + `}`, "用户一", nil},
		{"escapes", `{"sub":"\"\\\/\u7528\u6237\uD83D\uDE00x",` + exp + `}`, `"\/用户😀x`, nil},
		{"escaped name", `{"\u0073ub":"bob",` + exp + `}`, "bob", nil},
		{"other claims", `{"iss":"shop","aud":["a","b"],"roles":{"x":[1,-2.5e+3,true,false,null,{}],"y":[]},"":0,"sub":"bob",` + exp + `}`, "bob", nil},
		{"64 bytes", `{"sub":"` + strings.Repeat("b", 64) + `",` + exp + `}`, strings.Repeat("b", 64), nil},
		{"all dates", `{"sub":"bob",` + exp + `,"nbf":` + at(-1) + `,"iat":` + at(-1) + `}`, "bob", nil},
		{"dates with fraction and exponent", `{"sub":"bob","exp":1.8e9,"iat":1700000000.75,"nbf":0}`, "bob", nil},

		{"just expired, within the leeway", `{"sub":"bob","exp":` + at(-DefaultLeeway+time.Second) + `}`, "bob", nil},
		{"expired", `{"sub":"bob","exp":` + at(-DefaultLeeway) + `}`, "", ErrExpired},
		{"expired long ago", `{"sub":"bob","exp":0}`, "", ErrExpired},
		{"not yet, within the leeway", `{"sub":"bob",` + exp + `,"nbf":` + at(DefaultLeeway) + `}`, "bob", nil},
		{"not yet", `{"sub":"bob",` + exp + `,"nbf":` + at(DefaultLeeway+time.Second) + `}`, "", ErrNotYetValid},
		{"issued in the future", `{"sub":"bob",` + exp + `,"iat":` + at(DefaultLeeway+time.Second) + `}`, "", ErrNotYetValid},
		{"no expiry", `{"sub":"bob"}`, "", ErrNoExpiry},
		{"expiry null", `{"sub":"bob","exp":null}`, "", ErrClaims},
		{"expiry a string", `{"sub":"bob","exp":"` + later + `"}`, "", ErrClaims},
		{"expiry in milliseconds", `{"sub":"bob","exp":` + later + `000}`, "", ErrClaims},
		{"expiry huge", `{"sub":"bob","exp":1e300}`, "", ErrClaims},
		{"expiry negative", `{"sub":"bob","exp":-1}`, "", ErrClaims},
		{"expiry with leading zero", `{"sub":"bob","exp":0` + later + `}`, "", ErrClaims},
		{"expiry twice", `{"sub":"bob",` + exp + `,` + exp + `}`, "", ErrClaims},

		{"no subject", `{` + exp + `}`, "", ErrBuyer},
		{"subject empty", `{"sub":"",` + exp + `}`, "", ErrBuyer},
		{"subject too long", `{"sub":"` + strings.Repeat("b", 65) + `",` + exp + `}`, "", ErrBuyer},
		{"subject with an escaped control character", `{"sub":"bob\u0000",` + exp + `}`, "", ErrBuyer},
		{"subject with a line break", `{"sub":"bob\n",` + exp + `}`, "", ErrBuyer},
		{"subject with a raw control character", "{\"sub\":\"bob\n\"," + exp + `}`, "", ErrClaims},
		{"subject not UTF-8", "{\"sub\":\"bob\xff\"," + exp + `}`, "", ErrClaims},
		{"subject with half a surrogate pair", `{"sub":"bob\ud83d",` + exp + `}`, "", ErrClaims},
		{"subject with a swapped surrogate pair", `{"sub":"\ude00\ud83d",` + exp + `}`, "", ErrClaims},
		{"subject with an unknown escape", `{"sub":"\x41",` + exp + `}`, "", ErrClaims},
		{"subject with a cut escape", `{"sub":"\u00`, "", ErrClaims},
		{"subject a number", `{"sub":42,` + exp + `}`, "", ErrClaims},
		{"subject twice", `{"sub":"bob","sub":"eve",` + exp + `}`, "", ErrClaims},
		{"subject twice, once escaped", `{"sub":"bob","\u0073ub":"eve",` + exp + `}`, "", ErrClaims},
		{"another claim twice", `{"sub":"bob","x":1,"x":2,` + exp + `}`, "", ErrClaims},

		{"empty", ``, "", ErrClaims},
		{"an array", `["sub"]`, "", ErrClaims},
		{"not closed", `{"sub":"bob",` + exp, "", ErrClaims},
		{"comma at the end", `{"sub":"bob",` + exp + `,}`, "", ErrClaims},
		{"comma missing", `{"sub":"bob" ` + exp + `}`, "", ErrClaims},
		{"something after the end", `{"sub":"bob",` + exp + `}{}`, "", ErrClaims},
		{"a bad value that is skipped", `{"sub":"bob","x":[1,],` + exp + `}`, "", ErrClaims},
		{"nested within bounds", `{"x":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `,"sub":"bob",` + exp + `}`, "bob", nil},
		{"nested too deep", `{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `,"sub":"bob",` + exp + `}`, "", ErrClaims},
		{"too many claims", `{` + members(maxMembers) + `"sub":"bob",` + exp + `}`, "", ErrClaims},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check(t, seal(t, secret, hs256, tc.payload), tc.buyer, tc.want)
		})
	}
}

func TestAppendBuyer_IssuerAndAudienceMustMatch(t *testing.T) {
	for _, tc := range []struct {
		issuer, audience, claims string
		want                     error
	}{
		{"", "", ``, nil},
		{"", "", `"iss":"anybody","aud":["x"],`, nil},
		{"https://shop", "", `"iss":"https://shop",`, nil},
		{"https://shop", "", `"iss":"https:\/\/shop",`, nil},
		{"https://shop", "", `"iss":"https://shop/",`, ErrIssuer},
		{"https://shop", "", ``, ErrIssuer},
		{"https://shop", "", `"iss":["https://shop"],`, ErrClaims},
		{"", "sale", `"aud":"sale",`, nil},
		{"", "sale", `"aud":["x", "sale" ,"y"],`, nil},
		{"", "sale", `"aud":"Sale",`, ErrAudience},
		{"", "sale", `"aud":["x"],`, ErrAudience},
		{"", "sale", `"aud":[],`, ErrAudience},
		{"", "sale", `"aud":"",`, ErrAudience},
		{"", "sale", ``, ErrAudience},
		{"", "sale", `"aud":["sale",7],`, ErrClaims},
		{"", "sale", `"aud":[["sale"]],`, ErrClaims},
		{"", "sale", `"aud":["sale",],`, ErrClaims},
		{"", "sale", `"aud":["x" "sale"],`, ErrClaims},
		{"", "sale", `"aud":null,`, ErrClaims},
		{"", "sale", `"aud":"sale","aud":"x",`, ErrClaims},
		{"https://shop", "sale", `"aud":"sale","iss":"https://shop",`, nil},
		{"https://shop", "sale", `"aud":"sale","iss":"eve",`, ErrIssuer},
	} {
		v, err := OpenVerifier(VerifierOptions{Secrets: [][]byte{secret}, Issuer: tc.issuer, Audience: tc.audience})
		if err != nil {
			t.Fatal(err)
		}
		token := seal(t, secret, hs256, `{`+tc.claims+`"sub":"bob","exp":`+at(time.Hour)+`}`)
		if _, err := v.AppendBuyer(nil, []byte(token), Look{Now: now}); err != tc.want {
			t.Errorf("issuer %q, audience %q, claims %s: error %v, want %v", tc.issuer, tc.audience, tc.claims, err, tc.want)
		}
	}
}

func TestSigner_TokenHasIssuerAndAudience(t *testing.T) {
	signer, err := NewSigner(secret, "https://shop", "sale")
	if err != nil {
		t.Fatal(err)
	}
	token, err := signer.Sign("bob", now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, opt := range []VerifierOptions{{}, {Issuer: "https://shop", Audience: "sale"}} {
		opt.Secrets = [][]byte{secret}
		v, err := OpenVerifier(opt)
		if err != nil {
			t.Fatal(err)
		}
		if buyer, err := v.AppendBuyer(nil, []byte(token), Look{Now: now}); err != nil || string(buyer) != "bob" {
			t.Errorf("buyer %q, error %v", buyer, err)
		}
	}
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"c%d":0,`, i)
	}
	return b.String()
}

func TestHeader_AlgorithmMustMatchSignature(t *testing.T) {
	for _, tc := range []struct {
		name, header string
		want         error
	}{
		{"alg alone", `{"alg":"HS256"}`, nil},
		{"other order", `{"typ":"JWT","alg":"HS256"}`, nil},
		{"other members", `{"alg":"HS256","kid":"7","x":{"y":[1]}}`, nil},
		{"alg escaped", `{"alg":"HS\u0032\u00356"}`, nil},
		{"none", `{"alg":"none"}`, ErrAlgorithm},
		{"lower case", `{"alg":"hs256"}`, ErrAlgorithm},
		{"another HMAC than the signature's", `{"alg":"HS512"}`, ErrSignature},
		{"RSA", `{"alg":"RS256"}`, ErrAlgorithm},
		{"kid not a string", `{"alg":"HS256","kid":7}`, ErrMalformed},
		{"alg missing", `{"typ":"JWT"}`, ErrAlgorithm},
		{"alg not a string", `{"alg":256}`, ErrAlgorithm},
		{"alg twice", `{"alg":"HS256","alg":"none"}`, ErrMalformed},
		{"alg in another case", `{"Alg":"HS256"}`, ErrAlgorithm},
		{"crit", `{"alg":"HS256","crit":["b64"],"b64":false}`, ErrAlgorithm},
		{"typ not a string", `{"alg":"HS256","typ":1}`, ErrMalformed},
		{"not JSON", `alg`, ErrMalformed},
		{"empty", ``, ErrMalformed},
		{"cut", `{"alg":"HS256"`, ErrMalformed},
		{"not UTF-8", "{\"alg\":\"HS256\",\"kid\":\"\xff\"}", ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			buyer := ""
			if tc.want == nil {
				buyer = "bob"
			}
			check(t, seal(t, secret, tc.header, `{"sub":"bob","exp":`+at(time.Hour)+`}`), buyer, tc.want)
		})
	}
}

func TestTokenForm(t *testing.T) {
	good := seal(t, secret, hs256, `{"sub":"bob","exp":`+at(time.Hour)+`}`)
	parts := strings.Split(good, ".")
	last := good[len(good)-1]
	for _, tc := range []struct {
		name, token string
		want        error
	}{
		{"empty", "", ErrMalformed},
		{"two parts", parts[0] + "." + parts[1], ErrMalformed},
		{"four parts", good + ".", ErrMalformed},
		{"no signature", parts[0] + "." + parts[1] + ".", ErrSignature},
		{"signature cut", good[:len(good)-2], ErrMalformed},
		{"padded", good + "=", ErrMalformed},
		{"line break in the signature", good + "\n", ErrMalformed},
		{"line break in the header", "\n" + good, ErrMalformed},
		{"bits that mean nothing", good[:len(good)-1] + string(next(last)), ErrMalformed},
		{"payload of another token", parts[0] + "." + parts[1][:8] + "X" + parts[1][9:] + "." + parts[2], ErrSignature},
		{"a secret of somebody else", seal(t, []byte("other"), hs256, `{}`), ErrSignature},
		{"too long", strings.Repeat("A", MaxTokenBytes+1), ErrTooLong},
		{"long without a dot", strings.Repeat("A", MaxTokenBytes), ErrMalformed},
		{"a huge header", strings.Repeat("A", MaxTokenBytes-2) + "..", ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, tc.token, "", tc.want) })
	}
	t.Run("as long as may be", func(t *testing.T) {
		payload := `{"sub":"bob","exp":` + at(time.Hour) + `,"x":"` + strings.Repeat("x", 2900) + `"}`
		check(t, seal(t, secret, hs256, payload), "bob", nil)
	})
}

// next returns the character for the next six-bit value: the lowest bit differs.
func next(c byte) byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return alphabet[strings.IndexByte(alphabet, c)+1]
}

// check expects a buyer or an error. An error must leave dst unchanged.
func check(t *testing.T, token, buyer string, want error) {
	t.Helper()
	raw := []byte(token)
	got, err := open(t, secret).AppendBuyer([]byte("kept:"), raw, Look{Now: now})
	if !errors.Is(err, want) || string(got) != "kept:"+buyer {
		t.Fatalf("buyer %q, error %v; want %q, %v", got, err, "kept:"+buyer, want)
	}
	if err != nil && seckill.CodeOf(err) != seckill.CodeUnauthenticated {
		t.Errorf("code %s", seckill.CodeOf(err))
	}
	if string(raw) != token {
		t.Error("the caller's token was changed")
	}
}

func TestAppendBuyer_RefusesEveryChangedCharacter(t *testing.T) {
	v := open(t, secret)
	token := []byte(seal(t, secret, hs256, `{"sub":"bob","exp":`+at(time.Hour)+`}`))
	for i := range token {
		for _, c := range []byte{'A', 'z', '.', '=', 0} {
			if token[i] == c {
				continue
			}
			kept := token[i]
			token[i] = c
			if _, err := v.AppendBuyer(nil, token, Look{Now: now}); err == nil {
				t.Fatalf("accepted with character %d changed to %q", i, c)
			}
			token[i] = kept
		}
	}
}

func TestAuthorizationHeader(t *testing.T) {
	v := open(t, secret)
	token, err := sign(secret, "bob", now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		header string
		want   error
	}{
		{"Bearer " + token, nil},
		{"bearer " + token, nil},
		{"BEARER   " + token, nil},
		{"", ErrMissing},
		{"Bearer", ErrMissing},
		{"Bearer ", ErrMissing},
		{"Bearer" + token, ErrMissing},
		{"Basic Ym9iOmJvYg==", ErrMissing},
		{token, ErrMissing},
		{"Bearer " + token + " ", ErrMalformed},
		{"Bearer x", ErrMalformed},
	} {
		if _, err := v.FromHeader(nil, []byte(tc.header), Look{Now: now}); !errors.Is(err, tc.want) {
			t.Errorf("%.12q: error %v, want %v", tc.header, err, tc.want)
		}
	}
}

func TestUsualHeader_IsHS256WithoutKeyName(t *testing.T) {
	text, err := base64.RawURLEncoding.DecodeString(usualHeader)
	if err != nil {
		t.Fatal(err)
	}
	if alg, kid, err := readHeader(text); alg != algHS256 || len(kid) != 0 || err != nil {
		t.Errorf("%s: %v, %q, %v", text, alg, kid, err)
	}
}

// The signature may be checked later, or never. It must then be the same buyer.
func TestClaimed_ReadsSameBuyerWithoutProof(t *testing.T) {
	v := open(t, secret)
	long := `{"sub":"bob","exp":` + at(time.Hour) + `,"roles":"` + strings.Repeat("r", 2*usualTokenBytes) + `"}`
	for name, tc := range map[string]struct{ header, buyer string }{
		"proven":           {"Bearer " + seal(t, secret, hs256, `{"sub":"bob","exp":`+at(time.Hour)+`}`), "bob"},
		"with much beside": {"Bearer " + seal(t, secret, hs256, long), "bob"},
		"forged":           {"Bearer " + seal(t, []byte("other"), hs256, `{"sub":"bob","exp":`+at(time.Hour)+`}`), "bob"},
		"no buyer":         {"Bearer " + seal(t, secret, hs256, `{"exp":`+at(time.Hour)+`}`), ""},
		"two of them":      {"Bearer " + seal(t, secret, hs256, `{"sub":"bob","sub":"eve"}`), ""},
		"no token":         {"Bearer a.b", ""},
		"too long":         {"Bearer " + strings.Repeat("a", MaxTokenBytes) + ".b.c", ""},
		"no bearer":        {"Basic Ym9iOmJvYg==", ""},
	} {
		got, proof := v.Claimed(nil, []byte(tc.header))
		if string(got) != tc.buyer || (proof == ProofSecret) != (tc.buyer != "") {
			t.Errorf("%s: %q, %d", name, got, proof)
		}
	}
}

func TestVerifier_SecretCanBeRotated(t *testing.T) {
	token, err := sign([]byte("old"), "bob", now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, []byte("new"), []byte("old")).AppendBuyer(nil, []byte(token), Look{Now: now}); err != nil {
		t.Errorf("during the rotation: %v", err)
	}
	if _, err := open(t, []byte("new")).AppendBuyer(nil, []byte(token), Look{Now: now}); !errors.Is(err, ErrSignature) {
		t.Errorf("after the rotation: %v", err)
	}
}

func TestSigner_BuyersAreReadBack(t *testing.T) {
	v := open(t, secret)
	for _, buyer := range []string{"b", "用户 一", `"quoted" \ back`, "<&>\u2028😀", strings.Repeat("x", 64)} {
		token, err := sign(secret, buyer, now.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := v.AppendBuyer(nil, []byte(token), Look{Now: now}); err != nil || string(got) != buyer {
			t.Errorf("%q came back as %q, %v", buyer, got, err)
		}
	}
	for _, buyer := range []string{"", "a\nb", "\xff", strings.Repeat("x", 65)} {
		if _, err := sign(secret, buyer, now); err == nil {
			t.Errorf("signed %q", buyer)
		}
	}
	if _, err := sign(nil, "bob", now); err == nil {
		t.Error("signed with an empty secret")
	}
	if _, err := OpenVerifier(VerifierOptions{}); err == nil {
		t.Error("a verifier without a secret")
	}
}

// longSeal signs with HS384 or HS512.
func longSeal(t testing.TB, secret []byte, alg, payload string) string {
	t.Helper()
	signed := base64url([]byte(`{"alg":"`+alg+`"}`)) + "." + base64url([]byte(payload))
	sum, err := jwt.GetSigningMethod(alg).Sign(signed, secret)
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64url(sum)
}

func TestAppendBuyer_AcceptsHS384AndHS512(t *testing.T) {
	good := `{"sub":"bob","exp":` + at(time.Hour) + `}`
	older := []byte("the secret before, 32 bytes.....")
	e := with(t, setOf(key("RS256", "r")))
	rotating := open(t, secret, older)
	for _, alg := range []string{"HS384", "HS512"} {
		token := longSeal(t, secret, alg, good)
		parts := strings.Split(token, ".")
		for name, c := range map[string]struct {
			token string
			want  error
		}{
			"good":                 {token, nil},
			"another secret":       {longSeal(t, []byte("other"), alg, good), ErrSignature},
			"expired":              {longSeal(t, secret, alg, `{"sub":"bob","exp":1}`), ErrExpired},
			"no signature":         {parts[0] + "." + parts[1] + ".", ErrSignature},
			"half a signature":     {token[:len(token)-len(parts[2])+40], ErrSignature},
			"signature not base64": {token + "=", ErrMalformed},
			"HS256 signature":      {seal(t, secret, `{"alg":"`+alg+`"}`, good), ErrSignature},
			"its signature, HS256": {base64url([]byte(hs256)) + "." + parts[1] + "." + parts[2], ErrSignature},
			"a public key":         {longSeal(t, []byte(key("RS256", "r").jwk()), alg, good), ErrSignature},
		} {
			e.expect(t, alg+", "+name, []byte(c.token), c.want)
		}
		if _, err := rotating.AppendBuyer(nil, []byte(longSeal(t, older, alg, good)), Look{Now: now}); err != nil {
			t.Errorf("%s with the previous secret: %v", alg, err)
		}
		if buyer, proof := e.Claimed(nil, []byte("Bearer "+token)); string(buyer) != "bob" || proof != ProofSecret {
			t.Errorf("%s: claimed %q, proof %d", alg, buyer, proof)
		}
		code := longSeal(t, secret, alg, `{"sub":"bob","aud":"seckill-login","jti":"1","exp":`+at(time.Minute)+`}`)
		if _, err := e.LoginCode([]byte(code), Look{Now: now, Spare: true}); err != nil {
			t.Errorf("%s, a login code: %v", alg, err)
		}
	}
	alone := openEngine(t, openShop(t, setOf(key("RS256", "r"))).URL, VerifierOptions{})
	alone.expect(t, "without a secret", []byte(longSeal(t, secret, "HS512", good)), ErrAlgorithm)
}
