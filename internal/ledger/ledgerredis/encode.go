package ledgerredis

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// headVersion is the first byte of every head (see "Format" in doc.go). A reader
// leaves others alone: an entry that it misread would become a wrong order.
const headVersion = 1

// Bounds of what an entry may hold; they are the widths of its fields.
const (
	maxQuantity  = math.MaxUint16
	maxShortText = math.MaxUint8  // buyer, key, ref, currency
	maxLongText  = math.MaxUint16 // name
)

// Lengths of what is fixed in an encoding.
const (
	headBytes  = 1 + 4 + 4 + 4 + 8 + 8 + 4 + 8 + 1 + 2 // without the texts
	claimBytes = 2 + 16 + 2 + 1 + 1 + 1 + 1            // without the texts
	orderBytes = 16
	noteBytes  = 8 // of one claim, and of the tag; a group's 4 stand in front of all
)

var (
	errShort   = errors.New("it ends early")
	errTrail   = errors.New("it has bytes beyond its end")
	errVersion = errors.New("its format is of another version")
)

// appendHead appends what all claims of an entry share, the limit aside, which
// only the ledger knows: field "h" of the stream. Scripts may rely on the
// product's place, bytes 1 to 4.
func appendHead(b []byte, shard ledger.Shard, w *ledger.Reserve) []byte {
	b = append(b, headVersion)
	b = binary.BigEndian.AppendUint32(b, shard.Product)
	b = binary.BigEndian.AppendUint32(b, shard.Group)
	b = binary.BigEndian.AppendUint32(b, uint32(shard.Index))
	b = binary.BigEndian.AppendUint64(b, shard.Epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(w.At.Unix()))
	b = binary.BigEndian.AppendUint32(b, uint32(w.At.Nanosecond()))
	b = binary.BigEndian.AppendUint64(b, uint64(w.PriceCents))
	b = append(b, byte(len(w.Currency)))
	b = append(b, w.Currency...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(w.Name)))
	b = append(b, w.Name...)
	return append(b, laterHead...)
}

// appendClaim appends one claim: the length of what follows, then the part that
// a mark keeps (see script/do_reserve.lua), then buyer and ref.
func appendClaim(b []byte, c *seckill.Claim) []byte {
	size := claimBytes - 2 + len(c.Key) + len(c.Buyer) + len(c.Ref) + len(laterOrder) + len(laterClaim)
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	b = appendOrder(b, c.OrderNo, c.Quantity, c.Key)
	b = append(append(b, byte(len(c.Buyer))), c.Buyer...)
	b = append(append(b, byte(len(c.Ref))), c.Ref...)
	return append(b, laterClaim...)
}

// appendOrder appends what a mark keeps of an order.
func appendOrder(b []byte, no seckill.OrderNo, quantity int, key string) []byte {
	b = append(b, no[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(quantity))
	b = append(b, byte(len(key)+len(laterOrder)), byte(len(key)))
	b = append(b, key...)
	return append(b, laterOrder...)
}

// decodeEntry reads an outbox entry from the fields of the stream: head, limit
// and claims.
func decodeEntry(h, l, c string) (seckill.Entry, error) {
	entry, err := decodeHead(h)
	if err != nil {
		return seckill.Entry{}, fmt.Errorf("read an entry's head: %w", err)
	}
	if entry.Limit, err = strconv.Atoi(l); err != nil {
		return seckill.Entry{}, fmt.Errorf("read an entry's limit: %w", err)
	}
	if entry.Claims, err = decodeClaims(c); err != nil {
		return seckill.Entry{}, fmt.Errorf("read an entry's claims: %w", err)
	}
	return entry, nil
}

// decodeHead reads a head; of another version what every version has, and errVersion.
func decodeHead(h string) (seckill.Entry, error) {
	d := decoder{b: h}
	version := d.byte()
	entry := seckill.Entry{
		ProductID: uint32(d.uint(4)), Group: uint32(d.uint(4)), Shard: int(d.uint(4)), Epoch: d.uint(8),
		At: time.Unix(int64(d.uint(8)), int64(d.uint(4))).UTC(),
	}
	if d.err == nil && version != headVersion {
		return entry, fmt.Errorf("%w: %d", errVersion, version)
	}
	entry.PriceCents, entry.Currency, entry.Name = int64(d.uint(8)), d.short(), d.take(int(d.uint(2)))
	return entry, d.err
}

func decodeClaims(c string) ([]seckill.Claim, error) {
	d := decoder{b: c}
	var claims []seckill.Claim
	for d.err == nil && len(d.b) > 0 {
		one := decoder{b: d.take(int(d.uint(2)))}
		var claim seckill.Claim
		claim.OrderNo, claim.Quantity, claim.Key = one.order()
		claim.Buyer, claim.Ref = one.short(), one.short()
		claims, d.err = append(claims, claim), cmp.Or(d.err, one.err)
	}
	return claims, d.err
}

// decoder reads what appendHead, appendClaim and the scripts write. Its first
// error sticks, and what it returns after that is zero, so that callers check
// once at the end. Texts are parts of what is decoded, not copies.
type decoder struct {
	b   string
	err error
}

func (d *decoder) take(n int) string {
	if n > len(d.b) {
		if d.err == nil {
			d.err = errShort
		}
		d.b = ""
		return ""
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

// uint reads a big-endian number of size bytes.
func (d *decoder) uint(size int) (v uint64) {
	for _, b := range []byte(d.take(size)) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (d *decoder) byte() byte { return byte(d.uint(1)) }

// short reads a text after its length in one byte.
func (d *decoder) short() string { return d.take(int(d.byte())) }

// order reads what appendOrder writes.
func (d *decoder) order() (no seckill.OrderNo, quantity int, key string) {
	no, quantity = d.orderNo(), int(d.uint(2))
	size, length := int(d.byte()), int(d.byte())
	rest := decoder{b: d.take(size)}
	key = rest.take(length)
	d.err = cmp.Or(d.err, rest.err)
	return no, quantity, key
}

func (d *decoder) orderNo() (no seckill.OrderNo) {
	copy(no[:], d.take(orderBytes))
	return no
}

// end returns the first error, or one if there is more than was read.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errTrail
	}
	return d.err
}
