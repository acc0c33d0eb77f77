// A Ring signs with one secret and accepts several. So a secret can be rotated
// while signatures of the old one are still in use. Signatures are HMAC-SHA256.
// Ring is on the hot path and allocates nothing per signature.

package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"hash"
	"sync"
)

const (
	// Size is the length of a signature.
	Size = sha256.Size
	// MaxSecrets bounds the cost of refusing a forged signature. A rotation needs
	// two; more allow slow rotations.
	MaxSecrets = 8
	// keptBuffer is the largest message whose buffer is reused.
	keptBuffer = 8 << 10
)

// ErrSecrets: the secrets cannot be used.
var ErrSecrets = errors.New("keyring: needs 1 to 8 secrets, none of them empty")

// Ring is a set of secrets. It is safe for concurrent use.
type Ring struct {
	keys []*ringKey
}

// NewRing makes a ring that signs with the first secret and accepts any of them.
func NewRing(secrets ...[]byte) (*Ring, error) {
	if len(secrets) == 0 || len(secrets) > MaxSecrets {
		return nil, ErrSecrets
	}
	ring := &Ring{}
	for _, secret := range secrets {
		if len(secret) == 0 {
			return nil, ErrSecrets
		}
		ring.keys = append(ring.keys, newKey(secret))
	}
	return ring, nil
}

// Sign signs message with the first secret.
func (r *Ring) Sign(message []byte) [Size]byte { return r.keys[0].sign(message) }

// SignBy signs message with the secret at an index that Find returned.
func (r *Ring) SignBy(secret int, message []byte) [Size]byte { return r.keys[secret].sign(message) }

// Verify reports whether any of the secrets signed message.
func (r *Ring) Verify(message, signature []byte) bool { return r.Find(message, signature) >= 0 }

// Find returns the index of the secret that signed message, or -1. The time of
// the comparison does not depend on the position of the first wrong byte.
func (r *Ring) Find(message, signature []byte) (secret int) {
	for i, k := range r.keys {
		sum := k.sign(message)
		if hmac.Equal(sum[:], signature) {
			return i
		}
	}
	return -1
}

// DeriveKey derives a key for one use, so that a signature made for one use is
// never accepted for another. The secret cannot be computed from the key.
func DeriveKey(secret []byte, use string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(use)) // a hash never returns an error
	return mac.Sum(nil)
}

// ringKey reuses HMAC states that have already hashed the padded key. This saves
// two of about four compressions for a short message.
type ringKey struct {
	states sync.Pool // of *state
}

// ringState owns the bytes that pass through the hash.Hash interface. Such bytes
// escape to the heap. Copying a token of some hundred bytes is cheaper than an
// allocation in every caller.
type ringState struct {
	mac     hash.Hash
	message []byte
	sum     [Size]byte
}

func newKey(secret []byte) *ringKey {
	secret = append([]byte(nil), secret...) // the caller may clear its own
	k := &ringKey{}
	k.states.New = func() any { return &ringState{mac: hmac.New(sha256.New, secret)} }
	return k
}

func (k *ringKey) sign(message []byte) [Size]byte {
	s := k.states.Get().(*ringState)
	s.message = append(s.message[:0], message...)
	s.mac.Reset()
	s.mac.Write(s.message) // a hash never returns an error
	s.mac.Sum(s.sum[:0])
	sum := s.sum
	if cap(s.message) > keptBuffer {
		s.message = nil
	}
	k.states.Put(s)
	return sum
}
