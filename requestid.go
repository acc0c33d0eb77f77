package seckill

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// RequestIDHeader has the id of a request. The client or a proxy may set it. The
// answer, its problem document and its log lines repeat it.
const RequestIDHeader = "X-Request-Id"

// MaxRequestID bounds the bytes of a client's id.
const MaxRequestID = 128

// AppendRequestID appends the id of a request: the sent one, or a random one if none
// was sent or if it has characters that logs and JSON must escape.
func AppendRequestID(to, sent []byte) []byte {
	if isRequestID(sent) {
		return append(to, sent...)
	}
	var random [8]byte
	binary.BigEndian.PutUint64(random[:], rand.Uint64())
	return hex.AppendEncode(to, random[:])
}

func isRequestID(text []byte) bool {
	for _, c := range text {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return len(text) > 0 && len(text) <= MaxRequestID
}
