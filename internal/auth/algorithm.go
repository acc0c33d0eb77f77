package auth

import (
	"sync"
	"unsafe"

	"github.com/golang-jwt/jwt/v5"
)

// algorithm is an accepted `alg`. The value 0 stands for every other name,
// "none" included.
type algorithm uint8

const (
	algHS256 algorithm = iota + 1
	algHS384
	algHS512
	algRS256
	algRS384
	algRS512
	algPS256
	algPS384
	algPS512
	algES256
	algES384
	algES512
	algEdDSA

	algorithms // the number of entries, for arrays
)

// methods verify signatures. A method refuses a key of another type, but accepts
// an elliptic curve of another algorithm. HS256 has its own code, because the hot
// path must not allocate.
var methods = [algorithms]jwt.SigningMethod{
	algHS256: jwt.SigningMethodHS256,
	algHS384: jwt.SigningMethodHS384,
	algHS512: jwt.SigningMethodHS512,
	algRS256: jwt.SigningMethodRS256,
	algRS384: jwt.SigningMethodRS384,
	algRS512: jwt.SigningMethodRS512,
	algPS256: jwt.SigningMethodPS256,
	algPS384: jwt.SigningMethodPS384,
	algPS512: jwt.SigningMethodPS512,
	algES256: jwt.SigningMethodES256,
	algES384: jwt.SigningMethodES384,
	algES512: jwt.SigningMethodES512,
	algEdDSA: jwt.SigningMethodEdDSA,
}

func algorithmOf(name []byte) algorithm {
	for alg := algHS256; alg < algorithms; alg++ {
		if alg.String() == string(name) {
			return alg
		}
	}
	return 0
}

func (a algorithm) String() string { return methods[a].Alg() }

// bySecret reports whether the algorithm is an HMAC with a configured secret.
func (a algorithm) bySecret() bool { return a <= algHS512 }

// rooms are buffers for bytes that pass through the library's interfaces. Such
// bytes escape to the heap, and the caller's token must not.
var rooms = sync.Pool{New: func() any { return new([MaxTokenBytes]byte) }}

// verify checks the signature with the library. It accepts the signature if any
// of the keys made it: public keys of the algorithm's type, or secrets.
func (t *parts) verify(keys ...any) error {
	room := rooms.Get().(*[MaxTokenBytes]byte)
	defer rooms.Put(room)
	signed := room[:copy(room[:], t.signed)]
	signature, ok := decode(room[len(signed):], t.signature)
	if !ok {
		return ErrMalformed
	}
	for _, key := range keys {
		// The library reads the string during the call and does not keep it.
		if methods[t.alg].Verify(unsafe.String(unsafe.SliceData(signed), len(signed)), signature, key) == nil {
			return nil
		}
	}
	return ErrSignature
}
