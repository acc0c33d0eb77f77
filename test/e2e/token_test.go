package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"testing"

	"seckill/test/engine"
)

// sign makes a token of any header and claims, valid or not.
func sign(t *testing.T, secret string, header, claims any) string {
	t.Helper()
	part := func(v any) string {
		text, isText := v.(string)
		if !isText {
			encoded, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			text = string(encoded)
		}
		return base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	message := part(header) + "." + part(claims)
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte(message))
	return message + "." + base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

var hs256 = map[string]string{"alg": "HS256", "typ": "JWT"}

// signToken signs claims as the shop does.
func signToken(t *testing.T, claims any) string {
	t.Helper()
	return sign(t, engine.JWTSecret, hs256, claims)
}
