// A Mint makes and reads purchase tokens: short-lived proofs that a buyer has
// answered the challenge of a product. A token carries its own signature, so any
// instance can read it without shared state.
//
// A token's id is the idempotency key of the purchase: the same token sent twice
// finds the same order, and so do two tokens with one id.

package auth

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"seckill"
)

// The log shows which of these errors it was. Clients get `token_invalid` for
// all of them.
var (
	ErrTokenMalformed = seckill.Errorf(seckill.CodeTokenInvalid, "not a purchase token of ours")
	ErrForeign        = seckill.Errorf(seckill.CodeTokenInvalid, "not signed by us for this buyer and product")
	ErrTokenExpired   = seckill.Errorf(seckill.CodeTokenInvalid, "the purchase token has expired")
)

// TokenID identifies a token.
type TokenID [16]byte

// KeyLen is the length of TokenID.String.
const KeyLen = 22

// String returns the idempotency key that the ledger keeps: 22 characters of
// base64url.
func (id TokenID) String() string {
	var text [KeyLen]byte
	base64.RawURLEncoding.Encode(text[:], id[:])
	return string(text[:])
}

// Mint makes and reads tokens. It is safe for concurrent use.
type Mint struct {
	ring *Ring
}

// NewMint makes a mint that signs with the first secret and accepts all of them.
func NewMint(secrets ...[]byte) (*Mint, error) {
	ring, err := NewRing(secrets...)
	if err != nil {
		return nil, fmt.Errorf("purchase token: %w", err)
	}
	return &Mint{ring: ring}, nil
}

// Issue makes a token with this id for a buyer and a product.
func (m *Mint) Issue(id TokenID, buyer string, productID uint32, expires time.Time) (string, error) {
	if err := seckill.CheckBuyer(buyer); err != nil {
		return "", err
	}
	var sealed [sealedLen]byte
	sealed[0] = version
	copy(sealed[1:], id[:])
	binary.BigEndian.PutUint64(sealed[1+len(id):bodyLen], uint64(expires.UnixMilli()))
	var room [messageMax]byte
	signature := m.ring.Sign(appendMessage(room[:0], sealed[:bodyLen], buyer, productID))
	copy(sealed[bodyLen:], signature[:])
	return base64.RawURLEncoding.EncodeToString(sealed[:]), nil
}
