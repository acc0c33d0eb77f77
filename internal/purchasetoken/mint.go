// Package purchasetoken makes and reads purchase tokens: short-lived proofs
// that a buyer passed the challenge of a product. Both the challenge and the
// token carry their own signature, so that any instance can read what another
// one made and no state is kept.
//
// A token's random id is the idempotency key of the purchase: the same token
// sent twice finds the same order.
package purchasetoken

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"seckill"
	"seckill/internal/keyring"
)

const (
	// DefaultTTL is long enough to press the button after solving a challenge
	// early, and short enough that hoarded tokens are worth little.
	DefaultTTL = 2 * time.Minute
	// DefaultChallengeTTL leaves a person time to solve what comes after none.
	DefaultChallengeTTL = 5 * time.Minute
	// MaxTTL bounds both.
	MaxTTL = 24 * time.Hour
)

// The refusals. Each says something else in the log; on the wire they are all
// token_invalid.
var (
	ErrMalformed = seckill.Errorf(seckill.CodeTokenInvalid, "not a purchase token or challenge of ours")
	ErrForeign   = seckill.Errorf(seckill.CodeTokenInvalid, "not signed by us for this buyer and product")
	ErrExpired   = seckill.Errorf(seckill.CodeTokenInvalid, "the purchase token or challenge has expired")
)

// ID is the random identity of a token.
type ID [16]byte

// KeyLen is the length of an ID's text.
const KeyLen = 22

// String is the idempotency key that the ledger keeps: 22 characters of
// base64url.
func (id ID) String() string {
	var text [KeyLen]byte
	base64.RawURLEncoding.Encode(text[:], id[:])
	return string(text[:])
}

// Kind of a challenge, as the wire says it.
type Kind string

// KindNone asks nothing of the buyer.
const KindNone Kind = "none"

// Challenge is what the buyer has to answer before a token is made.
type Challenge struct {
	ID   string `json:"challenge_id"`
	Type Kind   `json:"type"`
}

// Options of a Mint.
type Options struct {
	// Secrets: the first signs, all are accepted.
	Secrets [][]byte
	// TTL and ChallengeTTL are how long a token and a challenge live; 0 means
	// the default.
	TTL, ChallengeTTL time.Duration
	// Random gives the ids, such as crypto/rand.Reader.
	Random io.Reader
}

// Mint makes and reads challenges and tokens. It is safe for concurrent use
// if its Random is.
type Mint struct {
	ring              *keyring.Ring
	ttl, challengeTTL time.Duration
	random            io.Reader
}

// New makes a mint.
func New(o Options) (*Mint, error) {
	ring, err := keyring.New(o.Secrets...)
	if err != nil {
		return nil, fmt.Errorf("purchase token: %w", err)
	}
	if o.Random == nil {
		return nil, errors.New("purchase token: no source of randomness")
	}
	m := &Mint{ring: ring, ttl: o.TTL, challengeTTL: o.ChallengeTTL, random: o.Random}
	if m.ttl == 0 {
		m.ttl = DefaultTTL
	}
	if m.challengeTTL == 0 {
		m.challengeTTL = DefaultChallengeTTL
	}
	for _, ttl := range []time.Duration{m.ttl, m.challengeTTL} {
		if ttl < time.Second || ttl > MaxTTL {
			return nil, fmt.Errorf("purchase token: a life of %v is not in 1s to %v", ttl, MaxTTL)
		}
	}
	return m, nil
}

// Challenge makes a challenge of kind none for a buyer and a product.
func (m *Mint) Challenge(buyer string, productID uint32, now time.Time) (Challenge, error) {
	text, _, err := m.make(purposeChallenge, buyer, productID, now, m.challengeTTL)
	if err != nil {
		return Challenge{}, fmt.Errorf("make challenge: %w", err)
	}
	return Challenge{ID: text, Type: KindNone}, nil
}

// Redeem makes a token for an answered challenge; a challenge of kind none
// has no answer to check. A challenge may be redeemed again while it lives,
// which gives a token with a new id: the buyer's limit is the ledger's matter.
func (m *Mint) Redeem(challengeID, buyer string, productID uint32, now time.Time) (token string, expires time.Time, err error) {
	if _, err := read(m, purposeChallenge, challengeID, buyer, productID, now); err != nil {
		return "", time.Time{}, err
	}
	token, expires, err = m.make(purposeToken, buyer, productID, now, m.ttl)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("make purchase token: %w", err)
	}
	return token, expires, nil
}

// Verify reads a token of a buyer for a product and returns its id. It
// allocates nothing.
func (m *Mint) Verify(token, buyer string, productID uint32, now time.Time) (ID, error) {
	return read(m, purposeToken, token, buyer, productID, now)
}

// VerifyBytes is Verify for a token that is not a string yet.
func (m *Mint) VerifyBytes(token []byte, buyer string, productID uint32, now time.Time) (ID, error) {
	return read(m, purposeToken, token, buyer, productID, now)
}

// make draws an id and seals it.
func (m *Mint) make(p purpose, buyer string, productID uint32, now time.Time, ttl time.Duration) (string, time.Time, error) {
	if err := seckill.CheckBuyer(buyer); err != nil {
		return "", time.Time{}, err
	}
	expires := now.Add(ttl).Truncate(time.Millisecond).UTC()
	var sealed [sealedLen]byte
	sealed[0] = byte(p)
	if _, err := io.ReadFull(m.random, sealed[1:1+len(ID{})]); err != nil {
		return "", time.Time{}, fmt.Errorf("draw id: %w", err)
	}
	binary.BigEndian.PutUint64(sealed[1+len(ID{}):bodyLen], uint64(expires.UnixMilli()))
	var room [messageMax]byte
	signature := m.ring.Sign(appendMessage(room[:0], sealed[:bodyLen], buyer, productID))
	copy(sealed[bodyLen:], signature[:])
	return base64.RawURLEncoding.EncodeToString(sealed[:]), expires, nil
}
