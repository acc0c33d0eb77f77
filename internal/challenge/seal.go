package challenge

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/auth"
)

// sealed is the content of a challenge's id.
type sealed struct {
	kind    Kind
	id      [16]byte
	expires time.Time
	bits    int      // of a proof of work
	tag     [16]byte // of the answer to a picture
	// secret is the index of the secret that sealed it, from Ring.Find.
	secret int
}

// Sealed bytes, before base64url without padding:
//
//	version (1) · kind (1) · id (16) · expiry in Unix milliseconds (8) ·
//	difficulty (1) · tag of the answer (16) · signature (32)
//
// The signature covers the first 43 bytes, the product id (4) and the buyer. The
// last two are not part of the text: the request has them. All fields but the last
// have a fixed length, so two messages are never equal by accident.
const (
	version   = 1
	bodyLen   = 1 + 1 + 16 + 8 + 1 + 16
	sealedLen = bodyLen + auth.Size
	textLen   = sealedLen / 3 * 4 // 75 bytes: a multiple of 3, hence one spelling
)

// First bytes of other messages under the same secrets. Versions never reach them.
const (
	messageAnswer  = 'A'
	messageTokenID = 'T'
)

// kindBytes encode the kinds in sealed bytes.
var kindBytes = map[Kind]byte{None: 'n', Pow: 'p', Image: 'i', Shop: 's'}

func kindOf(b byte) Kind {
	for kind, is := range kindBytes {
		if is == b {
			return kind
		}
	}
	return ""
}

// sealer seals and opens challenges.
type sealer struct {
	ring *auth.Ring
}

// newSealer derives its own secrets from those of purchase tokens.
func newSealer(secrets [][]byte) (*sealer, error) {
	derived := make([][]byte, len(secrets))
	for i, secret := range secrets {
		derived[i] = auth.DeriveKey(secret, "seckill challenge")
	}
	ring, err := auth.NewRing(derived...)
	if err != nil {
		return nil, fmt.Errorf("challenge: %w", err)
	}
	return &sealer{ring}, nil
}

// seal signs a challenge. A new one uses the first secret.
func (s *sealer) seal(c *sealed, buyer string, product uint32) string {
	raw := make([]byte, 0, sealedLen)
	raw = append(raw, version, kindBytes[c.kind])
	raw = append(raw, c.id[:]...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(c.expires.UnixMilli()))
	raw = append(raw, byte(c.bits))
	raw = append(raw, c.tag[:]...)
	signature := s.ring.SignBy(c.secret, message(raw, buyer, product))
	return base64.RawURLEncoding.EncodeToString(append(raw, signature[:]...))
}

// open verifies a text that seal made.
func (s *sealer) open(text, buyer string, product uint32, now time.Time) (*sealed, error) {
	if len(text) != textLen || len(buyer) > seckill.MaxBuyerBytes {
		return nil, ErrMalformed
	}
	// The decoder skips line breaks, so a text with one decodes to fewer bytes.
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != sealedLen || raw[0] != version {
		return nil, ErrMalformed
	}
	body, signature := raw[:bodyLen], raw[bodyLen:]
	c := &sealed{kind: kindOf(body[1]), id: [16]byte(body[2:]), bits: int(body[26]), tag: [16]byte(body[27:])}
	c.expires = time.UnixMilli(int64(binary.BigEndian.Uint64(body[18:]))).UTC()
	if c.secret = s.ring.Find(message(body, buyer, product), signature); c.secret < 0 {
		return nil, ErrForeign
	}
	if !now.Before(c.expires) {
		return nil, ErrExpired
	}
	return c, nil
}

func message(body []byte, buyer string, product uint32) []byte {
	m := make([]byte, 0, bodyLen+4+seckill.MaxBuyerBytes)
	m = append(m, body...)
	m = binary.BigEndian.AppendUint32(m, product)
	return append(m, buyer...)
}

// answerTag is a keyed hash of the right answer. Without the secret, guesses cannot
// be tested against it.
func (s *sealer) answerTag(c *sealed, answer string) [16]byte {
	sum := s.ring.SignBy(c.secret, append(append([]byte{messageAnswer}, c.id[:]...), answer...))
	return [16]byte(sum[:])
}

// matches reports whether the answer has the challenge's tag, in constant time.
func (s *sealer) matches(c *sealed, answer string) bool {
	tag := s.answerTag(c, answer)
	return hmac.Equal(tag[:], c.tag[:])
}

// tokenID derives the id of the challenge's only token. It is the same on every
// instance that has the secret of the seal.
func (s *sealer) tokenID(c *sealed) auth.TokenID {
	sum := s.ring.SignBy(c.secret, append([]byte{messageTokenID}, c.id[:]...))
	return auth.TokenID(sum[:16])
}
