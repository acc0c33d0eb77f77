package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"seckill"
)

// A file is a header, records, and room that was never written (zeros). A record is
//
//	length  uint32  of the payload, little endian, never 0
//	sum     uint32  CRC-32C of the payload
//	payload         one outbox entry
//
// The header is magic, version, and the store's id after its length in one
// byte, with its own sum at the end.
const (
	magic         = "SKPROMIS"
	formatVersion = 1
	recordHead    = 8
	headerFixed   = len(magic) + 2 + 4
	// maxRecord is more than the largest step takes: 2,048 claims whose texts
	// are as long as they may be are about 600 KB.
	maxRecord = 4 << 20
	// minClaim is the least that a claim takes, which bounds what a count may
	// promise.
	minClaim = 16 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Why a file, or a part of it, is not read.
var (
	errCut     = errors.New("it ends early")
	errSum     = errors.New("its checksum is wrong")
	errContent = errors.New("its content is no entry")
	errMagic   = errors.New("it is no journal of promises")
	errVersion = errors.New("its format is of another version")
)

// appendHeader appends the header of a file.
func appendHeader(b []byte, store string) []byte {
	begin := len(b)
	b = append(b, magic...)
	b = append(b, formatVersion, byte(len(store)))
	b = append(b, store...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[begin:], castagnoli))
}

// readHeader returns the store's id, and what follows the header.
func readHeader(b []byte) (store string, rest []byte, err error) {
	if len(b) < headerFixed {
		return "", nil, errCut
	}
	if string(b[:len(magic)]) != magic {
		return "", nil, errMagic
	}
	end := headerFixed + int(b[len(magic)+1])
	if len(b) < end {
		return "", nil, errCut
	}
	if crc32.Checksum(b[:end-4], castagnoli) != binary.LittleEndian.Uint32(b[end-4:]) {
		return "", nil, errSum
	}
	if version := b[len(magic)]; version != formatVersion {
		return "", nil, fmt.Errorf("%w: %d, this program reads %d", errVersion, version, formatVersion)
	}
	return string(b[len(magic)+2 : end-4]), b[end:], nil
}

// appendRecord appends one entry as a record.
func appendRecord(b []byte, e *seckill.Entry) []byte {
	begin := len(b)
	b = append(b, make([]byte, recordHead)...)
	b = appendEntry(b, e)
	payload := b[begin+recordHead:]
	binary.LittleEndian.PutUint32(b[begin:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[begin+4:], crc32.Checksum(payload, castagnoli))
	return b
}

// readRecord reads the first record of b, and returns what follows it.
func readRecord(b []byte) (e seckill.Entry, rest []byte, err error) {
	if len(b) < recordHead {
		return e, nil, errCut
	}
	length := binary.LittleEndian.Uint32(b)
	if length == 0 || length > maxRecord {
		return e, nil, fmt.Errorf("%w: a length of %d", errContent, length)
	}
	if len(b)-recordHead < int(length) {
		return e, nil, errCut
	}
	payload := b[recordHead : recordHead+int(length)]
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return e, nil, errSum
	}
	e, err = readEntry(string(payload))
	return e, b[recordHead+int(length):], err
}

func appendEntry(b []byte, e *seckill.Entry) []byte {
	b = binary.AppendUvarint(b, uint64(e.ProductID))
	b = binary.AppendUvarint(b, uint64(e.Group))
	b = binary.AppendUvarint(b, uint64(e.Shard))
	b = binary.AppendUvarint(b, e.Epoch)
	b = binary.AppendVarint(b, e.At.Unix())
	b = binary.AppendUvarint(b, uint64(e.At.Nanosecond()))
	b = binary.AppendVarint(b, e.PriceCents)
	b = appendText(b, e.Currency)
	b = appendText(b, e.Name)
	b = binary.AppendUvarint(b, uint64(e.Limit))
	b = binary.AppendUvarint(b, uint64(len(e.Claims)))
	for i := range e.Claims {
		c := &e.Claims[i]
		b = append(b, c.OrderNo[:]...)
		b = binary.AppendUvarint(b, uint64(c.Quantity))
		b = appendText(b, c.Buyer)
		b = appendText(b, c.Key)
		b = appendText(b, c.Ref)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func readEntry(payload string) (seckill.Entry, error) {
	d := decoder{rest: payload}
	e := seckill.Entry{
		ProductID: uint32(d.below(math.MaxUint32)), Group: uint32(d.below(math.MaxUint32)), Shard: int(d.below(math.MaxInt32)), Epoch: d.uvarint(),
		At: time.Unix(d.varint(), int64(d.below(uint64(time.Second)-1))).UTC(), PriceCents: d.varint(),
		Currency: d.text(), Name: d.text(), Limit: int(d.below(math.MaxInt32)),
	}
	count := d.below(uint64(len(d.rest) / minClaim))
	if d.failed || count == 0 {
		return seckill.Entry{}, errContent
	}
	e.Claims = make([]seckill.Claim, count)
	for i := range e.Claims {
		e.Claims[i] = seckill.Claim{
			OrderNo: d.orderNo(), Quantity: int(d.below(math.MaxInt32)), Buyer: d.text(), Key: d.text(), Ref: d.text(),
		}
	}
	if d.failed || d.rest != "" {
		return seckill.Entry{}, errContent
	}
	return e, nil
}

// decoder reads what appendEntry writes. After its first failure it returns
// zeros, so that callers look once at the end.
type decoder struct {
	rest   string
	failed bool
}

func (d *decoder) fail() {
	d.rest, d.failed = "", true
}

func (d *decoder) take(n uint64) string {
	if n > uint64(len(d.rest)) {
		d.fail()
		return ""
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) uvarint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		one := d.take(1)
		if d.failed {
			return 0
		}
		v |= uint64(one[0]&0x7F) << shift
		if one[0] < 0x80 {
			return v
		}
	}
	d.fail()
	return 0
}

func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) below(most uint64) uint64 {
	v := d.uvarint()
	if v > most {
		d.fail()
		return 0
	}
	return v
}

func (d *decoder) text() string { return d.take(d.uvarint()) }

func (d *decoder) orderNo() (no seckill.OrderNo) {
	copy(no[:], d.take(uint64(len(no))))
	return no
}
