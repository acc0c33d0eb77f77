package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json" // names are case-sensitive, and a duplicate is an error
)

const (
	// maxKeys bounds a set. Issuers publish two or three keys at a time.
	maxKeys = 64
	// Shorter RSA keys are not secure; longer ones are needlessly slow.
	minRSABits, maxRSABits = 2048, 8192
	// maxExponentText is the base64url length of the longest RSA exponent that
	// crypto/rsa accepts (32 bits).
	maxExponentText = 6
)

// publicKey is one of the shop's keys. The key decides which algorithms it may
// be used with; the token does not.
type publicKey struct {
	algs []algorithm
	kid  string
	// material is the RFC 7638 thumbprint. Equal keys have equal thumbprints,
	// also under different names.
	material [sha256.Size]byte
	// fingerprint is the beginning of material. Verified tokens are remembered
	// with it. It is never 0.
	fingerprint uint64
	public      crypto.PublicKey
}

// errOtherUse: the key is not for signatures. This is normal.
var errOtherUse = errors.New("is not for verifying signatures")

// ignored is an entry of a set that is not used.
type ignored struct {
	kid    string
	reason error
}

// parseSet reads a set. It skips entries that cannot be used.
func parseSet(body []byte) (keys []*publicKey, unused []ignored, err error) {
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, nil, fmt.Errorf("read the set of keys: %w", err)
	}
	switch {
	case set.Keys == nil:
		return nil, nil, errors.New(`read the set of keys: it has no "keys"`)
	case len(*set.Keys) > maxKeys:
		return nil, nil, fmt.Errorf("read the set of keys: it has %d, more than %d", len(*set.Keys), maxKeys)
	}
	for _, raw := range *set.Keys {
		var key publicKey
		err := key.read(raw)
		if err == nil && slices.ContainsFunc(keys, key.repeats) {
			err = errors.New("has the name of another key")
		}
		if err != nil {
			unused = append(unused, ignored{key.kid, err})
			continue
		}
		keys = append(keys, &key)
	}
	return keys, unused, nil
}

// repeats reports whether a token cannot tell two keys apart. Keys without a
// name may differ: a token that names no key is then refused.
func (k *publicKey) repeats(other *publicKey) bool {
	return slices.ContainsFunc(k.algs, other.serves) && k.kid == other.kid && (k.kid != "" || k.material == other.material)
}

// serves reports whether the key may be used with an algorithm.
func (k *publicKey) serves(alg algorithm) bool { return slices.Contains(k.algs, alg) }

// read fills the key from an entry of a set. It binds the key to the algorithms
// of its type, or to the one that the entry names.
func (k *publicKey) read(raw []byte) error {
	// The library drops some of these members, cuts an exponent to 64 bits, and
	// tests the primes of a private key of any length. So read them here first.
	var more struct {
		Kid string           `json:"kid"`
		Ops []string         `json:"key_ops"`
		E   string           `json:"e"`
		D   *json.RawMessage `json:"d"`
	}
	if err := json.Unmarshal(raw, &more); err != nil {
		return err
	}
	k.kid = more.Kid
	switch {
	case len(more.Ops) > 0 && !slices.Contains(more.Ops, "verify"):
		return errOtherUse
	case more.D != nil:
		return errors.New("is published with its private half: anybody can sign with it")
	case len(more.E) > maxExponentText:
		return fmt.Errorf("RSA exponent %.20s is longer than 32 bits", more.E)
	}
	var entry jose.JSONWebKey
	if err := entry.UnmarshalJSON(raw); err != nil {
		return err
	}
	if entry.Use != "" && entry.Use != "sig" {
		return errOtherUse
	}
	if err := k.bind(entry.Key); err != nil {
		return err
	}
	if entry.Algorithm != "" {
		alg := algorithmOf([]byte(entry.Algorithm))
		if !k.serves(alg) {
			return fmt.Errorf("alg %q is not accepted; keys of this type serve %v", entry.Algorithm, k.algs)
		}
		k.algs = []algorithm{alg}
	}
	sum, err := entry.Thumbprint(crypto.SHA256)
	copy(k.material[:], sum)
	k.fingerprint = max(binary.BigEndian.Uint64(k.material[:]), 1)
	return err
}

// bind accepts a key that is strong enough, and sets the algorithms of its type
// and curve. None of them is an HMAC: a public key is never used as a secret.
func (k *publicKey) bind(public crypto.PublicKey) error {
	k.public = public
	switch public := public.(type) {
	case *rsa.PublicKey:
		k.algs = []algorithm{algRS256, algRS384, algRS512, algPS256, algPS384, algPS512}
		if bits := public.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return fmt.Errorf("RSA keys of %d bits are not accepted; %d to %d are", bits, minRSABits, maxRSABits)
		}
		if public.E < 3 || public.E%2 == 0 || public.E > 1<<31-1 {
			return fmt.Errorf("RSA exponent %d is not accepted", public.E)
		}
	case *ecdsa.PublicKey:
		switch public.Curve {
		case elliptic.P256():
			k.algs = []algorithm{algES256}
		case elliptic.P384():
			k.algs = []algorithm{algES384}
		case elliptic.P521():
			k.algs = []algorithm{algES512}
		default:
			return fmt.Errorf("curve %s is not accepted; P-256, P-384 and P-521 are", public.Params().Name)
		}
	case ed25519.PublicKey:
		k.algs = []algorithm{algEdDSA}
	default:
		return errors.New("is a secret, not a public key")
	}
	return nil
}
