package pulsarclient

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// Commands and metadata are encoded with Protocol Buffers. The field numbers
// are those of Apache Pulsar's PulsarApi.proto.

var errMalformed = errors.New("pulsar: malformed data")

// fields is an encoded message under construction.
type fields []byte

func (f fields) number(at protowire.Number, value uint64) fields {
	return protowire.AppendVarint(protowire.AppendTag(f, at, protowire.VarintType), value)
}

func (f fields) flag(at protowire.Number, value bool) fields {
	return f.number(at, protowire.EncodeBool(value))
}

func (f fields) text(at protowire.Number, value string) fields {
	return protowire.AppendString(protowire.AppendTag(f, at, protowire.BytesType), value)
}

func (f fields) bytes(at protowire.Number, value []byte) fields {
	return protowire.AppendBytes(protowire.AppendTag(f, at, protowire.BytesType), value)
}

// pair appends a KeyValue of the protocol.
func (f fields) pair(at protowire.Number, name, value string) fields {
	return f.bytes(at, fields(nil).text(1, name).text(2, value))
}

// field is one field of an encoded message: a number, or bytes that are a slice
// of the encoded message.
type field struct {
	at     protowire.Number
	number uint64
	bytes  []byte
}

// eachField calls see for every field in order. It allocates nothing. It skips field
// types that Pulsar does not use.
func eachField(encoded []byte, see func(field)) error {
	for len(encoded) > 0 {
		at, kind, n := protowire.ConsumeTag(encoded)
		if n < 0 {
			return errMalformed
		}
		encoded = encoded[n:]
		f := field{at: at}
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(encoded)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(encoded)
		default:
			if n = protowire.ConsumeFieldValue(at, kind, encoded); n >= 0 {
				encoded = encoded[n:]
				continue
			}
		}
		if n < 0 {
			return errMalformed
		}
		encoded = encoded[n:]
		see(f)
	}
	return nil
}
