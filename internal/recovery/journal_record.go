package recovery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"seckill"
	"seckill/internal/ledger"
)

// A file is a header, records, and room that was never written (zeros). A record is
//
//	length  uint32  of the payload, little endian, never 0
//	sum     uint32  CRC-32C of the payload
//	payload         one outbox entry
//
// The header is the magic, the version, the length of the store's id in one
// byte, the id, and a checksum.
const (
	magic = "SKPROMIS"
	// The version of all entries of a file. Fields of later versions are
	// skipped (package queue).
	formatVersion = ledger.EntryVersion
	recordHead    = 8
	headerFixed   = len(magic) + 2 + 4
	// maxRecord is above the largest step: 2,048 claims with texts of maximal
	// length are about 600 KB.
	maxRecord = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Reasons why a file, or a part of it, is not read.
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

// readHeader returns the id of the store, and the bytes after the header.
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

// readRecord reads the first record of b, and returns the bytes after it.
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

// appendEntry appends the limit (4 bytes), the length of the head (4), the head
// and the claims.
func appendEntry(b []byte, e *seckill.Entry) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(e.Limit))
	b = binary.BigEndian.AppendUint32(b, uint32(ledger.HeadBytes+len(e.Currency)+len(e.Name)))
	b = ledger.AppendHead(b, e)
	for i := range e.Claims {
		b = ledger.AppendClaim(b, &e.Claims[i])
	}
	return b
}

func readEntry(payload string) (seckill.Entry, error) {
	d := ledger.Decoder{B: payload}
	limit, head := int(d.Uint(4)), d.Take(int(d.Uint(4)))
	e, err := ledger.DecodeHead(head)
	if err == nil {
		e.Limit = limit
		e.Claims, err = ledger.DecodeClaims(d.B)
	}
	if err != nil || len(e.Claims) == 0 {
		return seckill.Entry{}, errContent
	}
	return e, nil
}
