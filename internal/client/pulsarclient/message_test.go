package pulsarclient

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"
	"time"
)

// repack frames metadata and a body with a magic number.
func repack(magic []byte, metadata fields, body string) []byte {
	rest := binary.BigEndian.AppendUint32(nil, uint32(len(metadata)))
	rest = append(append(rest, metadata...), body...)
	framed := binary.BigEndian.AppendUint32(bytes.Clone(magic), crc32.Checksum(rest, castagnoli))
	return append(framed, rest...)
}

// sentBy returns the bytes that a broker delivers for a written message.
func sentBy(t *testing.T, o *Outgoing) []byte {
	t.Helper()
	sent := encodeSend(o, 3, 7, "producer", time.UnixMilli(1))
	f, err := readFrame(bytes.NewReader(sent), len(sent))
	if err != nil || !f.whole {
		t.Fatalf("read what was sent: %v", err)
	}
	return f.payload
}

func TestReadMessage_ReadsSentMessages(t *testing.T) {
	o := &Outgoing{
		Key: "11-2", Body: []byte(`{"n":1}`), Properties: []Property{{"a", "1"}, {"signature", "v1,s"}},
		EventTime: time.UnixMilli(5), DeliverAt: time.UnixMilli(9),
	}
	payload := sentBy(t, o)
	entry := append(binary.BigEndian.AppendUint16(nil, entryMagic), 0, 0, 0, 2, 8, 1)
	for name, came := range map[string][]byte{"plain": payload, "with entry metadata": append(entry, payload...)} {
		m := readMessage(MessageID{Ledger: 4, Entry: 5}, came, true)
		if m.Poison != "" || m.permitsUnknown || m.permits != 1 || m.Key != o.Key || !bytes.Equal(m.Body, o.Body) || m.ID.Entry != 5 {
			t.Errorf("%s: read as %+v", name, m)
		}
		if m.Property("signature") != "v1,s" || m.Property("a") != "1" || m.Property("b") != "" {
			t.Errorf("%s: properties %q, %q", name, m.Property("signature"), m.Property("b"))
		}
	}
}

func TestReadMessage_TreatsOthersAsPoison(t *testing.T) {
	for want, payload := range seeds() {
		if m := readMessage(MessageID{}, payload, true); m.Poison != want {
			t.Errorf("%q was read as %q", want, m.Poison)
		}
	}
	good := sentBy(t, &Outgoing{Key: "k", Body: []byte("body")})
	wrong := bytes.Clone(good)
	wrong[len(wrong)-1]++
	magic := good[:magicBytes]
	plain := fields(nil).text(1, "p")
	for _, c := range []struct {
		name, want string
		payload    []byte
		whole, odd bool
	}{
		{"wrong checksum", "wrong checksum", wrong, true, false},
		{"no checksum", "no checksum", good[checksumBytes:], true, false},
		{"too large", "too large", good, false, false},
		{"cut", "cut", good[:checksumBytes+3], false, true},
		{"nothing", "cut", nil, true, true},
		{"metadata beyond the end", "cut", repack(magic, plain, "")[:checksumBytes+wordBytes], true, true},
		{"unreadable metadata", "unreadable", repack(magic, fields("\xff\xff\xff"), "body"), true, true},
		{"long key", "metadata is too large", repack(magic, plain.text(6, strings.Repeat("k", maxKey+1)), ""), true, false},
		{"long metadata", "metadata is too large", repack(magic, plain.pair(4, "x", strings.Repeat("x", maxMetadata)), ""), true, false},
		{"negative batch", "batch", repack(magic, plain.number(11, 1<<32-5), ""), true, true},
		{"huge batch", "batch", repack(magic, plain.number(11, 1<<31-1), ""), true, true},
		{"batch of one", "batch", repack(magic, plain.number(11, 1), ""), true, false},
	} {
		m := readMessage(MessageID{}, c.payload, c.whole)
		if !strings.Contains(m.Poison, c.want) || m.permitsUnknown != c.odd || m.Body != nil || m.Size != messageSelf {
			t.Errorf("%s: poison %q, odd %v, %d bytes", c.name, m.Poison, m.permitsUnknown, m.Size)
		}
	}
	if m := readMessage(MessageID{}, repack(magic, plain.number(11, 1000), ""), true); m.permits != 1000 {
		t.Errorf("a batch of 1000 takes %d permits", m.permits)
	}
}

// A key always has the same partition, and the one that other clients choose.
func TestPartitionOf_UsesJavasHash(t *testing.T) {
	for key, hash := range map[string]int{"": 0, "a": 97, "11-2": 1508293, "polygenelubricants": 0} {
		for _, n := range []int{1, 3, 16} {
			if got := partitionOf(key, n); got != hash%n {
				t.Errorf("%q of %d: %d, want %d", key, n, got, hash%n)
			}
		}
	}
}

func TestReadFrame_AllocatesForBytesThatArrive(t *testing.T) {
	huge := []byte{0x0f, 0xff, 0xff, 0xff, 0, 0, 0, 2, 1, 1} // announces 256 MB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := readFrame(bytes.NewReader(huge), largestMaxMessage); err == nil {
		t.Error("a frame that ends early was read")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("a frame of 10 bytes took %d", took)
	}
	long := newFrame(kindMessage, fields(nil).number(1, 1), 1000)
	long = append(long, make([]byte, 1000)...)
	reader := bytes.NewReader(append(long, encodePing()...))
	f, err := readFrame(reader, 100)
	if err != nil || f.whole || len(f.command)+len(f.payload) != 100 {
		t.Fatalf("a frame over the bound: %v, whole %v", err, f.whole)
	}
	if f, err = readFrame(reader, 100); err != nil {
		t.Fatalf("the next frame: %v", err)
	}
	if a, err := readAnswer(f.command); err != nil || a.kind != kindPing {
		t.Errorf("the next frame is %d, %v", a.kind, err)
	}
}
