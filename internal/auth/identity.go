// A Verifier says who the buyer is: the subject of the JSON Web Token
// in the Authorization header. Every purchase passes here before anything is
// decided, so tokens are read by hand over the raw bytes, and HS256 is verified
// each time without allocation. Libraries do the rest: go-jose reads the shop's
// public keys, and golang-jwt verifies every other signature. A signature by a
// public key (RS*, PS*, ES*, EdDSA) is verified once per token and instance.
//
// The reader is narrower than the standard allows and never wider: what it
// accepts, golang-jwt accepts with the same claims. FuzzAgainstLibrary compares
// the two.

package auth

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"seckill"
)

const (
	// MaxTokenBytes bounds the work that an unsigned token can cause.
	MaxTokenBytes = 4 << 10
	// DefaultLeeway is how far the clock of the shop's login may differ from the
	// instance's, unless it is configured.
	DefaultLeeway = 60 * time.Second

	// maxSeconds is the end of the year 9999. Dates beyond it are mistakes,
	// such as milliseconds, and overflow in some libraries.
	maxSeconds = 253402300799
)

// The refusals. Each says something else in the log; on the wire they are all
// unauthenticated, except the one that says "not known yet".
var (
	ErrMissing   = seckill.Errorf(seckill.CodeUnauthenticated, "no bearer token")
	ErrMalformed = seckill.Errorf(seckill.CodeUnauthenticated, "token is malformed")
	ErrTooLong   = seckill.Errorf(seckill.CodeUnauthenticated, "token is longer than 4096 bytes")
	ErrAlgorithm = seckill.Errorf(seckill.CodeUnauthenticated, "token is signed in a way that is not accepted")
	ErrSignature = seckill.Errorf(seckill.CodeUnauthenticated, "token signature does not match")
	// ErrForged is ErrSignature where a public key had to find out, which takes
	// many times as long.
	ErrForged      = seckill.Errorf(seckill.CodeUnauthenticated, "token signature does not match the key that it names")
	ErrClaims      = seckill.Errorf(seckill.CodeUnauthenticated, "token claims have a wrong type or a duplicate")
	ErrNoExpiry    = seckill.Errorf(seckill.CodeUnauthenticated, "token has no exp")
	ErrExpired     = seckill.Errorf(seckill.CodeUnauthenticated, "token has expired")
	ErrNotYetValid = seckill.Errorf(seckill.CodeUnauthenticated, "token is not valid yet")
	ErrIssuer      = seckill.Errorf(seckill.CodeUnauthenticated, "token iss is not the issuer that is trusted here")
	ErrAudience    = seckill.Errorf(seckill.CodeUnauthenticated, "token aud is somebody else")
	ErrBuyer       = seckill.Errorf(seckill.CodeUnauthenticated, "token sub is not a buyer id")
	ErrLoginCode   = seckill.Errorf(seckill.CodeUnauthenticated, "a login code is not a buyer's token")

	ErrNotLoginCode = seckill.Errorf(seckill.CodeUnauthenticated, "token is not a login code")
	ErrCodeID       = seckill.Errorf(seckill.CodeUnauthenticated, "login code has no jti of 1 to 64 bytes")
	ErrCodeLife     = seckill.Errorf(seckill.CodeUnauthenticated, "login code lives longer than two minutes")

	ErrKey        = seckill.Errorf(seckill.CodeUnauthenticated, "token names a key that is not in the shop's set")
	ErrKeyUnnamed = seckill.Errorf(seckill.CodeUnauthenticated, "token names no key, and several would fit")
	// ErrKeysDue says that the key may be in a set that is being fetched, or
	// that cannot be fetched at present: the buyer is not told "no".
	ErrKeysDue = &seckill.Error{Code: seckill.CodeBusy, Detail: "the keys of buyers' tokens are being fetched", RetryAfter: 2}
)

// ErrSpared says that a token was not looked at, as Look.Spare asked.
var ErrSpared = &seckill.Error{Code: seckill.CodeRateLimited, Detail: "the token's signature was not checked", RetryAfter: 1}

// Look says how far to go for a token.
type Look struct {
	// Now is the instance's own clock. The ledger's would do for sale windows,
	// but a Redis whose clock is set back would refuse every new token by its
	// iat.
	Now time.Time
	// Spare has no signature checked with a public key. What was verified before,
	// and what a secret has signed, is read as ever; the rest is ErrSpared.
	Spare bool
	// DatesLast has the signature checked before the dates, which otherwise save
	// it: ErrExpired and ErrNotYetValid are then proofs of who asks.
	DatesLast bool
}

// VerifierOptions are what a Verifier trusts. It needs secrets, keys, or both.
type VerifierOptions struct {
	// Secrets are those of HS256, HS384 and HS512, any of which counts; without
	// them these algorithms are refused.
	Secrets [][]byte
	// Keys are the shop's public keys; without them only secrets count.
	Keys *Keys
	// Issuer and Audience must be the token's; empty ones are not asked for. The
	// audience is not LoginAudience.
	Issuer, Audience string
	// Leeway is how far the clock of the shop's login may differ from the
	// instance's. Dates are whole seconds, so a fraction is cut off.
	Leeway time.Duration
}

// Verifier reads tokens. It is safe for concurrent use.
type Verifier struct {
	ring             *Ring     // of HS256; nil: tokens by a secret are refused
	secrets          []any     // the same, each a []byte, for HS384 and HS512
	keys             *Keys     // nil: tokens by a public key are refused
	seen             *verified // what keys have signed; nil without them
	issuer, audience string
	leeway           int64 // seconds
}

