package auth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"seckill"
)

// surrogate matches an escape of half a UTF-16 pair. The library replaces a single
// half; we refuse it.
var surrogate = regexp.MustCompile(`(?i)\\ud[89a-f]`)

// maxNesting is the number of open brackets, the outermost included, that the
// scanner always accepts.
const maxNesting = maxDepth + 1

// member is a member of a JSON object.
type member struct {
	name  string
	value any // numbers are json.Number
}

// readMembers reads an object with encoding/json and keeps duplicates. It also
// says whether the text is beyond our bounds: members, depth, numbers, UTF-8.
func readMembers(t *testing.T, text []byte) (members []member, beyond bool) {
	t.Helper()
	beyond = !utf8.Valid(text) || surrogate.Match(text)
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil { // the brace
		t.Fatalf("the library accepts %q, encoding/json says %v", text, err)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatalf("the library accepts %q, encoding/json says %v", text, err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("the library accepts %q, encoding/json says %v", text, err)
		}
		parsed, odd := readValue(value)
		members, beyond = append(members, member{name.(string), parsed}), beyond || odd
	}
	return members, beyond || len(members) > maxMembers
}

func readValue(text []byte) (value any, beyond bool) {
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber()
	_ = numbers.Decode(&value) // it was decoded before
	tokens := json.NewDecoder(bytes.NewReader(text))
	tokens.UseNumber()
	for open := 1; ; {
		switch token, err := tokens.Token(); token := token.(type) {
		case json.Delim:
			if open--; token == '{' || token == '[' {
				open += 2
			}
			beyond = beyond || open > maxNesting
		case json.Number:
			beyond = beyond || !withinBounds(token.String())
		default:
			if err != nil {
				return value, beyond
			}
		}
	}
}

// narrower reports whether one of our stricter rules explains why we refuse a
// token that the library accepts.
func narrower(t *testing.T, token string) bool {
	t.Helper()
	if len(token) > MaxTokenBytes || strings.ContainsAny(token, "\r\n") {
		return true
	}
	cut := strings.Split(token, ".")
	return narrowerPart(t, cut[0], headerRules) || narrowerPart(t, cut[1], claimRules)
}

// narrowerPart reads a part of a token. It returns true if the part has a duplicate,
// a member that its rule refuses, or exceeds our bounds.
func narrowerPart(t *testing.T, part string, rules map[string]func(any) bool) bool {
	t.Helper()
	text, err := jwt.NewParser().DecodeSegment(part)
	if err != nil {
		t.Fatal(err)
	}
	members, beyond := readMembers(t, text)
	seen := map[string]bool{}
	for _, m := range members {
		rule := rules[m.name]
		if beyond || seen[m.name] || rule != nil && !rule(m.value) {
			return true
		}
		seen[m.name] = true
	}
	return beyond || rules["sub"] != nil && !seen["sub"]
}

var (
	headerRules = map[string]func(any) bool{
		"kid": isText, "typ": isText, "crit": func(any) bool { return false },
	}
	claimRules = map[string]func(any) bool{
		"sub": func(v any) bool { s, ok := v.(string); return ok && seckill.CheckBuyer(s) == nil },
		"iss": isText, "jti": isText, "aud": isAudience,
		"exp": isDate, "nbf": isDate, "iat": isDate,
	}
)

func isText(v any) bool { _, ok := v.(string); return ok }

func isAudience(v any) bool {
	if list, ok := v.([]any); ok {
		return !slices.ContainsFunc(list, func(v any) bool { return !isText(v) || v == LoginAudience })
	}
	return isText(v) && v != LoginAudience
}

func isDate(v any) bool {
	number, ok := v.(json.Number)
	seconds, err := number.Float64()
	return ok && err == nil && seconds >= 0 && seconds <= maxSeconds
}

// agree fails unless we and the library accept or refuse a token alike and read the
// same claims. If only we refuse it, one of our stricter rules must explain it.
func agree(t *testing.T, v *Verifier, token string) {
	t.Helper()
	_, ours := v.AppendBuyer(nil, []byte(token), Look{Now: now})
	claims, theirs := libraryClaims(token, sameKeys)
	switch {
	case ours == nil && theirs != nil:
		t.Fatalf("we accept what the library refuses with %v: %s", theirs, token)
	case ours != nil && theirs == nil && !narrower(t, token):
		t.Fatalf("we refuse with %v what the library accepts: %s", ours, token)
	case ours != nil:
		return
	}
	reader := Verifier{audience: "sale"}
	c, err := reader.readPayload(make([]byte, maxDecoded), []byte(strings.Split(token, ".")[1]))
	if err != nil {
		t.Fatalf("read again: %v: %s", err, token)
	}
	sub, _ := claims.GetSubject()
	iss, _ := claims.GetIssuer()
	aud, _ := claims.GetAudience()
	id, _ := claims["jti"].(string)
	if sub != string(c.subject) || iss != string(c.issuer) || id != string(c.id) || slices.Contains(aud, reader.audience) != c.addressed || c.login {
		t.Fatalf("we read %q %q %q %t, the library %v: %s", c.subject, c.issuer, c.id, c.addressed, claims, token)
	}
	for _, date := range []struct {
		ours   int64
		theirs func() (*jwt.NumericDate, error)
	}{{c.exp, claims.GetExpirationTime}, {c.nbf, claims.GetNotBefore}, {c.iat, claims.GetIssuedAt}} {
		read, err := date.theirs()
		if err != nil || read == nil && date.ours > 0 || read != nil && read.Unix() != date.ours {
			t.Fatalf("we read date %d, the library %v (%v): %s", date.ours, read, err, token)
		}
	}
}

