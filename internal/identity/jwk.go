package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// JSON Web Keys (RFC 7517, 7518, 8037) are read with the standard library: the
// three kinds that are accepted take a few lines each, and what general
// libraries let through would have to be checked again (points off the curve,
// exponents cut to 64 bits), after one odd entry had cost the whole set.

const (
	// maxKeys bounds a set. Issuers publish two or three keys at a time.
	maxKeys = 64
	// Shorter RSA keys have been broken; longer ones are slow to no purpose.
	minRSABits, maxRSABits = 2048, 8192
)

// jwk is one entry of a set, of the members that count.
type jwk struct {
	Kty string   `json:"kty"`
	Kid string   `json:"kid"`
	Alg string   `json:"alg"`
	Use string   `json:"use"`
	Ops []string `json:"key_ops"`
	Crv string   `json:"crv"`
	N   string   `json:"n"`
	E   string   `json:"e"`
	X   string   `json:"x"`
	Y   string   `json:"y"`
	// D is there when the private half was published by mistake.
	D string `json:"d"`
}

// errOtherUse says that a key is for something else, which is nothing unusual.
var errOtherUse = errors.New("is not for verifying signatures")

// ignored is an entry of a set that no token will be verified with.
type ignored struct {
	kid    string
	reason error
}

// parseSet reads a set. An entry that cannot be used does not cost the others.
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
		var j jwk
		key, err := (*publicKey)(nil), json.Unmarshal(raw, &j)
		if err == nil {
			key, err = j.key()
		}
		if err == nil && slices.ContainsFunc(keys, key.repeats) {
			err = errors.New("has the name of another key")
		}
		if err != nil {
			unused = append(unused, ignored{j.Kid, err})
			continue
		}
		keys = append(keys, key)
	}
	return keys, unused, nil
}

// repeats reports whether tokens could not say which of two keys they mean. Keys
// without a name may differ: a token that names none is then refused.
func (k *publicKey) repeats(other *publicKey) bool {
	return k.alg == other.alg && k.kid == other.kid && (k.kid != "" || k.material == other.material)
}

// key is the entry as a key bound to the one algorithm of its type.
func (j *jwk) key() (*publicKey, error) {
	key := &publicKey{kid: j.Kid}
	var err error
	switch {
	case j.Use != "" && j.Use != "sig", len(j.Ops) > 0 && !slices.Contains(j.Ops, "verify"):
		return nil, errOtherUse
	case j.D != "":
		return nil, errors.New("is published with its private half: anybody can sign with it")
	case j.Kty == "RSA":
		key.alg = algRS256
		key.public, err = j.rsa()
	case j.Kty == "EC":
		key.alg = algES256
		key.public, err = j.ec()
	case j.Kty == "OKP":
		key.alg = algEdDSA
		key.public, err = j.ed()
	default:
		return nil, fmt.Errorf("kty %q is not accepted", j.Kty)
	}
	if err == nil && j.Alg != "" && j.Alg != key.alg.String() {
		err = fmt.Errorf("alg %q is not accepted; keys of this type serve %s", j.Alg, key.alg)
	}
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKIXPublicKey(key.public)
	if err != nil {
		return nil, err
	}
	key.material = sha256.Sum256(encoded)
	return key, nil
}

func (j *jwk) rsa() (crypto.PublicKey, error) {
	n, err := number("n", j.N, maxRSABits/8)
	if err != nil {
		return nil, err
	}
	e, err := number("e", j.E, 4)
	if err != nil {
		return nil, err
	}
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(n)}
	if bits := public.N.BitLen(); bits < minRSABits {
		return nil, fmt.Errorf("RSA keys of %d bits are not accepted; %d is the least", bits, minRSABits)
	}
	exponent := new(big.Int).SetBytes(e).Int64()
	if exponent < 3 || exponent%2 == 0 || exponent > 1<<31-1 {
		return nil, fmt.Errorf("RSA exponent %d is not accepted", exponent)
	}
	public.E = int(exponent)
	return public, nil
}

func (j *jwk) ec() (crypto.PublicKey, error) {
	if j.Crv != "P-256" {
		return nil, fmt.Errorf("curve %q is not accepted; only P-256 is", j.Crv)
	}
	x, err := number("x", j.X, half)
	if err != nil {
		return nil, err
	}
	y, err := number("y", j.Y, half)
	if err != nil {
		return nil, err
	}
	const uncompressed = 4 // SEC 1, 2.3.3
	point := [1 + 2*half]byte{uncompressed}
	copy(point[1+half-len(x):], x) // some issuers leave out leading zeros
	copy(point[1+2*half-len(y):], y)
	return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point[:])
}

func (j *jwk) ed() (crypto.PublicKey, error) {
	if j.Crv != "Ed25519" {
		return nil, fmt.Errorf("curve %q is not accepted; only Ed25519 is", j.Crv)
	}
	x, err := number("x", j.X, ed25519.PublicKeySize)
	if err != nil {
		return nil, err
	}
	if len(x) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("x has %d bytes, not %d", len(x), ed25519.PublicKeySize)
	}
	return ed25519.PublicKey(x), nil
}

// number decodes a member of a key; some issuers pad what should not be.
func number(name, text string, most int) ([]byte, error) {
	value, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(value) == 0 {
		return nil, fmt.Errorf("%s is missing, or not base64url", name)
	}
	if len(value) > most {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", name, len(value), most)
	}
	return value, nil
}
