package ledgermem

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// batchClaims is a full batch of the purchase stage.
const batchClaims = 64

// reserveAllocs is the budget of one accepted batch: the verdicts, the row's body, the reply
// through the scribe, and the growth of maps and text chunks.
const reserveAllocs = 24

// bencher decides batches of new buyers without a file.
type bencher struct {
	l     *Ledger
	sh    *shard
	batch []seckill.Claim
	names []byte
	made  uint64
}

func newBencher(stock int64) *bencher {
	l := &Ledger{outbox: newOutbox()}
	l.cur = round{state: newState()}
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	in := &newEpoch{Allotment: ledger.Allotment{Shard: shard, Available: stock, Limit: 1}, stripes: make([]stripe, stripesFor(stock))}
	sh := l.cur.state.install(nil, in, 1)
	sh.open = true
	return &bencher{l: l, sh: sh, batch: claims(0, batchClaims)}
}

const digits = "0123456789abcdef"

// next renames the buyers, 16 bytes each, in one allocation.
func (b *bencher) next() {
	b.names = b.names[:0]
	for range b.batch {
		b.made++
		for shift := 60; shift >= 0; shift -= 4 {
			b.names = append(b.names, digits[b.made>>shift&15])
		}
	}
	text := string(b.names)
	for i := range b.batch {
		b.batch[i].Buyer = text[i*16 : i*16+16]
		b.batch[i].Key = b.batch[i].Buyer
		b.batch[i].OrderNo = seckill.NewOrderNo(time.UnixMilli(1e12), 1, b.made-uint64(i))
	}
}

func (b *bencher) reserve() []ledger.Verdict {
	v := b.l.cur.reserve(b.sh, sale{currency: "CNY", name: "shoe"}, b.batch, false)
	b.l.cur.reset()
	return v
}

func benchmarkDecide(b *testing.B, stock int64) {
	d := newBencher(stock)
	b.ReportAllocs()
	for b.Loop() {
		if d.sh.available < batchClaims {
			b.StopTimer()
			d = newBencher(stock)
			b.StartTimer()
		}
		d.next()
		d.reserve()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batchClaims, "ns/claim")
}

func BenchmarkReserveDecideThousand(b *testing.B) { benchmarkDecide(b, 1024) }
func BenchmarkReserveDecideMillion(b *testing.B)  { benchmarkDecide(b, 1_000_000) }

// BenchmarkReserveSoldOut refuses whole batches.
func BenchmarkReserveSoldOut(b *testing.B) {
	d := newBencher(0)
	d.next()
	b.ReportAllocs()
	for b.Loop() {
		d.reserve()
	}
}

// BenchmarkReserveCommit measures a batch including fsync, with 8 callers.
func BenchmarkReserveCommit(b *testing.B) {
	l := start(b, filepath.Join(b.TempDir(), "journal.db"), Options{})
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	install(b, l, shard, 1<<40, 1<<30)
	var procs atomic.Uint32
	var from atomic.Int64
	b.SetParallelism(4)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		p := procs.Add(1)
		proc := ledger.ProcessID{byte(p), byte(p >> 8), 1}
		for n := uint64(1); pb.Next(); n++ {
			batch := claims(int(from.Add(batchClaims)), batchClaims)
			reply, err := l.Do(b.Context(), ledger.Request{
				Shard: shard, Call: ledger.Call{Process: proc, Number: n, Seen: n - 1},
				Write: ledger.Reserve{Currency: "CNY", Name: "shoe", Claims: batch},
			})
			if err != nil || reply.Outcome != ledger.OutcomeApplied {
				b.Errorf("%d, %v", reply.Outcome, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N*batchClaims)/b.Elapsed().Seconds(), "claims/s")
}

func TestReserve_StaysWithinItsAllocations(t *testing.T) {
	d := newBencher(1 << 20)
	d.next()
	d.reserve()
	got := testing.AllocsPerRun(500, func() {
		d.next()
		d.reserve()
	})
	t.Logf("%.1f allocations a batch of %d", got, batchClaims)
	if got > reserveAllocs {
		t.Errorf("%.1f allocations, the budget is %d", got, reserveAllocs)
	}
}
