package seckill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"
)

// OrderNo is "SK" and a ULID: 48 bits of milliseconds, 32 bits of product id, 48 random bits.
// It sorts by time and does not reveal the buyer. Any instance can read the product from it, to
// find a queued order in the ledger. The zero value is not a number.
type OrderNo [16]byte

// OrderNoLen is the length of an order number's text.
const OrderNoLen = 28

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewOrderNo makes a number from the low 48 bits of random.
func NewOrderNo(at time.Time, productID uint32, random uint64) OrderNo {
	var no OrderNo
	binary.BigEndian.PutUint64(no[:8], uint64(at.UnixMilli())<<16|uint64(productID>>16))
	binary.BigEndian.PutUint64(no[8:], uint64(productID)<<48|random&(1<<48-1))
	return no
}

// IsZero reports whether no is the zero value.
func (no OrderNo) IsZero() bool { return no == OrderNo{} }

// ProductID returns the product of the order.
func (no OrderNo) ProductID() uint32 { return binary.BigEndian.Uint32(no[6:10]) }

// Time returns when the number was made, to the millisecond.
func (no OrderNo) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(no[:8]) >> 16)).UTC()
}

// NewestFirst compares numbers for sorting, newest first. They begin with their time.
func NewestFirst(a, b OrderNo) int { return bytes.Compare(b[:], a[:]) }

// AppendText appends the 28 characters of the number.
func (no OrderNo) AppendText(dst []byte) ([]byte, error) {
	hi, lo := binary.BigEndian.Uint64(no[:8]), binary.BigEndian.Uint64(no[8:])
	var text [OrderNoLen]byte
	text[0], text[1] = 'S', 'K'
	for i := OrderNoLen - 1; i >= 2; i-- { // 26 digits of 5 bits have 130 bits; the first digit has 3
		text[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return append(dst, text[:]...), nil
}

// MarshalText returns the number's text, or no text for the zero value.
func (no OrderNo) MarshalText() ([]byte, error) {
	if no.IsZero() {
		return nil, nil
	}
	return no.AppendText(make([]byte, 0, OrderNoLen))
}

func (no OrderNo) String() string {
	text, _ := no.MarshalText()
	return string(text)
}

var errOrderNo = errors.New("an order number is SK and 26 characters of Crockford base 32")

// crockfordValue maps a character to its digit, or 0xFF. Only the canonical upper-case alphabet
// is accepted, so that a number has one spelling.
var crockfordValue = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xFF
	}
	for i := range len(crockford) {
		table[crockford[i]] = byte(i)
	}
	return table
}()

// ParseOrderNo parses a number's text.
func ParseOrderNo[T string | []byte](text T) (OrderNo, error) {
	if len(text) != OrderNoLen || text[0] != 'S' || text[1] != 'K' || crockfordValue[text[2]] > 7 {
		return OrderNo{}, errOrderNo
	}
	var hi, lo uint64
	for i := 2; i < OrderNoLen; i++ {
		v := crockfordValue[text[i]]
		if v == 0xFF {
			return OrderNo{}, errOrderNo
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(v)
	}
	var no OrderNo
	binary.BigEndian.PutUint64(no[:8], hi)
	binary.BigEndian.PutUint64(no[8:], lo)
	if no.IsZero() {
		return OrderNo{}, errOrderNo
	}
	return no, nil
}

// UnmarshalText parses a number's text. Empty text gives the zero value.
func (no *OrderNo) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*no = OrderNo{}
		return nil
	}
	parsed, err := ParseOrderNo(text)
	if err != nil {
		return err
	}
	*no = parsed
	return nil
}
