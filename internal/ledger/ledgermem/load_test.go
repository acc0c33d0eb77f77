package ledgermem

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// rowsEnv sets the number of rows for TestLoad_ManyRows. The start after a crash is measured
// with a million.
const rowsEnv = "LEDGERMEM_ROWS"

func manyRows(t testing.TB) int {
	n, err := strconv.Atoi(os.Getenv(rowsEnv))
	if err != nil {
		return 20_000
	}
	t.Logf("%s=%d", rowsEnv, n)
	return n
}

// One row per claim, none acknowledged, never compacted: the slowest start.
func TestLoad_ManyRows(t *testing.T) {
	n := manyRows(t)
	path := newPath(t)
	l := openUnstarted(t, path)
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	fill(t, l, shard, n)
	copied := crash(t, l)
	l.journal.close()

	begun := time.Now()
	again := start(t, copied, Options{})
	took := time.Since(begun)
	rows, bytes := again.JournalSize()
	t.Logf("%d rows, %d MB: loaded in %v (%.2f µs a row)", rows, bytes>>20, took, float64(took.Microseconds())/float64(n))
	if unacked := again.outbox.stats(0).Entries; unacked != int64(n) {
		t.Fatalf("%d unacknowledged, want %d", unacked, n)
	}
	drain(t, again, n)
	if err := again.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, bytes = again.JournalSize()
	t.Logf("drained and compacted: %d rows, %d MB", rows, bytes>>20)
	if rows != 1 {
		t.Errorf("%d rows are left, want the witness alone", rows)
	}
	start(t, crash(t, again), Options{}) // refuses a journal without its witness
	f, err := again.Read(t.Context(), shard)
	if err != nil || f.Orders != int64(n) {
		t.Fatalf("orders %d, %v", f.Orders, err)
	}
}

