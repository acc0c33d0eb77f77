package pulsarclient

import (
	"bytes"
	"testing"
	"time"
)

// seeds are messages of each kind, as they follow a command.
func seeds() map[string][]byte {
	plain := fields(nil).text(1, "p").number(2, 1).number(3, 1)
	negative := int32(-1)
	return map[string][]byte{
		"":           packed(plain.pair(4, "name", "value").text(6, "key"), "body"),
		"compressed": packed(plain.number(8, 2).number(9, 1_500_000_000), "body"),
		"batch":      packed(plain.number(11, 1_000_000), "body"),
		"encrypted":  packed(plain.bytes(13, fields(nil).text(1, "k").text(2, "v")), "body"),
		"chunk":      packed(plain.number(27, 2).number(28, uint64(negative)).number(29, 0), "body"),
	}
}

// packed frames metadata and a body with the right checksum.
func packed(metadata fields, body string) []byte {
	frame := encodeSend(&Outgoing{}, 0, 0, "", time.UnixMilli(0))
	f, err := readFrame(bytes.NewReader(frame), len(frame))
	if err != nil {
		panic(err) // it was just encoded
	}
	return repack(f.payload[:magicBytes], metadata, body)
}

func FuzzFrame(f *testing.F) {
	f.Add(encodePing(), 1<<10)
	f.Add(encodeSubscribe("t", "s", 1, 2), 1<<10)
	f.Add(newFrame(kindMessage, fields(nil).number(1, 1).bytes(2, MessageID{Ledger: 1}.encoded()), 0), 64)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 1}, 1<<10)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		most = max(min(most, 1<<20), 0)
		got, err := readFrame(bytes.NewReader(data), most)
		if err != nil {
			return
		}
		if len(got.command)+len(got.payload) > min(most, len(data)) {
			t.Errorf("%d bytes came of %d, with room for %d", len(got.command)+len(got.payload), len(data), most)
		}
		_, _ = readAnswer(got.command) // must not panic
	})
}

func FuzzMessage(f *testing.F) {
	for _, payload := range seeds() {
		f.Add(payload, true)
		f.Add(payload[:len(payload)/2], false)
	}
	f.Fuzz(func(t *testing.T, payload []byte, whole bool) {
		m := readMessage(MessageID{}, payload, whole)
		switch {
		case m.Poison != "" && (m.Body != nil || m.Key != "" || m.Property("name") != ""):
			t.Errorf("a poison message (%s) has content", m.Poison)
		case m.Poison == "" && !whole:
			t.Error("an incomplete message was accepted")
		case m.Size > len(payload)+messageSelf+maxKey:
			t.Errorf("%d bytes take %d", len(payload), m.Size)
		case !m.permitsUnknown && (m.permits < 1 || m.permits > maxBatch):
			t.Errorf("%d permits are accepted", m.permits)
		}
	})
}
