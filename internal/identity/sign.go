package identity

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/keyring"
)

// signHeader is {"alg":"HS256","typ":"JWT"}.
const signHeader = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"

// Sign makes a token for a buyer: for the command line, the demo's login and
// tests. A shop signs its own.
func Sign(secret []byte, buyer string, expires time.Time) (string, error) {
	if err := seckill.CheckBuyer(buyer); err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	if expires.Unix() < 0 || expires.Unix() > maxSeconds {
		return "", fmt.Errorf("sign token: expiry %v is out of range", expires)
	}
	ring, err := keyring.New(secret)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	payload, err := json.Marshal(struct {
		Subject string `json:"sub"`
		Expires int64  `json:"exp"`
	}{buyer, expires.Unix()})
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	signed := signHeader + "." + base64.RawURLEncoding.EncodeToString(payload)
	signature := ring.Sign([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature[:]), nil
}
