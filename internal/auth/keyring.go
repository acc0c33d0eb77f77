// A Ring signs with one secret and accepts several, so that a secret
// can be rotated while what the old one signed is still about. Signatures are
// HMAC-SHA256. Nothing is allocated per signature: it stands on the hot path.

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
	// MaxSecrets bounds what one forged signature costs to refuse. A rotation
	// needs two; the rest is room for slow ones.
	MaxSecrets = 8
	// keptBuffer is the largest message whose buffer is kept for the next one.
	keptBuffer = 8 << 10
)

// ErrSecrets says that there is no usable set of secrets.
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

// Sign is the signature of message under the first secret.
func (r *Ring) Sign(message []byte) [Size]byte { return r.keys[0].sign(message) }

// SignBy is the signature of message under the secret that Find has named.
func (r *Ring) SignBy(secret int, message []byte) [Size]byte { return r.keys[secret].sign(message) }

// Verify reports whether any of the secrets signed message.
func (r *Ring) Verify(message, signature []byte) bool { return r.Find(message, signature) >= 0 }

// Find names the secret that signed message, for SignBy; -1 when none did. The
// comparison takes the same time wherever the first wrong byte stands.
func (r *Ring) Find(message, signature []byte) (secret int) {
	for i, k := range r.keys {
		sum := k.sign(message)
		if hmac.Equal(sum[:], signature) {
			return i
		}
	}
	return -1
}

// DeriveKey makes of a secret one for another use, so that what is signed for one
// use never passes for the other. The secret cannot be told from it.
func DeriveKey(secret []byte, use string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(use)) // a hash never returns an error
	return mac.Sum(nil)
}

// ringKey keeps HMAC states whose padded key has been hashed already, which saves
// two of the four or so compressions of a short message.
type ringKey struct {
	states sync.Pool // of *state
}

// ringState owns the bytes that pass through the hash.Hash interface. What passes
// an interface escapes to the heap, and copying a token of some hundred bytes
// is cheaper than making every caller allocate it.
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
