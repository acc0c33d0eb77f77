package notifyredis

import (
	"encoding/binary"
	"testing"

	"seckill/internal/notify"
)

// Every sale of every instance is read here, so it must not allocate.
func TestNote_ReadWithoutAllocation(t *testing.T) {
	const buyers = 500
	note := binary.BigEndian.AppendUint32(nil, 3)
	for hash := range uint64(buyers) {
		note = binary.BigEndian.AppendUint64(note, hash)
	}
	b, message, heard := New(Options{Tag: 1 << 40}), string(note), 0
	hear := func(n notify.Notice) { heard += len(n.Buyers) }
	b.readNotes(message, hear) // allocates the memory
	if n := testing.AllocsPerRun(100, func() { b.readNotes(message, hear) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if heard != 102*buyers {
		t.Errorf("%d buyers were heard", heard)
	}
}
