package pulsarclient

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// Outgoing is a message to write. It is sent plain: not compressed, not
// encrypted, not in a batch, not in chunks.
type Outgoing struct {
	Key        string
	Body       []byte
	Properties []Property
	EventTime  time.Time // may be zero
	DeliverAt  time.Time // zero means now
}

// Property is a header of a message.
type Property struct{ Name, Value string }

// head returns the size of key and properties together.
func (o *Outgoing) head() int {
	n := len(o.Key)
	for _, p := range o.Properties {
		n += len(p.Name) + len(p.Value)
	}
	return n
}

// A message is [checksum magic][CRC-32C of the rest][size of metadata][metadata]
// [body]. A broker may put [entry magic][size][entry metadata] before it.
const (
	checksumMagic = 0x0e01
	entryMagic    = 0x0e02
	magicBytes    = 2
	checksumBytes = magicBytes + wordBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeSend encodes a message.
func encodeSend(o *Outgoing, producer, sequence uint64, name string, now time.Time) []byte {
	metadata := make(fields, 0, len(name)+o.head()+128)
	metadata = metadata.text(1, name).number(2, sequence).number(3, milliseconds(now))
	for _, p := range o.Properties {
		metadata = metadata.pair(4, p.Name, p.Value)
	}
	if o.Key != "" {
		metadata = metadata.text(6, o.Key)
	}
	if !o.EventTime.IsZero() {
		metadata = metadata.number(12, milliseconds(o.EventTime))
	}
	if !o.DeliverAt.IsZero() {
		metadata = metadata.number(19, milliseconds(o.DeliverAt))
	}
	tail := checksumBytes + wordBytes + len(metadata) + len(o.Body)
	data := newFrame(kindSend, fields(nil).number(1, producer).number(2, sequence), tail)
	data = binary.BigEndian.AppendUint16(data, checksumMagic)
	sum := len(data)
	data = append(data, 0, 0, 0, 0)
	data = binary.BigEndian.AppendUint32(data, uint32(len(metadata)))
	data = append(data, metadata...)
	data = append(data, o.Body...)
	binary.BigEndian.PutUint32(data[sum:], crc32.Checksum(data[sum+wordBytes:], castagnoli))
	return data
}

func milliseconds(t time.Time) uint64 { return uint64(t.UnixMilli()) }

// partitionOf returns the partition of a key, like Pulsar's default: with
// Java's string hash.
func partitionOf(key string, n int) int {
	var hash int32
	for _, c := range []byte(key) { // keys are ASCII
		hash = 31*hash + int32(c)
	}
	return int(uint32(hash)&0x7fffffff) % n
}
