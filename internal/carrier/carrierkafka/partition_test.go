package carrierkafka

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/internal/carrier"
)

func TestPartition_PositionIsTheFirstUnsettled(t *testing.T) {
	p := newPartition(0)
	if _, ok := p.position(); ok {
		t.Error("a partition without messages has a position")
	}
	for _, offset := range []int64{5, 6, 9, 10} { // offsets may have gaps
		p.add(offset, offset+1)
	}
	steps := []struct {
		settle, position int64
		removed          int
	}{
		{6, 5, 0}, {7, 5, 0}, {5, 9, 2}, {5, 9, 0}, {10, 9, 0}, {9, 11, 2},
	}
	for _, s := range steps {
		if removed := p.settle(s.settle); removed != s.removed {
			t.Errorf("settle %d removed %d, not %d", s.settle, removed, s.removed)
		}
		if got, ok := p.position(); !ok || got != s.position {
			t.Errorf("after %d the position is %d, not %d", s.settle, got, s.position)
		}
	}
	if p.isSetBack(11) || !p.isSetBack(10) || !p.isSetBack(0) {
		t.Error("only offsets up to the newest message are a log that was set back")
	}
}

func TestPartition_PositionSkipsARefusedBatch(t *testing.T) {
	p := newPartition(0)
	p.add(5, 6)
	p.add(6, 10) // one message represents the batch
	p.add(10, 11)
	for _, s := range []struct{ settle, position int64 }{{5, 6}, {10, 6}, {6, 11}} {
		p.settle(s.settle)
		if got, _ := p.position(); got != s.position {
			t.Errorf("after %d the position is %d, not %d", s.settle, got, s.position)
		}
	}
	if !p.isSetBack(9) {
		t.Error("an offset within the batch is behind it")
	}
}

func TestDecompressor_RefusesCompressedBatches(t *testing.T) {
	for _, codec := range []kgo.CompressionCodecType{kgo.CodecGzip, kgo.CodecSnappy, kgo.CodecLz4, kgo.CodecZstd} {
		if out, err := (refuseCompressed{}).Decompress([]byte("x"), codec); !errors.Is(err, kgo.ErrMaxDecompress) || out != nil {
			t.Errorf("codec %d: %q, %v", codec, out, err)
		}
	}
}

func TestPartition_AnyOrderOfSettlingEndsAfterTheLast(t *testing.T) {
	const n = 1000
	random := rand.New(rand.NewPCG(1, 2))
	p := newPartition(0)
	settled, tracked := make([]bool, n), 0
	for offset := range int64(n) {
		p.add(offset, offset+1)
		tracked++
	}
	for _, offset := range random.Perm(n) {
		tracked -= p.settle(int64(offset))
		settled[offset] = true
		first := 0
		for first < n && settled[first] {
			first++
		}
		if got, _ := p.position(); got != int64(first) || tracked != len(p.unsettled) {
			t.Fatalf("position %d, want %d; tracked %d of %d", got, first, tracked, len(p.unsettled))
		}
	}
}

// Only the used parts of a record are counted. The rest of the batch, with
// headers of any size, must not stay in memory.
func TestMessageOf_SharesNoMemoryWithTheRecord(t *testing.T) {
	r := &kgo.Record{Key: []byte("key"), Value: []byte("body"), Headers: []kgo.RecordHeader{{Key: carrier.SignatureHeader, Value: []byte("sum")}}}
	m := messageOf(r)
	r.Key[0], r.Value[0], r.Headers[0].Value[0] = 'x', 'x', 'x'
	if m.Key != "key" || string(m.Body) != "body" || m.Signature != "sum" {
		t.Errorf("the message changed with its record: %+v", m)
	}
}