// FuzzAgainstLibrary compares our parser with golang-jwt. It signs the given header
// and claims with every HMAC and one public key, so that the search reaches the
// code behind the signature. Then it may change one byte of the token.
func FuzzAgainstLibrary(f *testing.F) {
	exp := at(time.Hour)
	deep := strings.Repeat("[", maxDepth) + "1" + strings.Repeat("]", maxDepth)
	for _, payload := range []string{
		`{"sub":"bob","exp":` + exp + `}`,
		`{"iss":"shop","aud":"sale","sub":"\u7528\ud83d\ude00","exp":` + exp + `.5,"nbf":0,"iat":1e9,"jti":"7"}`,
		`{"aud":["a","sale"],"sub":"bob","exp":` + exp + `,"x":[{"y":[true,false,null,-0.5E-7]}],"":""}`,
		`{"sub":"bob","exp":` + exp + `,"x":` + deep + `}`,
		`{"sub":"bob","exp":` + exp + `,"x":[` + deep + `]}`,
		`{"sub":"bob","exp":` + exp + `,"x":[1e99,1e100,-1.7976931348623159e308]}`,
		`{"sub":"bob","sub":"eve","exp":` + exp + `}`,
		`{"\u0073ub":"bob","exp":` + exp + `,"aud":["seckill-login"]}`,
		`{"sub":"bob","exp":` + at(-DefaultLeeway) + `}`,
		`{"sub":"bob","exp":` + at(-DefaultLeeway+time.Second) + `,"nbf":` + at(DefaultLeeway) + `,"iat":` + at(DefaultLeeway) + `}`,
		`{"sub":"bob","exp":` + exp + `,"nbf":null,"iss":7,"aud":null}`,
		`{"sub":"bob","exp":` + exp + `,` + members(maxMembers-3) + `"x":0}`,
		`{"sub":"bob\ud800","exp":` + exp + `}`, `{"sub":"bob` + "\xff" + `","exp":` + exp + `}`,
		` { } `, `[]`, `null`, `{`, `{"sub":"bob","exp":` + exp + `}{}`,
	} {
		f.Add(hs256, payload, uint16(0), byte(0))
	}
	good := `{"sub":"bob","exp":` + exp + `}`
	for _, header := range []string{
		`{"alg":"HS384"}`, `{"alg":"HS512","kid":"k"}`, `{"alg":"HS256","crit":["x"]}`, `{"alg":"HS256","alg":"none"}`, `{"alg":"none"}`,
		`{"alg":"HS256","kid":7}`, `{"alg":"HS256","typ":null}`, `{"Alg":"HS256"}`, `{"alg":"hs256"}`, `{"alg":"RS256"}`, `{"alg":"HS256"} `,
	} {
		f.Add(header, good, uint16(0), byte(0))
		f.Add(header, good, uint16(5), byte(1))
		f.Add(header, good, uint16(60_000), byte('\n'))
	}
	for place, alg := range publicAlgorithms { // the place also chooses the key
		for _, asked := range publicAlgorithms {
			f.Add(fmt.Sprintf(`{"alg":%q}`, asked), good, uint16(place), byte(0))
		}
		f.Add(sameKeys[alg].header(), good, uint16(place), byte(0))
		f.Add(sameKeys[alg].header(), `{"sub":"bob","sub":"eve","exp":`+exp+`}`, uint16(place), byte(0))
		f.Add(sameKeys[alg].header(), good, uint16(place+500*len(publicAlgorithms)), byte(1))
	}
	v := with(f, sameSet()).Verifier
	f.Fuzz(func(t *testing.T, header, payload string, place uint16, change byte) {
		signer := sameKeys[publicAlgorithms[int(place)%len(publicAlgorithms)]]
		tokens := []string{signer.seal(header, payload)}
		for _, alg := range []string{"HS256", "HS384", "HS512"} {
			sum, err := jwt.GetSigningMethod(alg).Sign(tokens[0][:strings.LastIndexByte(tokens[0], '.')], secret)
			failed(err)
			tokens = append(tokens, tokens[0][:strings.LastIndexByte(tokens[0], '.')+1]+base64url(sum))
		}
		for _, text := range tokens {
			token := []byte(text)
			token[int(place)%len(token)] ^= change
			agree(t, v, string(token))
		}
	})
}
