// A LinkSigner makes and reads order links: signed texts that let their holder
// read one order for a limited time, and nothing else. A payment app may return to a
// browser in which the buyer is not signed in; the link shows the order there.
//
// A link carries its own signature, so any instance can read it without shared
// state.

package auth

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"seckill"
)

// AfterPay is how long a link is valid after the order's time to pay has ended.
// A buyer who paid in the evening may look again in the morning.
const AfterPay = 24 * time.Hour

// The log shows which of these errors it was. Clients get `token_invalid` for
// both.
var (
	ErrLinkForeign = refusal("not a link of ours to this order")
	ErrLinkExpired = refusal("the link to the order has expired")
)

func refusal(detail string) *seckill.Error {
	return seckill.Errorf(seckill.CodeTokenInvalid, "%s", detail).
		Titled("The link to this order is not valid or has run out.", "订单链接无效或已过期")
}

// purpose is the first byte of the signed bytes. It is also their version.
const purpose = 3

// Sealed bytes, before base64url without padding:
//
//	purpose (1) · expiry in Unix milliseconds (8) · signature (32)
//
// The signature covers the first 9 bytes and the order number. The order number
// is not part of the link: the URL has it already.
const (
	linkBodyLen   = 1 + 8
	sealedLinkLen = linkBodyLen + Size
)

// strictBase64 refuses unused bits in the last character, so that a link has one
// spelling.
var strictBase64 = base64.RawURLEncoding.Strict()

// TextLen is the length of a link in characters.
var TextLen = strictBase64.EncodedLen(sealedLinkLen)

// LinkSigner makes and reads links. It is safe for concurrent use.
type LinkSigner struct{ ring *Ring }

// NewLinkSigner derives its own keys from secrets that also serve another use, so
// that a link is never accepted there, nor the other way round. The first secret
// signs; all are accepted.
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

// Sign makes a link to an order that is valid until an instant.
func (s *LinkSigner) Sign(no seckill.OrderNo, until time.Time) string {
	sealed := make([]byte, linkBodyLen, sealedLinkLen)
	sealed[0] = purpose
	binary.BigEndian.PutUint64(sealed[1:], uint64(until.UnixMilli()))
	sum := s.ring.Sign(message(sealed, no))
	return strictBase64.EncodeToString(append(sealed, sum[:]...))
}

// Of makes the link to an order, valid until AfterPay after its time to pay. It
// returns "" if the order has no time to pay yet, or if the link would be expired.
func (s *LinkSigner) Of(o *seckill.Order, now time.Time) string {
	until := o.PayBefore.Add(AfterPay)
	if o.PayBefore.IsZero() || !now.Before(until) {
		return ""
	}
	return s.Sign(o.OrderNo, until)
}

// Check verifies a link to an order.
func (s *LinkSigner) Check(link []byte, no seckill.OrderNo, now time.Time) error {
	if len(link) != TextLen {
		return ErrLinkForeign
	}
	sealed := make([]byte, sealedLinkLen)
	// The decoder skips line breaks, so a text with one decodes to fewer bytes.
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
