// A LinkSigner makes and reads order links: signed texts that let whoever
// has one look at one order for a while, and do nothing with it. A payment app
// may return into another browser than the one that the buyer is signed in at;
// the link is what it brings along.
//
// A link carries its own signature, so that any instance can read what another
// one made and no state is kept.

package auth

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"seckill"
)

// AfterPay is how long a link outlives the time to pay: whoever paid in the
// evening looks again in the morning.
const AfterPay = 24 * time.Hour

// The refusals. Each says something else in the log; on the wire they are both
// token_invalid.
var (
	ErrLinkForeign = refusal("not a link of ours to this order")
	ErrLinkExpired = refusal("the link to the order has expired")
)

func refusal(detail string) *seckill.Error {
	return seckill.Errorf(seckill.CodeTokenInvalid, "%s", detail).
		Titled("The link to this order is not valid or has run out.", "订单链接无效或已过期")
}

// purpose is the first byte of what is sealed, and its version.
const purpose = 3

// Sealed bytes, before base64url without padding:
//
//	purpose (1) · expiry in Unix milliseconds (8) · signature (32)
//
// What is signed is the first 9 bytes and the order number, which is not sent:
// the address names it already.
const (
	linkBodyLen   = 1 + 8
	sealedLinkLen = linkBodyLen + Size
)

// strictBase64 refuses a last character with bits that mean nothing, so that a link
// has one spelling.
var strictBase64 = base64.RawURLEncoding.Strict()

// TextLen is the length of a link's text.
var TextLen = strictBase64.EncodedLen(sealedLinkLen)

// LinkSigner makes and reads links. It is safe for concurrent use.
type LinkSigner struct{ ring *Ring }

// NewLinkSigner makes a signer under keys that are derived from secrets which serve
// something else too: what is signed here can never pass for that, nor that for
// this. The first secret signs, all are accepted.
func NewLinkSigner(secrets ...[]byte) (*LinkSigner, error) {
	derived := make([][]byte, len(secrets))
	for i, secret := range secrets {
		if len(secret) == 0 {
			return nil, fmt.Errorf("order link: %w", ErrSecrets)
		}
		derived[i] = DeriveKey(secret, "seckill order link")
	}
	ring, err := NewRing(derived...)
	if err != nil {
		return nil, fmt.Errorf("order link: %w", err)
	}
	return &LinkSigner{ring}, nil
}

// Sign makes a link to an order that lives until an instant.
func (s *LinkSigner) Sign(no seckill.OrderNo, until time.Time) string {
	sealed := make([]byte, linkBodyLen, sealedLinkLen)
	sealed[0] = purpose
	binary.BigEndian.PutUint64(sealed[1:], uint64(until.UnixMilli()))
	sum := s.ring.Sign(message(sealed, no))
	return strictBase64.EncodeToString(append(sealed, sum[:]...))
}

// Of makes the link to an order, which ends AfterPay after its time to pay: "" for
// an order that has no such time yet, and for one whose link would be over.
func (s *LinkSigner) Of(o *seckill.Order, now time.Time) string {
	until := o.PayBefore.Add(AfterPay)
	if o.PayBefore.IsZero() || !now.Before(until) {
		return ""
	}
	return s.Sign(o.OrderNo, until)
}

// Check reads a link to an order.
func (s *LinkSigner) Check(link []byte, no seckill.OrderNo, now time.Time) error {
	if len(link) != TextLen {
		return ErrLinkForeign
	}
	sealed := make([]byte, sealedLinkLen)
	// The decoder skips line breaks; a text with one comes out short.
	if n, err := strictBase64.Decode(sealed, link); err != nil || n != sealedLinkLen || sealed[0] != purpose {
		return ErrLinkForeign
	}
	if !s.ring.Verify(message(sealed[:linkBodyLen], no), sealed[linkBodyLen:]) {
		return ErrLinkForeign
	}
	if until := binary.BigEndian.Uint64(sealed[1:linkBodyLen]); uint64(now.UnixMilli()) >= until {
		return ErrLinkExpired
	}
	return nil
}

func message(body []byte, no seckill.OrderNo) []byte {
	return append(append(make([]byte, 0, linkBodyLen+seckill.OrderNoLen), body...), no.String()...)
}
