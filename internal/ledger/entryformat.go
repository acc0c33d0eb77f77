// This file has the binary form of outbox entries. During a rolling upgrade instances of two
// versions read it on one Redis, and the journal of promises is kept across an upgrade. Numbers
// are big-endian.
//
// 	head   version (1 byte), product (4), group (4), shard (4), epoch (8), time
// 	       (8 seconds, 4 nanoseconds), price (8), length of the currency (1),
// 	       currency, length of the name (2), name, later fields
// 	claim  length of the rest (2), order, length of the buyer (1), buyer,
// 	       length of the ref (1), ref, later fields
// 	order  the part that marks keep: number (16), quantity (2), number of bytes
// 	       after the next one (1), length of the key (1), key, later fields
//
// A new field is appended to a head, a claim or an order. If it is missing, its reader uses the
// zero value, because older writers do not write it. Readers skip bytes after the fields that
// they know. Fields are never moved, removed or given another meaning. An order with a key of
// 64 bytes has room for 191 bytes of later fields.
//
// The version changes only if a reader of the old version would read wrong data. The head keeps
// its meaning up to the time in every version.

package ledger

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"seckill"
)

// EntryVersion is the first byte of every head. A reader does not read other versions: a misread
// entry would become a wrong order.
const EntryVersion = 1

// Bounds of the fields of an entry, by their widths.
const (
	MaxQuantity = math.MaxUint16
	MaxShort    = math.MaxUint8  // buyer, key, ref, currency
	MaxLong     = math.MaxUint16 // name
)

// Lengths without the texts.
const (
	HeadBytes   = 1 + 4 + 4 + 4 + 8 + 8 + 4 + 8 + 1 + 2 + len(laterHead)
	ClaimBytes  = 2 + NumberBytes + 2 + 1 + 1 + 1 + 1 + len(laterOrder) + len(laterClaim)
	NumberBytes = 16
)

// The reasons why something cannot be read.
var (
	ErrShort        = errors.New("it ends early")
	ErrTrail        = errors.New("it has bytes beyond its end")
	ErrEntryVersion = errors.New("its format is of another version")
)

// AppendHead appends the fields that all claims of an entry share, except the limit.
func AppendHead(b []byte, e *seckill.Entry) []byte {
	b = append(b, EntryVersion)
	b = binary.BigEndian.AppendUint32(b, e.ProductID)
	b = binary.BigEndian.AppendUint32(b, e.Group)
	b = binary.BigEndian.AppendUint32(b, uint32(e.Shard))
	b = binary.BigEndian.AppendUint64(b, e.Epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.Unix()))
	b = binary.BigEndian.AppendUint32(b, uint32(e.At.Nanosecond()))
	b = binary.BigEndian.AppendUint64(b, uint64(e.PriceCents))
	b = append(b, byte(len(e.Currency)))
	b = append(b, e.Currency...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(e.Name)))
	b = append(b, e.Name...)
	return append(b, laterHead...)
}

// AppendClaim appends one claim: the length of the rest, then the part that a mark keeps
// (ledgerredis/script/do_reserve.lua), then buyer and ref.
func AppendClaim(b []byte, c *seckill.Claim) []byte {
	size := ClaimBytes - 2 + len(c.Key) + len(c.Buyer) + len(c.Ref)
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	b = AppendOrder(b, c.OrderNo, c.Quantity, c.Key)
	b = append(append(b, byte(len(c.Buyer))), c.Buyer...)
	b = append(append(b, byte(len(c.Ref))), c.Ref...)
	return append(b, laterClaim...)
}

// AppendOrder appends the part of an order that a mark keeps.
func AppendOrder(b []byte, no seckill.OrderNo, quantity int, key string) []byte {
	b = append(b, no[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(quantity))
	b = append(b, byte(len(key)+len(laterOrder)), byte(len(key)))
	b = append(b, key...)
	return append(b, laterOrder...)
}

// DecodeHead decodes a head. If it has another version, it returns the fields that every
// version has, and ErrEntryVersion.
func DecodeHead(h string) (seckill.Entry, error) {
	d := Decoder{B: h}
	version := d.Byte()
	entry := seckill.Entry{
		ProductID: uint32(d.Uint(4)), Group: uint32(d.Uint(4)), Shard: int(d.Uint(4)), Epoch: d.Uint(8),
		At: time.Unix(int64(d.Uint(8)), int64(d.Uint(4))).UTC(),
	}
	if h != "" && version != EntryVersion {
		return entry, fmt.Errorf("%w: %d", ErrEntryVersion, version)
	}
	entry.PriceCents, entry.Currency, entry.Name = int64(d.Uint(8)), d.Short(), d.Take(int(d.Uint(2)))
	return entry, d.Err
}

// DecodeClaims decodes claims one after the other.
func DecodeClaims(c string) ([]seckill.Claim, error) {
	d := Decoder{B: c}
	var claims []seckill.Claim
	for d.Err == nil && len(d.B) > 0 {
		one := Decoder{B: d.Take(int(d.Uint(2)))}
		var claim seckill.Claim
		claim.OrderNo, claim.Quantity, claim.Key = one.Order()
		claim.Buyer, claim.Ref = one.Short(), one.Short()
		claims, d.Err = append(claims, claim), cmp.Or(d.Err, one.Err)
	}
	return claims, d.Err
}

// Decoder reads data that this package and the scripts of the ledger write. Its first error
// sticks. After it all values are zero, so that callers check once at the end. Texts are parts
// of the input, not copies.
type Decoder struct {
	B   string
	Err error
}

// Take returns the next n bytes.
func (d *Decoder) Take(n int) string {
	if n > len(d.B) {
		if d.Err == nil {
			d.Err = ErrShort
		}
		d.B = ""
		return ""
	}
	out := d.B[:n]
	d.B = d.B[n:]
	return out
}

// Uint reads a big-endian number of size bytes.
func (d *Decoder) Uint(size int) (v uint64) {
	for _, b := range []byte(d.Take(size)) {
		v = v<<8 | uint64(b)
	}
	return v
}

// Byte reads one byte.
func (d *Decoder) Byte() byte { return byte(d.Uint(1)) }

// Short reads a text after its length in one byte.
func (d *Decoder) Short() string { return d.Take(int(d.Byte())) }

// Order reads what AppendOrder writes.
func (d *Decoder) Order() (no seckill.OrderNo, quantity int, key string) {
	no, quantity = d.OrderNo(), int(d.Uint(2))
	size, length := int(d.Byte()), int(d.Byte())
	rest := Decoder{B: d.Take(size)}
	key = rest.Take(length)
	d.Err = cmp.Or(d.Err, rest.Err)
	return no, quantity, key
}

// OrderNo reads the number of an order.
func (d *Decoder) OrderNo() (no seckill.OrderNo) {
	copy(no[:], d.Take(NumberBytes))
	return no
}

// End returns the first error, or an error if there is unread data.
func (d *Decoder) End() error {
	if d.Err == nil && len(d.B) > 0 {
		d.Err = ErrTrail
	}
	return d.Err
}
