package pulsarclient

import (
	"encoding/binary"
	"hash/crc32"
)

// MessageID is the position of a message in a topic. A broker that lost its
// data may use the same position again.
type MessageID struct {
	Partition     int // 0 without partitions
	Ledger, Entry uint64
}

func (id MessageID) encoded() fields { return fields(nil).number(1, id.Ledger).number(2, id.Entry) }

// Message is a received message.
type Message struct {
	ID   MessageID
	Key  string
	Body []byte
	// Poison is the reason why the message is not one that this package writes,
	// or "". A poison message has no key, body or properties.
	Poison string
	// Size is the memory of the message.
	Size int

	metadata []byte
	// permits is the number of permits that the broker counts for the message;
	// see readMetadata.
	permits int64
	// permitsUnknown means that permits cannot be trusted.
	permitsUnknown bool
}

// Property returns the value of a property, or "" if there is none.
func (m *Message) Property(name string) string {
	var value []byte
	_ = eachField(m.metadata, func(f field) { // the metadata was already checked
		if f.at != 4 {
			return
		}
		var pair [2][]byte
		_ = eachField(f.bytes, func(part field) {
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

// Bounds of metadata. This package writes a few hundred bytes.
const (
	maxMetadata = 16 << 10
	maxKey      = 1 << 10
	// maxBatch bounds the believed number of messages in a batch. Clients put
	// 1,000 into a batch by default.
	maxBatch = 10_000
	// messageSelf is the memory of a message besides its bytes.
	messageSelf = 512
)

// readMessage decodes the bytes after the command of a message. Anyone who may
// write the topic may have sent it: every length is checked, and no allocation
// depends on a number in it.
func readMessage(id MessageID, payload []byte, whole bool) *Message {
	m := &Message{ID: id, Size: messageSelf, permits: 1}
	metadata, body, why := split(payload, whole)
	if metadata == nil {
		m.permitsUnknown = true
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

// split checks the frame of a message. metadata is nil if it is not found. It
// may be returned together with a reason why the message is poison.
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

// sized splits off a part of the form [size][bytes].
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

// readMetadata returns the key, and the reason why the message is not one of
// this package, or "".
//
// A broker counts a message as many times as the batch size in its metadata
// says, even if that number is wrong, and uses as many permits. readMetadata
// reads the number in the same way, and the consumer grants as many again.
func (m *Message) readMetadata(metadata []byte) (key []byte, why string) {
	err := eachField(metadata, func(f field) {
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
		m.permitsUnknown = true
		return nil, "unreadable metadata"
	}
	m.permitsUnknown = m.permits < 1 || m.permits > maxBatch
	return key, why
}
