package seckill

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// RequestIDHeader names a request: in the request itself, if the client or a
// proxy named it, in its answer, in its problem document and in its log lines.
const RequestIDHeader = "X-Request-Id"

// MaxRequestID is the most bytes that a client's id may have.
const MaxRequestID = 128

// AppendRequestID appends the id of a request: the one that was sent, or a random
// one if none was sent or if it could not stand in a log line and in JSON as it is.
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
