package server

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// PulsarMessage is a message as Pulsar's WebSocket service shows it.
type PulsarMessage struct {
	Key        string            `json:"key"`
	Properties map[string]string `json:"properties"`
	Payload    []byte            `json:"payload"`
}

// ReadTopic reads messages of a topic in public/default from its beginning,
// through the broker's WebSocket service. That reads with Pulsar's own Java
// client.
func (p *Pulsar) ReadTopic(topic string, count int) []PulsarMessage {
	p.t.Helper()
	messages, err := readWebSocket(p.m.web, "/ws/v2/reader/persistent/public/default/"+topic+"?messageId=earliest", count)
	if err != nil {
		p.t.Fatalf("read topic %s: %v", topic, err)
	}
	return messages
}

// WriteTopic writes messages to a topic in public/default with Pulsar's own Java
// client. settings are those of a producer of the WebSocket service, such as
// "compressionType=ZLIB".
func (p *Pulsar) WriteTopic(topic, settings string, bodies ...[]byte) {
	p.t.Helper()
	path := "/ws/v2/producer/persistent/public/default/" + topic + "?" + settings
	if err := writeWebSocket(p.m.web, path, bodies); err != nil {
		p.t.Fatalf("write topic %s: %v", topic, err)
	}
}

// dialWebSocket opens a connection (RFC 6455) that lives as long as a request.
func dialWebSocket(address, path string) (net.Conn, *bufio.Reader, error) {
	conn, err := net.DialTimeout("tcp", address, pulsarRequestTimeout)
	if err != nil {
		return nil, nil, err
	}
	reader, err := upgrade(conn, address, path)
	if err != nil {
		_ = conn.Close() // the first error is the one to report
		return nil, nil, err
	}
	return conn, reader, nil
}

func upgrade(conn net.Conn, address, path string) (*bufio.Reader, error) {
	if err := conn.SetDeadline(time.Now().Add(pulsarRequestTimeout)); err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "c2Vja2lsbC10ZXN0LWtleQ==",
	} {
		request.Header.Set(name, value)
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("answered %s", answer.Status)
	}
	return reader, nil
}

// writeWebSocket sends one message per text frame, and reads an answer to each
// after the last one: the producer may put them into one batch.
func writeWebSocket(address, path string, bodies [][]byte) error {
	conn, reader, err := dialWebSocket(address, path)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, body := range bodies {
		text, err := json.Marshal(PulsarMessage{Payload: body, Properties: map[string]string{}})
		if err != nil {
			return err
		}
		if _, err := conn.Write(textFrame(text)); err != nil {
			return err
		}
	}
	for range bodies {
		text, err := readFrame(reader)
		if err != nil {
			return err
		}
		var answer struct{ Result string }
		if err := json.Unmarshal(text, &answer); err != nil || answer.Result != "ok" {
			return fmt.Errorf("answered %s", text)
		}
	}
	return nil
}

// textFrame is a frame of a client, whose mask is 0.
func textFrame(text []byte) []byte {
	const finalText, masked, eight = 0x81, 0x80, 127
	frame := binary.BigEndian.AppendUint64([]byte{finalText, masked | eight}, uint64(len(text)))
	return append(append(frame, 0, 0, 0, 0), text...)
}

// readWebSocket reads text frames that hold one message each. It sends none.
func readWebSocket(address, path string, count int) ([]PulsarMessage, error) {
	conn, reader, err := dialWebSocket(address, path)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var messages []PulsarMessage
	for len(messages) < count {
		text, err := readFrame(reader)
		if err != nil {
			return messages, err
		}
		var m struct {
			PulsarMessage
			MessageID string `json:"messageId"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return messages, fmt.Errorf("%w: %s", err, text)
		}
		messages = append(messages, m.PulsarMessage)
		// After 1000 messages the service waits for acknowledgements.
		if _, err := conn.Write(textFrame(fmt.Appendf(nil, `{"messageId":%q}`, m.MessageID))); err != nil {
			return messages, err
		}
	}
	return messages, nil
}

// readFrame reads one whole text message and skips other frames.
func readFrame(reader io.Reader) ([]byte, error) {
	const (
		final, opcode = 0x80, 0x0F
		textFrame     = 1
		length        = 0x7F
		two, eight    = 126, 127 // lengths that follow, in bytes
		most          = 16 << 20
	)
	var text []byte
	for {
		var head [2]byte
		if _, err := io.ReadFull(reader, head[:]); err != nil {
			return nil, err
		}
		size := uint64(head[1] & length)
		var more [8]byte
		switch size {
		case two:
			if _, err := io.ReadFull(reader, more[6:]); err != nil {
				return nil, err
			}
			size = binary.BigEndian.Uint64(more[:])
		case eight:
			if _, err := io.ReadFull(reader, more[:]); err != nil {
				return nil, err
			}
			size = binary.BigEndian.Uint64(more[:])
		}
		if size > most {
			return nil, fmt.Errorf("a frame of %d bytes", size)
		}
		part := make([]byte, size)
		if _, err := io.ReadFull(reader, part); err != nil {
			return nil, err
		}
		if kind := head[0] & opcode; kind > textFrame { // of binary or control
			continue
		}
		text = append(text, part...)
		if head[0]&final != 0 {
			return text, nil
		}
	}
}
