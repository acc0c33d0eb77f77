package auth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"seckill"
)

// Signer makes buyers' tokens that a Verifier with the same secret, issuer and
// audience accepts. It serves the exchange of login codes, the command line, the
// demo's login and tests. A shop with its own login signs its own tokens. Signer
// is safe for concurrent use.
type Signer struct {
	ring             *Ring
	issuer, audience string
}

// NewSigner makes a signer. Tokens omit an empty issuer or audience.
func NewSigner(secret []byte, issuer, audience string) (*Signer, error) {
	ring, err := NewRing(secret)
	if err != nil {
		return nil, fmt.Errorf("sign tokens: %w", err)
	}
	return &Signer{ring, issuer, audience}, nil
}

// Sign makes a buyer's token.
func (s *Signer) Sign(buyer string, expires time.Time) (string, error) {
	if err := seckill.CheckBuyer(buyer); err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	if expires.Unix() < 0 || expires.Unix() > maxSeconds {
		return "", fmt.Errorf("sign token: expiry %v is out of range", expires)
	}
	payload, err := json.Marshal(struct {
		Issuer   string `json:"iss,omitempty"`
		Audience string `json:"aud,omitempty"`
		Subject  string `json:"sub"`
		Expires  int64  `json:"exp"`
	}{s.issuer, s.audience, buyer, expires.Unix()})
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	signed := usualHeader + "." + base64.RawURLEncoding.EncodeToString(payload)
	signature := s.ring.Sign([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature[:]), nil
}
