package pulsarclient

import (
	"encoding/binary"
	"hash/crc32"
)

// MessageID is where a message stands in a topic. A broker that lost its data
// may have another message there later.
type MessageID struct {
	Partition     int // 0 without partitions
	Ledger, Entry uint64
}

func (id MessageID) encoded() fields { return fields(nil).number(1, id.Ledger).number(2, id.Entry) }

// Message is a message that came.
type Message struct {
	ID   MessageID
	Key  string
	Body []byte
	// Poison says why the message is none that this package writes; "" if it is one.
	// Such a message has no key, no body and no properties: nothing of it is kept.
	Poison string
	// Size is how much memory the message takes.
	Size int

	metadata []byte
	// permits is how many messages the broker takes it for; see readMetadata.
	permits int64
	// isOdd says that permits cannot be trusted.
	isOdd bool
}

// Property returns a property's value; "" if there is none.
func (m *Message) Property(name string) string {
	var value []byte
	_ = each(m.metadata, func(f field) { // it was read once without an error
		if f.at != 4 {
			return
		}
		var pair [2][]byte
		_ = each(f.bytes, func(part field) {
			if part.at == 1 || part.at == 2 {
				pair[part.at-1] = part.bytes
			}
		})
		if string(pair[0]) == name {
			value = pair[1]
		}
	})
	return string(value)
}

// Bounds of metadata. This package writes some hundred bytes.
const (
	maxMetadata = 16 << 10
	maxKey      = 1 << 10
	// maxBatch bounds the messages of a batch whose number is believed. Clients pack
	// 1,000 by default.
	maxBatch = 10_000
	// messageSelf is the memory of a message beside its bytes.
	messageSelf = 512
)

// readMessage decodes what follows the command of a message. Anybody who may
// write the topic has made it: every length is checked, and nothing is allocated
// by a number in it.
func readMessage(id MessageID, payload []byte, whole bool) *Message {
	m := &Message{ID: id, Size: messageSelf, permits: 1}
	metadata, body, why := split(payload, whole)
	if metadata == nil {
		m.isOdd = true
		m.Poison = why
		return m
	}
	key, unusual := m.readMetadata(metadata)
	switch {
	case why != "":
		m.Poison = why
	case unusual != "":
		m.Poison = unusual
	case len(metadata) > maxMetadata || len(key) > maxKey:
		m.Poison = "metadata is too large"
	default:
		m.Key, m.Body, m.metadata = string(key), body, metadata
		m.Size += len(payload) + len(m.Key)
	}
	return m
}

// split checks the frame of a message. Metadata is nil if it is not found. It
// may be there with a reason why the message is poison.
func split(payload []byte, whole bool) (metadata, body []byte, why string) {
	const cut = "message is cut"
	if len(payload) > magicBytes && binary.BigEndian.Uint16(payload) == entryMagic {
		var ok bool
		if _, payload, ok = sized(payload[magicBytes:]); !ok {
			return nil, nil, cut
		}
	}
	why = "no checksum"
	if len(payload) >= checksumBytes && binary.BigEndian.Uint16(payload) == checksumMagic {
		want := binary.BigEndian.Uint32(payload[magicBytes:])
		payload = payload[checksumBytes:]
		why = ""
		if whole && crc32.Checksum(payload, castagnoli) != want {
			why = "wrong checksum"
		}
	}
	if !whole {
		why = "message is too large"
	}
	metadata, body, ok := sized(payload)
	if !ok {
		return nil, nil, cut
	}
	return metadata, body, why
}

// sized cuts [size][bytes] off.
func sized(data []byte) (first, rest []byte, ok bool) {
	if len(data) < wordBytes {
		return nil, nil, false
	}
	size := binary.BigEndian.Uint32(data)
	data = data[wordBytes:]
	if uint64(size) > uint64(len(data)) {
		return nil, nil, false
	}
	return data[:size:size], data[size:], true
}

// readMetadata returns the key, and why the message is none of this package; ""
// if it is one.
//
// A broker counts a message as so many as the number of its batch says, whoever
// wrote that: it takes as many permits. It reads the number as readMetadata
// does, and the consumer gives back as many.
func (m *Message) readMetadata(metadata []byte) (key []byte, why string) {
	err := each(metadata, func(f field) {
		switch f.at {
		case 6:
			key = f.bytes
		case 8:
			if f.number != 0 {
				why = "compressed"
			}
		case 11:
			why = "batch"
			m.permits = int64(int32(f.number))
		case 13, 14, 15:
			why = "encrypted"
		case 27, 28, 29:
			why = "chunk"
		}
	})
	if err != nil {
		m.isOdd = true
		return nil, "unreadable metadata"
	}
	m.isOdd = m.permits < 1 || m.permits > maxBatch
	return key, why
}
