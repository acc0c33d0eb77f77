package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"math/big"
)

// algorithm is how a token may be signed; 0 is any other way, "none" above all.
type algorithm uint8

const (
	algHS256 algorithm = iota + 1
	algRS256
	algES256
	algEdDSA

	algorithms // how many there are, for arrays
)

func algorithmOf(name []byte) algorithm {
	switch string(name) {
	case "HS256":
		return algHS256
	case "RS256":
		return algRS256
	case "ES256":
		return algES256
	case "EdDSA":
		return algEdDSA
	}
	return 0
}

func (a algorithm) String() string {
	return [algorithms]string{"none", "HS256", "RS256", "ES256", "EdDSA"}[a]
}

// publicKey is one of the shop's keys. It serves one algorithm, its own, which
// its type decides and not the token.
type publicKey struct {
	alg algorithm
	kid string
	// material is what makes two keys the same, beside their names.
	material [sha256.Size]byte
	// generation tells this key from all that came before, also from one of
	// the same name. It is never 0.
	generation uint64
	public     crypto.PublicKey
}

// half is the length of each number of an ES256 signature (RFC 7518, 3.4).
const half = 32

// verify reports whether the key signed message.
func (k *publicKey) verify(message, signature []byte) bool {
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		sum := sha256.Sum256(message)
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	case *ecdsa.PublicKey:
		if len(signature) != 2*half {
			return false
		}
		sum := sha256.Sum256(message)
		r, s := new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:])
		return ecdsa.Verify(public, sum[:], r, s)
	case ed25519.PublicKey:
		return ed25519.Verify(public, message, signature)
	}
	return false
}
