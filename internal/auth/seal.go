package auth

import (
	"encoding/base64"
	"encoding/binary"
	"time"

	"seckill"
)

// version is the first byte of the sealed bytes. Another layout gets another
// number.
const version = 1

// Sealed bytes, before base64url without padding:
//
//	version (1) · id (16) · expiry in Unix milliseconds (8) · signature (32)
//
// The signature covers the first 25 bytes, the product id (4) and the buyer. The
// last two are not part of the token: the request has them. All fields but the
// last have a fixed length, so two messages are never equal by accident.
const (
	bodyLen    = 1 + 16 + 8
	sealedLen  = bodyLen + Size
	textLen    = sealedLen / 3 * 4 // 57 bytes: a multiple of 3, hence one spelling
	messageMax = bodyLen + 4 + seckill.MaxBuyerBytes
)

func appendMessage[T string | []byte](dst, body []byte, buyer T, productID uint32) []byte {
	dst = append(dst, body...)
	dst = binary.BigEndian.AppendUint32(dst, productID)
	return append(dst, buyer...)
}

// Verify checks a token for a buyer and a product and returns its id. It
// allocates nothing.
func (m *Mint) Verify(token, buyer []byte, productID uint32, now time.Time) (TokenID, error) {
	if len(token) != textLen || len(buyer) > seckill.MaxBuyerBytes {
		return TokenID{}, ErrTokenMalformed
	}
	var sealed [sealedLen]byte
	// The decoder skips line breaks, so a text with one decodes to fewer bytes.
	if n, err := base64.RawURLEncoding.Decode(sealed[:], token); err != nil || n != sealedLen || sealed[0] != version {
		return TokenID{}, ErrTokenMalformed
	}
	var room [messageMax]byte
	message := appendMessage(room[:0], sealed[:bodyLen], buyer, productID)
	if !m.ring.Verify(message, sealed[bodyLen:]) {
		return TokenID{}, ErrForeign
	}
	if expires := binary.BigEndian.Uint64(sealed[1+len(TokenID{}) : bodyLen]); uint64(now.UnixMilli()) >= expires {
		return TokenID{}, ErrTokenExpired
	}
	return TokenID(sealed[1 : 1+len(TokenID{})]), nil
}
