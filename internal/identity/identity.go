// Package identity says who the buyer is: the subject of the JSON Web Token
// in the Authorization header. Every purchase passes here before anything is
// decided, so HS256 is verified by hand over the raw bytes, without
// allocation. The reader is narrower than the standard allows and never wider:
// what it accepts, a full JWT library accepts with the same subject.
package identity

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"time"
	"unsafe"

	"seckill"
	"seckill/internal/keyring"
)

const (
	// MaxTokenBytes bounds the work that an unsigned token can cause.
	MaxTokenBytes = 4 << 10
	// Leeway is how far the clock of whoever signs may differ from ours.
	Leeway = 60 * time.Second

	leewaySeconds = int64(Leeway / time.Second)
	// maxSeconds is the end of the year 9999. Dates beyond it are mistakes,
	// such as milliseconds, and overflow in some libraries.
	maxSeconds = 253402300799
)

// The refusals. Each says something else in the log; on the wire they are all
// unauthenticated.
var (
	ErrMissing     = seckill.Errorf(seckill.CodeUnauthenticated, "no bearer token")
	ErrMalformed   = seckill.Errorf(seckill.CodeUnauthenticated, "token is malformed")
	ErrTooLong     = seckill.Errorf(seckill.CodeUnauthenticated, "token is longer than 4096 bytes")
	ErrAlgorithm   = seckill.Errorf(seckill.CodeUnauthenticated, "token is not signed with HS256")
	ErrSignature   = seckill.Errorf(seckill.CodeUnauthenticated, "token signature does not match")
	ErrClaims      = seckill.Errorf(seckill.CodeUnauthenticated, "token claims have a wrong type or a duplicate")
	ErrNoExpiry    = seckill.Errorf(seckill.CodeUnauthenticated, "token has no exp")
	ErrExpired     = seckill.Errorf(seckill.CodeUnauthenticated, "token has expired")
	ErrNotYetValid = seckill.Errorf(seckill.CodeUnauthenticated, "token is not valid yet")
	ErrBuyer       = seckill.Errorf(seckill.CodeUnauthenticated, "token sub is not a buyer id")
)

// Verifier reads tokens. It is safe for concurrent use.
type Verifier struct {
	ring *keyring.Ring
}

// New makes a verifier that accepts tokens signed with any of the secrets.
func New(secrets ...[]byte) (*Verifier, error) {
	ring, err := keyring.New(secrets...)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return &Verifier{ring: ring}, nil
}

// FromHeader appends to dst the buyer that the value of an Authorization
// header names.
func (v *Verifier) FromHeader(dst, authorization []byte, now time.Time) ([]byte, error) {
	token, ok := bearer(authorization)
	if !ok {
		return dst, ErrMissing
	}
	return v.AppendBuyer(dst, token, now)
}

// AppendBuyer verifies a token and appends its buyer to dst, which is returned
// as it was when the token is refused. With seckill.MaxBuyerBytes of room in
// dst nothing is allocated.
func (v *Verifier) AppendBuyer(dst, token []byte, now time.Time) ([]byte, error) {
	if len(token) > MaxTokenBytes {
		return dst, ErrTooLong
	}
	header, payload, signature, ok := split(token)
	if !ok {
		return dst, ErrMalformed
	}
	var room [maxDecoded]byte
	decoded, ok := decode(room[:], header)
	if !ok {
		return dst, ErrMalformed
	}
	// The algorithm comes first: nothing is computed for a token that asks for
	// another one, "none" above all.
	if err := checkHeader(decoded); err != nil {
		return dst, err
	}
	sum, ok := decode(room[:], signature)
	if !ok {
		return dst, ErrMalformed
	}
	if !v.ring.Verify(token[:len(header)+1+len(payload)], sum) {
		return dst, ErrSignature
	}
	if decoded, ok = decode(room[:], payload); !ok {
		return dst, ErrMalformed
	}
	return appendSubject(dst, decoded, now.Unix())
}

// maxDecoded is the most that a part of a token can decode to.
const maxDecoded = MaxTokenBytes / 4 * 3

// strict refuses a last character with bits that mean nothing, so that a
// token has one spelling.
var strict = base64.RawURLEncoding.Strict()

// decode reads base64url without padding. The decoder skips line breaks, so a
// text with one comes out shorter than its length says; only at a length that
// base64 never has, 4n+1, would it not.
func decode(room, text []byte) ([]byte, bool) {
	want := strict.DecodedLen(len(text))
	if len(text)%4 == 1 || want > len(room) {
		return nil, false
	}
	n, err := strict.Decode(room, text)
	return room[:n], err == nil && n == want
}

// split cuts a token at its two dots.
func split(token []byte) (header, payload, signature []byte, ok bool) {
	first := bytes.IndexByte(token, '.')
	if first < 0 {
		return nil, nil, nil, false
	}
	header, rest := token[:first], token[first+1:]
	second := bytes.IndexByte(rest, '.')
	if second < 0 {
		return nil, nil, nil, false
	}
	// A third dot is left in the signature, where it is no base64url.
	return header, rest[:second], rest[second+1:], true
}

// bearer is the token of an Authorization header: the scheme in any case,
// spaces, and one token.
func bearer(authorization []byte) ([]byte, bool) {
	const scheme = "bearer"
	if len(authorization) <= len(scheme) || authorization[len(scheme)] != ' ' {
		return nil, false
	}
	for i := range len(scheme) {
		if authorization[i]|0x20 != scheme[i] {
			return nil, false
		}
	}
	token := authorization[len(scheme):]
	for len(token) > 0 && token[0] == ' ' {
		token = token[1:]
	}
	return token, len(token) > 0
}

// checkBuyer lends the bytes to the domain's rule as a string, for the length
// of the call.
func checkBuyer(buyer []byte) error {
	if len(buyer) == 0 || seckill.CheckBuyer(unsafe.String(&buyer[0], len(buyer))) != nil {
		return ErrBuyer
	}
	return nil
}