// OpenVerifier makes a verifier.
func OpenVerifier(opt VerifierOptions) (*Verifier, error) {
	v := &Verifier{keys: opt.Keys, issuer: opt.Issuer, audience: opt.Audience, leeway: int64(opt.Leeway / time.Second)}
	if len(opt.Secrets) == 0 && opt.Keys == nil {
		return nil, errors.New("identity: needs a secret or keys to verify tokens with")
	}
	if len(opt.Secrets) > 0 {
		ring, err := NewRing(opt.Secrets...)
		if err != nil {
			return nil, fmt.Errorf("identity: %w", err)
		}
		v.ring = ring
		for _, secret := range opt.Secrets {
			v.secrets = append(v.secrets, bytes.Clone(secret))
		}
	}
	if opt.Keys != nil {
		v.seen = newVerified(verifiedBuckets)
	}
	return v, nil
}

// FromHeader appends to dst the buyer that the value of an Authorization
// header names.
func (v *Verifier) FromHeader(dst, authorization []byte, look Look) ([]byte, error) {
	token, ok := bearer(authorization)
	if !ok {
		return dst, ErrMissing
	}
	return v.AppendBuyer(dst, token, look)
}

// AppendBuyer verifies a token and appends its buyer to dst, which is returned
// as it was when the token is refused. With seckill.MaxBuyerBytes of room in
// dst nothing is allocated, save for the first sight of a token that a public
// key has signed.
func (v *Verifier) AppendBuyer(dst, token []byte, look Look) ([]byte, error) {
	if len(token) <= usualTokenBytes {
		var room [usualDecoded]byte
		return v.appendBuyer(dst, room[:], token, look)
	}
	var room [maxDecoded]byte
	return v.appendBuyer(dst, room[:], token, look)
}

func (v *Verifier) appendBuyer(dst, room, token []byte, look Look) ([]byte, error) {
	t, err := take(room, token)
	if err != nil {
		return dst, err
	}
	if !t.alg.bySecret() {
		return v.appendByKey(dst, room, token, &t, look)
	}
	if err := v.checkSecret(room, &t); err != nil {
		return dst, err
	}
	c, err := v.readBuyer(room, t.payload)
	if err == nil {
		err = v.checkDates(c.exp, c.notBefore(), look.Now.Unix())
	}
	if err != nil {
		return dst, err
	}
	return append(dst, c.subject...), nil
}

// parts are a token cut at its dots, and what its header says.
type parts struct {
	signed             []byte // header, dot and payload: what the signature is of
	payload, signature []byte // still base64url
	alg                algorithm
	kid                []byte // lies in the room that the header was decoded to
}

// take cuts a token and reads its header. The algorithm comes first: nothing is
// computed for a token that asks for another one, "none" above all.
func take(room, token []byte) (parts, error) {
	if len(token) > MaxTokenBytes {
		return parts{}, ErrTooLong
	}
	header, payload, signature, ok := split(token)
	if !ok {
		return parts{}, ErrMalformed
	}
	if string(header) == usualHeader {
		return parts{token[:len(header)+1+len(payload)], payload, signature, algHS256, nil}, nil
	}
	decoded, ok := decode(room, header)
	if !ok {
		return parts{}, ErrMalformed
	}
	alg, kid, err := readHeader(decoded)
	if err != nil {
		return parts{}, err
	}
	return parts{token[:len(header)+1+len(payload)], payload, signature, alg, kid}, nil
}

// checkSignature verifies in the way that the token asks for.
func (v *Verifier) checkSignature(room []byte, t *parts, spare bool) error {
	if t.alg.bySecret() {
		return v.checkSecret(room, t)
	}
	key, err := v.findKey(t)
	switch {
	case err != nil:
		return err
	case spare:
		return ErrSpared
	}
	return v.checkKey(key, t)
}

// checkSecret verifies HS256, HS384 and HS512.
func (v *Verifier) checkSecret(room []byte, t *parts) error {
	switch {
	case v.ring == nil:
		return ErrAlgorithm
	case t.alg != algHS256:
		return t.verify(v.secrets...)
	}
	sum, ok := decode(room, t.signature)
	if !ok {
		return ErrMalformed
	}
	if !v.ring.Verify(t.signed, sum) {
		return ErrSignature
	}
	return nil
}

// readPayload reads claims that the trusted issuer made.
func (v *Verifier) readPayload(room, payload []byte) (claims, error) {
	decoded, ok := decode(room, payload)
	if !ok {
		return claims{}, ErrMalformed
	}
	c, err := readClaims(decoded, v.audience)
	if err == nil && v.issuer != "" && string(c.issuer) != v.issuer {
		err = ErrIssuer
	}
	return c, err
}

// readBuyer reads claims that make their bearer a buyer, while their dates last.
func (v *Verifier) readBuyer(room, payload []byte) (claims, error) {
	c, err := v.readPayload(room, payload)
	if err != nil {
		return c, err
	}
	switch {
	case c.login:
		return c, ErrLoginCode
	case v.audience != "" && !c.addressed:
		return c, ErrAudience
	}
	return c, checkBuyer(c.subject)
}

const (
	// maxDecoded is the most that a part of a token can decode to.
	maxDecoded = MaxTokenBytes / 4 * 3
	// usualTokenBytes is more than most tokens have. Room for as many costs a
	// tenth to clear.
	usualTokenBytes = 640
	usualDecoded    = usualTokenBytes / 4 * 3
	// usualHeader is {"alg":"HS256","typ":"JWT"}, as nearly every signer of HS256
	// writes it: it need not be read each time.
	usualHeader = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
)

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
