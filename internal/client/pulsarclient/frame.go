package pulsarclient

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Bounds of received frames.
const (
	// frameSlack is the room for command and metadata beside the largest
	// message.
	frameSlack = 64 << 10
	// maxCommand bounds the command of a frame.
	maxCommand = 64 << 10
	// maxSkipped bounds a frame that is only partly kept.
	maxSkipped = 256 << 20
	// firstRead is the memory for a frame before its bytes arrive.
	firstRead = 64 << 10
	wordBytes = 4
)

// frame is a command, and for messages the bytes after it.
type frame struct {
	command []byte
	payload []byte
	// whole is false if the frame was too large and payload is only its
	// beginning.
	whole bool
}

// readFrame reads one frame and keeps up to most bytes of it. It allocates
// memory for bytes that arrive, not for bytes that are announced.
func readFrame(r io.Reader, most int) (frame, error) {
	var head [2 * wordBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	total, command := int64(binary.BigEndian.Uint32(head[:])), int64(binary.BigEndian.Uint32(head[wordBytes:]))
	body := total - wordBytes
	keep := min(body, int64(most))
	if body > maxSkipped || command > maxCommand || command > keep {
		return frame{}, fmt.Errorf("%w: a frame of %d bytes, its command of %d", errMalformed, total, command)
	}
	data, err := readBytes(r, int(keep))
	if err != nil {
		return frame{}, err
	}
	if _, err := io.CopyN(io.Discard, r, body-keep); err != nil {
		return frame{}, err
	}
	return frame{command: data[:command], payload: data[command:], whole: keep == body}, nil
}

// readBytes reads n bytes into memory that grows as they arrive.
func readBytes(r io.Reader, n int) ([]byte, error) {
	data := make([]byte, min(n, firstRead))
	for got := 0; ; {
		read, err := io.ReadFull(r, data[got:])
		if err != nil {
			return nil, err
		}
		if got += read; got == n {
			return data, nil
		}
		more := make([]byte, min(n, 2*len(data)))
		copy(more, data)
		data = more
	}
}

// kind is the type of a command. The field of its content has the same number.
type kind uint64

const (
	kindConnect         kind = 2
	kindConnected       kind = 3
	kindSubscribe       kind = 4
	kindProducer        kind = 5
	kindSend            kind = 6
	kindSendReceipt     kind = 7
	kindSendError       kind = 8
	kindMessage         kind = 9
	kindAck             kind = 10
	kindFlow            kind = 11
	kindSuccess         kind = 13
	kindError           kind = 14
	kindCloseProducer   kind = 15
	kindCloseConsumer   kind = 16
	kindProducerSuccess kind = 17
	kindPing            kind = 18
	kindPong            kind = 19
	kindPartitions      kind = 21
	kindPartitionsReply kind = 22
	kindLookup          kind = 23
	kindLookupReply     kind = 24
	kindAuthChallenge   kind = 36
	kindAuthResponse    kind = 37
	kindAckResponse     kind = 38
)

// newFrame encodes a command. tail is the size of the bytes that the caller
// appends.
func newFrame(k kind, content fields, tail int) []byte {
	command := fields(nil).number(1, uint64(k)).bytes(numberOf(k), content)
	data := make([]byte, 0, 2*wordBytes+len(command)+tail)
	data = binary.BigEndian.AppendUint32(data, uint32(wordBytes+len(command)+tail))
	data = binary.BigEndian.AppendUint32(data, uint32(len(command)))
	return append(data, command...)
}