// fill reserves n claims with one row each, many rows per commit.
func fill(t testing.TB, l *Ledger, shard ledger.Shard, n int) {
	t.Helper()
	installUnstarted(t, l, ledger.Allotment{Shard: shard, Available: int64(n), Limit: 1})
	sh := l.cur.state.shards[keyOf(shard)]
	for from := 0; from < n; from += 1000 {
		batch := claims(from, min(1000, n-from))
		if err := drive(l, func(r *round) error {
			for i := range batch {
				r.reserve(sh, sale{at: time.UnixMilli(1e12), currency: "CNY", name: "shoe"}, batch[i:i+1], false)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// installUnstarted installs and opens a shard of a ledger that is not started.
func installUnstarted(t testing.TB, l *Ledger, a ledger.Allotment) {
	t.Helper()
	if err := drive(l, func(r *round) error { return installIn(r, a) }); err != nil {
		t.Fatal(err)
	}
}

func drain(t testing.TB, l *Ledger, n int) {
	t.Helper()
	c, err := l.Queue().Consumer(t.Context(), "drain")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	var last uint64
	for got := 0; got < n; {
		batch, err := c.Receive(t.Context(), 2000)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range batch {
			if d.ID.Seq <= last {
				t.Fatalf("delivery %+v after %d", d, last)
			}
			last = d.ID.Seq
		}
		if err := c.Ack(t.Context(), batch, batch[len(batch)-1].ID); err != nil {
			t.Fatal(err)
		}
		got += len(batch)
	}
}

// The package comment states the size of a mark.
func TestMarkMemory(t *testing.T) {
	const n, most = 100_000, 200
	s := newState()
	sh := &shard{group: &group{id: 1}, stripes: make([]stripe, stripesFor(n))}
	buyer := func(i int) string { return fmt.Sprintf("buyer-%06d", i) }
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		no := seckill.NewOrderNo(time.UnixMilli(1e12), 1, uint64(i))
		s.addOrder(nil, sh.stripe(buyer(i)), buyer(i), order{no: no, key: fmt.Sprintf("key-%012d", i), row: 1, quantity: 1}, 1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int64(after.HeapAlloc-before.HeapAlloc) / n
	t.Logf("%d bytes a mark", each)
	if each > most {
		t.Errorf("a mark costs %d bytes, promised are %d", each, most)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(sh)
}

// Reservations, releases and acknowledgements run during compaction cycles. Afterwards the file
// holds exactly the state in memory.
func TestCompact_UnderTrafficLosesNothing(t *testing.T) {
	t.Parallel()
	l := start(t, newPath(t), Options{CompactRows: 50})
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	install(t, l, shard, 1<<20, 1)
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			proc := ledger.ProcessID{byte(p + 1)}
			for n := range 60 {
				batch := claims(p*1_000_000+n*10, 10)
				for i, w := range []ledger.Write{
					ledger.Reserve{Claims: batch},
					ledger.Release{Orders: []ledger.ReleaseOrder{{OrderNo: batch[0].OrderNo, Buyer: batch[0].Buyer}}},
				} {
					number := uint64(2*n + i + 1)
					reply, err := l.Do(t.Context(), ledger.Request{
						Shard: shard, Call: ledger.Call{Process: proc, Number: number, Seen: number - 1}, Write: w,
					})
					if err != nil || reply.Outcome != ledger.OutcomeApplied {
						t.Errorf("call %d: %d, %v", number, reply.Outcome, err)
						return
					}
				}
			}
		})
	}
	wg.Go(func() {
		c, err := l.Queue().Consumer(t.Context(), "worker")
		if err != nil {
			t.Error(err)
			return
		}
		for got := 0; got < 200; {
			batch, err := c.Receive(t.Context(), 100)
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Ack(t.Context(), batch, batch[len(batch)-1].ID); err != nil {
				t.Error(err)
			}
			got += len(batch)
		}
	})
	wg.Go(func() {
		for range 5 {
			if err := l.Compact(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	want := liveDump(t, l)
	again := start(t, crash(t, l), Options{})
	if got := liveDump(t, again); got != want {
		t.Fatal("loaded state differs")
	}
	if got, want := again.outbox.stats(0), l.outbox.stats(0); got != want {
		t.Fatalf("outbox %+v, want %+v", got, want)
	}
}

// Marks are written in several rounds, with cycles at the same time.
func TestInstall_ManyMarks(t *testing.T) {
	t.Parallel()
	l := start(t, newPath(t), Options{CompactRows: 1})
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 1}
	const n = 20_000 // about 60 bytes each, so several steps
	all := claims(0, n)
	marks := func(yield func(ledger.Mark, error) bool) {
		for _, c := range all {
			if !yield(ledger.Mark{Buyer: c.Buyer, OrderNo: c.OrderNo, Quantity: 1, Key: c.Key}, nil) {
				return
			}
		}
	}
	allotment := ledger.Allotment{Shard: shard, Available: 5, Limit: 1}
	in, err := gather(allotment, marks)
	if err != nil {
		t.Fatal(err)
	}
	saveSome := func() (next int) {
		t.Helper()
		save, next := in.saveSome(0)
		if err := l.chore(t.Context(), save); err != nil {
			t.Fatal(err)
		}
		return next
	}
	// An install that stops half-way leaves the shard as it was, and nothing for later
	// installs.
	if next := saveSome(); next == 0 || next == len(in.stripes) {
		t.Fatalf("%d of %d stripes make no middle", next, len(in.stripes))
	}
	l = start(t, crash(t, l), Options{CompactRows: 1})
	install(t, l, shard, 7, 1)
	fresh := liveDump(t, l)
	if l = start(t, crash(t, l), Options{CompactRows: 1}); liveDump(t, l) != fresh {
		t.Fatal("the loaded state has parts of the failed install")
	}
	again := func(epoch uint64) {
		t.Helper()
		shard.Epoch, allotment.Shard.Epoch = epoch, epoch
		if got, err := l.Install(t.Context(), allotment, marks); err != nil || got != epoch {
			t.Fatalf("install: %d, %v", got, err)
		}
	}
	again(2)
	in.Shard.Epoch = 3
	saveSome()
	want := liveDump(t, l)
	if got := liveDump(t, start(t, crash(t, l), Options{})); got != want {
		t.Fatal("loaded state differs right after the install")
	}
	broken := func(yield func(ledger.Mark, error) bool) {
		marks(func(m ledger.Mark, _ error) bool { return yield(m, nil) })
		yield(ledger.Mark{}, errDisk)
	}
	higher := allotment
	higher.Shard.Epoch = 3
	if _, err := l.Install(t.Context(), higher, broken); err == nil {
		t.Fatal("a broken install succeeded")
	}
	f, err := l.Read(t.Context(), shard)
	if err != nil || f.Orders != n || f.Allotted != n+5 || f.Epoch != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	again(4)
	if err := l.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	var old int
	if err := l.journal.db.QueryRowContext(t.Context(), "SELECT count(*) FROM snapshot WHERE stripe >= 0 AND epoch < 4").Scan(&old); err != nil || old != 0 {
		t.Errorf("%d stripes of older epochs are left (%v)", old, err)
	}
	want = liveDump(t, l)
	if got := liveDump(t, start(t, crash(t, l), Options{})); got != want {
		t.Fatal("loaded state differs after compaction")
	}
}
