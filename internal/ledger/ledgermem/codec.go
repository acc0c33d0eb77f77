package ledgermem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"seckill"
)

// formatVersion is the first byte of every body in the file.
const formatVersion = 1

// Bounds of a body. A decoder accepts no length beyond them.
const (
	maxTextBytes = 1024
	maxQuantity  = math.MaxInt32
	maxIndex     = 1 << 20 // shards of a product
	maxStripes   = 4096
)

const crcBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errShort   = errors.New("body ends early")
	errTrail   = errors.New("body has bytes beyond its end")
	errCRC     = errors.New("checksum does not match")
	errVersion = errors.New("unknown format version")
	errRange   = errors.New("number out of range")
)

// sealContext is covered by a body's checksum, so that a body in the wrong row is noticed.
type sealContext [5]uint64

func (c sealContext) sum(body []byte) uint32 {
	var head [len(c) * 8]byte
	for i, v := range c {
		binary.LittleEndian.PutUint64(head[i*8:], v)
	}
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, body)
}

// seal appends the checksum.
func (c sealContext) seal(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, c.sum(body))
}

// unseal checks checksum and version, and returns the payload.
func (c sealContext) unseal(body []byte) ([]byte, error) {
	if len(body) < 1+crcBytes {
		return nil, errShort
	}
	payload := body[:len(body)-crcBytes]
	if binary.LittleEndian.Uint32(body[len(payload):]) != c.sum(payload) {
		return nil, errCRC
	}
	if payload[0] != formatVersion {
		return nil, fmt.Errorf("%w %d", errVersion, payload[0])
	}
	return payload[1:], nil
}

func appendText(b []byte, text string) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// decoder reads a payload. Its first error sticks. After it all values are zero, so that
// callers check once at the end.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err, d.b = err, nil
	}
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	d.b = d.b[n:]
	return v
}

// below reads a number of at most most.
func (d *decoder) below(most uint64) uint64 {
	v := d.uvarint()
	if v > most {
		d.fail(errRange)
		return 0
	}
	return v
}

// units reads an amount that is not negative.
func (d *decoder) units() int64 { return int64(d.below(math.MaxInt64)) }

// count reads the number of items that follow, each of at least size bytes. A forged count
// fails before anything is allocated for it.
func (d *decoder) count(size int) int {
	return int(d.below(uint64(len(d.b) / size)))
}

func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.fail(errShort)
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

// text returns a slice of the payload, valid as long as the payload is.
func (d *decoder) text() []byte { return d.take(int(d.below(maxTextBytes))) }

func (d *decoder) uint64() uint64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (d *decoder) orderNo() (no seckill.OrderNo) {
	copy(no[:], d.take(len(no)))
	return no
}

func (d *decoder) time() time.Time {
	sec, nsec := d.varint(), d.below(999_999_999)
	return time.Unix(sec, int64(nsec)).UTC()
}

func (d *decoder) bool() bool { return d.below(1) == 1 }

// end returns the first error, or an error if the payload has more bytes.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail(errTrail)
	}
	return d.err
}
