package pulsar_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"seckill/test/server"
)

// rawWriter writes a topic with metadata of the test's own making, as anybody
// may who can write the topic. It shares no code with the engine.
type rawWriter struct {
	t    testing.TB
	conn net.Conn
	next uint64
}

// Commands and their answers.
const (
	rawConnect, rawConnected    = 2, 3
	rawProducer, rawProducerYes = 5, 17
	rawSend, rawReceipt         = 6, 7
	rawSubscribe, rawSuccess    = 4, 13
)

// rawShared is a type of subscriptions that the engine does not use.
const rawShared = 1

// proto encodes fields: pairs of a number and an int, a string or bytes.
func proto(pairs ...any) []byte {
	var out []byte
	for i := 0; i < len(pairs); i += 2 {
		number := protowire.Number(pairs[i].(int))
		switch value := pairs[i+1].(type) {
		case int:
			out = protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), uint64(value))
		case string:
			out = protowire.AppendString(protowire.AppendTag(out, number, protowire.BytesType), value)
		case []byte:
			out = protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), value)
		}
	}
	return out
}

// framed puts a command and what follows it into a frame.
func framed(command int, content, tail []byte) []byte {
	base := proto(1, command, command, content)
	out := binary.BigEndian.AppendUint32(nil, uint32(4+len(base)+len(tail)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(base)))
	return append(append(out, base...), tail...)
}

// newRawWriter tries again until the broker serves the topic, which nobody has
// asked for before.
func newRawWriter(t testing.TB, p *server.Pulsar, topic string) (w *rawWriter) {
	t.Helper()
	eventually(t, "the broker takes a producer", func() (err error) { w, err = tryRawWriter(t, p, topic); return err })
	return w
}

func tryRawWriter(t testing.TB, p *server.Pulsar, topic string) (*rawWriter, error) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	w := &rawWriter{t: t, conn: conn}
	if answer, err := w.ask(framed(rawConnect, proto(1, "raw", 4, 19), nil)); err != nil || answer != rawConnected {
		t.Fatalf("connect: answer %d, %v", answer, err)
	}
	if answer, err := w.ask(framed(rawProducer, proto(1, "persistent://public/default/"+topic, 2, 1, 3, 1), nil)); err != nil || answer != rawProducerYes {
		return nil, fmt.Errorf("make a producer: answer %d, %v", answer, err)
	}
	return w, nil
}

// ask sends a frame and returns the kind of the answer.
func (w *rawWriter) ask(frame []byte) (int, error) {
	if _, err := w.conn.Write(frame); err != nil {
		return 0, err
	}
	var size [4]byte
	if _, err := io.ReadFull(w.conn, size[:]); err != nil {
		return 0, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(w.conn, answer); err != nil {
		return 0, err
	}
	kind, n := protowire.ConsumeVarint(answer[4+1:]) // behind the size and the tag of the first field
	if n < 0 {
		return 0, fmt.Errorf("answer %x", answer)
	}
	return int(kind), nil
}

// share joins a subscription of the type rawShared.
func (w *rawWriter) share(topic, subscription string) {
	w.t.Helper()
	ask := framed(rawSubscribe, proto(1, "persistent://public/default/"+topic, 2, subscription, 3, rawShared, 4, 1, 5, 2), nil)
	if answer, err := w.ask(ask); err != nil || answer != rawSuccess {
		w.t.Fatalf("subscribe: answer %d, %v", answer, err)
	}
}

// checked puts magic number, checksum and metadata before a body.
func checked(metadata, body []byte) []byte {
	rest := unchecked(metadata, body)
	out := binary.BigEndian.AppendUint16(nil, 0x0e01)
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(rest, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, rest...)
}

// unchecked is checked as the oldest clients wrote it.
func unchecked(metadata, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(metadata)))
	return append(append(out, metadata...), body...)
}

// plain is metadata with nothing unusual; more is added to it.
func plain(more ...any) []byte {
	return append(proto(1, "raw", 2, 1, 3, int(time.Now().UnixMilli()), 6, "1-0"), proto(more...)...)
}

// send returns the kind of the answer.
func (w *rawWriter) send(payload []byte) (int, error) {
	w.next++
	return w.ask(framed(rawSend, proto(1, 1, 2, int(w.next)), payload))
}

// store sends messages that the broker must store.
func (w *rawWriter) store(payloads ...[]byte) {
	w.t.Helper()
	for i, payload := range payloads {
		if answer, err := w.send(payload); err != nil || answer != rawReceipt {
			w.t.Fatalf("message %d: answer %d, %v", i, answer, err)
		}
	}
}
