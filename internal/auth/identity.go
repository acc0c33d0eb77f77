// A Verifier authenticates the buyer: the subject of the JSON Web Token in the
// Authorization header. Every purchase passes here first. So tokens are parsed by
// hand over the raw bytes, and HS256 is checked each time without allocation.
// Libraries do the rest: go-jose reads the shop's public keys, and golang-jwt
// checks all other signatures. A signature by a public key (RS*, PS*, ES*, EdDSA)
// is checked once per token and instance.
//
// The parser is stricter than the standard, never more permissive: golang-jwt
// accepts every token that it accepts, with the same claims. FuzzAgainstLibrary
// compares the two.

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
	// MaxTokenBytes bounds the work that a forged token can cause.
	MaxTokenBytes = 4 << 10
	// DefaultLeeway is the default of VerifierOptions.Leeway.
	DefaultLeeway = 60 * time.Second

	// maxSeconds is the end of the year 9999. Later dates are mistakes, such as
	// milliseconds, and overflow in some libraries.
	maxSeconds = 253402300799
)

// The log shows which of these errors it was. Clients get `unauthenticated` for
// all of them, except ErrKeysDue.
var (
	ErrMissing   = seckill.Errorf(seckill.CodeUnauthenticated, "no bearer token")
	ErrMalformed = seckill.Errorf(seckill.CodeUnauthenticated, "token is malformed")
	ErrTooLong   = seckill.Errorf(seckill.CodeUnauthenticated, "token is longer than 4096 bytes")
	ErrAlgorithm = seckill.Errorf(seckill.CodeUnauthenticated, "token is signed in a way that is not accepted")
	ErrSignature = seckill.Errorf(seckill.CodeUnauthenticated, "token signature does not match")
	// ErrForged is ErrSignature for a public key. It has its own value because
	// this check takes many times as long.
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
	// ErrKeysDue: the key may be in a set that is being fetched, or that cannot
	// be fetched now. So the answer is `busy`, not "no".
	ErrKeysDue = &seckill.Error{Code: seckill.CodeBusy, Detail: "the keys of buyers' tokens are being fetched", RetryAfter: 2}
)

// ErrSpared: Look.Spare was set, and the token needed a signature check.
var ErrSpared = &seckill.Error{Code: seckill.CodeRateLimited, Detail: "the token's signature was not checked", RetryAfter: 1}

// Look says how thoroughly a token is checked.
type Look struct {
	// Now is the instance's own clock. The ledger's clock is not used: if the
	// clock of Redis is set back, every new token would be refused by its iat.
	Now time.Time
	// Spare avoids signature checks with public keys. Tokens that were verified
	// before and tokens signed with a secret are accepted as usual. All others
	// get ErrSpared.
	Spare bool
	// DatesLast checks the signature before the dates. ErrExpired and
	// ErrNotYetValid then prove that the token is genuine. Without it, bad dates
	// save the signature check.
	DatesLast bool
}

// VerifierOptions lists what a Verifier trusts. It needs secrets, keys, or both.
type VerifierOptions struct {
	// Secrets are for HS256, HS384 and HS512; any of them may have signed.
	// Without secrets these algorithms are refused.
	Secrets [][]byte
	// Keys are the shop's public keys. Without them only secrets are accepted.
	Keys *Keys
	// Issuer and Audience must equal those of the token; empty ones are not
	// checked. Audience must not be LoginAudience.
	Issuer, Audience string
	// Leeway is how far the clock of the shop's login may differ from the
	// instance's. Dates are whole seconds, so a fraction is dropped.
	Leeway time.Duration
}

// Verifier reads tokens. It is safe for concurrent use.
type Verifier struct {
	ring             *Ring     // for HS256; nil: tokens signed with a secret are refused
	secrets          []any     // the same secrets, each a []byte, for HS384 and HS512
	keys             *Keys     // nil: tokens signed with a public key are refused
	seen             *verified // verified tokens of public keys; nil without keys
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

// FromHeader reads the buyer from an Authorization header and appends it to dst.
func (v *Verifier) FromHeader(dst, authorization []byte, look Look) ([]byte, error) {
	token, ok := bearer(authorization)
	if !ok {
		return dst, ErrMissing
	}
	return v.AppendBuyer(dst, token, look)
}

// AppendBuyer verifies a token and appends its buyer to dst. If it refuses the
// token, it returns dst unchanged. If dst has room for seckill.MaxBuyerBytes, it
// allocates only for a token that a public key has signed and that is new here.
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

// parts are a token cut at its dots, and the fields of its header.
type parts struct {
	signed             []byte // header, dot and payload
	payload, signature []byte // still base64url
	alg                algorithm
	kid                []byte // points into the buffer of the decoded header
}

// take cuts a token and reads its header. It refuses other algorithms, "none"
// above all, before anything is computed.
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

// checkSignature checks the signature by the token's algorithm.
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

// readPayload reads the claims and checks the issuer.
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

// readBuyer reads the claims of a buyer's token. It does not check the dates.
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
	// maxDecoded is the largest decoded size of a part.
	maxDecoded = MaxTokenBytes / 4 * 3
	// usualTokenBytes is longer than most tokens. A buffer of this size takes a
	// tenth of the time to clear.
	usualTokenBytes = 640
	usualDecoded    = usualTokenBytes / 4 * 3
	// usualHeader is {"alg":"HS256","typ":"JWT"} as nearly every HS256 signer
	// writes it. It is recognized without parsing.
	usualHeader = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
)

// strict refuses unused bits in the last character, so that a token has one
// spelling.
var strict = base64.RawURLEncoding.Strict()

// decode reads base64url without padding. The decoder skips line breaks, so a
// text with one decodes to fewer bytes than its length says. The length 4n+1 is
// never valid base64 and would hide a line break.
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
	// A third dot stays in the signature, where base64url refuses it.
	return header, rest[:second], rest[second+1:], true
}

// bearer returns the token of an Authorization header: the scheme in any case,
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

// checkBuyer applies seckill.CheckBuyer without copying the bytes.
func checkBuyer(buyer []byte) error {
	if len(buyer) == 0 || seckill.CheckBuyer(unsafe.String(&buyer[0], len(buyer))) != nil {
		return ErrBuyer
	}
	return nil
}
