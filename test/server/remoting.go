package server

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

// Codes of RocketMQ's remoting protocol, which its admin tool speaks. A request
// takes milliseconds, and a start of the admin tool seconds.
const (
	remotingCreateTopic = 17
	remotingRoute       = 105
	remotingClusterInfo = 106
	remotingCreateGroup = 200
)

// Bounds of one remoting request.
const (
	remotingTimeout = 20 * time.Second
	remotingLimit   = 4 << 20 // bytes of an answer
)

// remotingCall sends one request on a connection of its own and returns the
// answer's body. A frame is its length, the header's length, the header as JSON
// and the body.
func remotingCall(address string, code int, fields map[string]string, body []byte) ([]byte, error) {
	header, err := json.Marshal(map[string]any{
		"code": code, "language": "GO", "version": 0, "opaque": 1, "flag": 0, "extFields": fields, "serializeTypeCurrentRPC": "JSON",
	})
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", address, remotingTimeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(remotingTimeout)); err != nil {
		return nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	frame = append(append(frame, header...), body...)
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	return remotingAnswer(conn)
}

func remotingAnswer(conn io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(size[:])
	if length < 4 || length > remotingLimit {
		return nil, fmt.Errorf("an answer of %d bytes", length)
	}
	frame := make([]byte, length)
	if _, err := io.ReadFull(conn, frame); err != nil {
		return nil, err
	}
	header := binary.BigEndian.Uint32(frame) & 0xffffff // the high byte is the encoding, 0 for JSON
	if header > length-4 {
		return nil, fmt.Errorf("a header of %d bytes in an answer of %d", header, length)
	}
	var answer struct {
		Code   int
		Remark string
	}
	if err := json.Unmarshal(frame[4:4+header], &answer); err != nil {
		return nil, err
	}
	if answer.Code != 0 {
		return nil, fmt.Errorf("code %d: %s", answer.Code, answer.Remark)
	}
	return frame[4+header:], nil
}
