package recovery

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seckill"
	"seckill/internal/datadir"
)

func TestJournal_KeepsEntriesUntilReleased(t *testing.T) {
	f := newFolder(t)
	j, loaded := f.open()
	if len(loaded) != 0 || !j.Ready() {
		t.Fatalf("a new journal has %d entries, ready is %v", len(loaded), j.Ready())
	}
	first, second := entry(3, 1), entry(2, 2)
	at := keep(t, j, first, second)
	after := f.crash()
	next, loaded := after.open()
	wantEntries(t, entriesOf(loaded), first, second)
	if stats := next.Stats(); stats.Promises != 5 || stats.Bytes == 0 {
		t.Errorf("%+v", stats)
	}
	for i := range loaded {
		next.Release(loaded[i].At, len(loaded[i].Entry.Claims))
	}
	eventually(t, "the files are deleted", func() bool { return len(after.files()) == 0 })
	if stats := next.Stats(); stats.Promises != 0 || stats.Bytes != 0 {
		t.Errorf("%+v", stats)
	}

	j.Release(at[0], 3)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	_, loaded = f.open()
	wantEntries(t, entriesOf(loaded), first, second) // the segment is kept until both are released
}

func TestJournal_CleanStopLeavesNothing(t *testing.T) {
	f := newFolder(t)
	j, _ := f.open()
	at := keep(t, j, entry(3, 1))
	j.Release(at[0], 3)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if files := f.files(); len(files) != 0 {
		t.Errorf("files are left: %v", files)
	}
	if err := sync1(j); err != nil && !errors.Is(err, ErrJournalClosed) {
		t.Error(err)
	}
}

// Every entry that was answered is in the files, even if many append at once.
func TestSync_EntriesAreOnDiskBeforeDone(t *testing.T) {
	f := newFolder(t)
	var syncs atomic.Int64
	j, _ := f.open(func(o *JournalOptions) { o.OnSync = func(time.Duration) { syncs.Add(1) } })
	const lanes, batches = 8, 50
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			for n := range batches {
				e := entry(1, uint64(lane*batches+n))
				j.Append(&e)
				if err := sync1(j); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	_, loaded := f.crash().open()
	if len(loaded) != lanes*batches {
		t.Errorf("%d of %d entries are in the files", len(loaded), lanes*batches)
	}
	if n := syncs.Load(); n >= lanes*batches {
		t.Errorf("%d syncs for %d entries: none was shared", n, lanes*batches)
	}
}

func TestJournal_SegmentsAreDeletedWhenReleased(t *testing.T) {
	f := newFolder(t)
	const most = 256 << 10
	j, _ := f.open(func(o *JournalOptions) { o.MaxBytes = most })
	var queue []JournalPlace
	for n := range 2000 { // about 1 MB in all
		e := entry(10, uint64(n))
		if queue = append(queue, j.Append(&e)); n%8 == 0 {
			keep(t, j)
		}
		if len(queue) > 100 {
			j.Release(queue[0], 10)
			queue = queue[1:]
		}
		if !j.Ready() {
			t.Fatalf("not ready after %d entries: %+v", n, j.Stats())
		}
	}
	if n := len(f.files()); n < 2 || n > segmentShare {
		t.Errorf("%d files", n)
	}
}

// A few promises that wait for hours must not keep one segment each.
func TestJournal_FewOldPromisesAreMovedToTheNewestSegment(t *testing.T) {
	f := newFolder(t)
	j, _ := f.open(func(o *JournalOptions) { o.MaxBytes = 256 << 10 })
	var old []LoadedEntry // one of each segment
	moves := 0
	for n := range 2000 {
		e := entry(10, uint64(n))
		place := j.Append(&e)
		if n%8 == 0 {
			keep(t, j)
		}
		if n%50 == 0 {
			waits := entry(1, uint64(1<<20+n))
			old = append(old, LoadedEntry{waits, keep(t, j, waits)[0]})
		}
		j.Release(place, 10)
		if stale, found := j.Stale(); found {
			for i := range old {
				if old[i].At == stale {
					old[i].At = j.Move(&old[i].Entry, stale)
					moves++
				}
			}
		}
		if !j.Ready() {
			t.Fatalf("not ready after %d entries: %+v", n, j.Stats())
		}
	}
	if moves == 0 {
		t.Error("nothing was ever moved")
	}
	keep(t, j)
	left := make(map[seckill.OrderNo]bool)
	for _, e := range entriesOf(second(f.crash().open())) {
		for i := range e.Claims {
			left[e.Claims[i].OrderNo] = true
		}
	}
	for i := range old {
		if !left[old[i].Entry.Claims[0].OrderNo] {
			t.Errorf("old promise %d of %d is lost", i, len(old))
		}
	}
}

func TestJournal_NotReadyAtItsBound(t *testing.T) {
	for what, bound := range map[string]func(*JournalOptions){
		"bytes":    func(o *JournalOptions) { o.MaxBytes = 64 << 10 },
		"promises": func(o *JournalOptions) { o.MaxPromises = 500 },
	} {
		t.Run(what, func(t *testing.T) {
			f := newFolder(t)
			var told atomic.Int64
			j, _ := f.open(bound, func(o *JournalOptions) { o.OnFailure = func(error) { told.Add(1) } })
			var places []JournalPlace
			for n := 0; j.Ready(); n++ {
				if n > 10_000 {
					t.Fatal("the journal has no bound")
				}
				places = append(places, keep(t, j, entry(10, uint64(n)))...)
			}
			late := entry(10, 1<<20) // the ledger had accepted it before
			places = append(places, keep(t, j, late)...)
			for _, at := range places[:len(places)-1] {
				j.Release(at, 10)
			}
			eventually(t, "it is ready when the store has caught up", j.Ready)
			if told.Load() != 1 {
				t.Errorf("OnFailure was called %d times", told.Load())
			}
			_, loaded := f.crash().open()
			if got := entriesOf(loaded); len(got) == 0 || !same(got[len(got)-1], late) {
				t.Error("a promise that was made at the bound is lost")
			}
		})
	}
}

// disk is a disk that can be full, or whose sync can lose data.
type disk struct {
	full atomic.Bool
	fail atomic.Bool // of a sync, which also loses the data
}

type diskFile struct {
	file
	path string
	disk *disk
}

func (d *disk) create(path string) (file, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	f, err := createFile(path)
	return &diskFile{f, path, d}, err
}

func (f *diskFile) Write(b []byte) (int, error) {
	if f.disk.full.Load() {
		n, _ := f.file.Write(b[:len(b)/2])
		return n, syscall.ENOSPC
	}
	return f.file.Write(b)
}

func (f *diskFile) Sync() error {
	if f.disk.fail.Load() {
		return syscall.EIO
	}
	return f.file.Sync()
}

// A promise that could not be written gets an error, is kept, and is written
// when there is space again.
func TestJournal_FailedWriteIsReportedAndRepeated(t *testing.T) {
	for what, fault := range map[string]func(*disk) *atomic.Bool{
		"a full disk":   func(d *disk) *atomic.Bool { return &d.full },
		"a failed sync": func(d *disk) *atomic.Bool { return &d.fail },
	} {
		t.Run(what, func(t *testing.T) {
			f, d := newFolder(t), &disk{}
			var told atomic.Int64
			j, _ := f.open(func(o *JournalOptions) {
				o.create = d.create
				o.OnFailure = func(error) { told.Add(1) }
			})
			before, during, also, afterwards := entry(1, 1), entry(2, 2), entry(1, 3), entry(1, 4)
			keep(t, j, before)
			fault(d).Store(true)
			at := j.Append(&during)
			if err := sync1(j); err == nil {
				t.Fatal("the write failed without an error")
			}
			eventually(t, "the journal is not ready", func() bool { return !j.Ready() })
			j.Append(&also) // it was already accepted
			if err := sync1(j); err == nil {
				t.Fatal("the journal fails, and a sync succeeded")
			}
			wantEntries(t, entriesOf(second(f.crash().open())), before)
			fault(d).Store(false)
			eventually(t, "the journal is ready again", j.Ready)
			keep(t, j, afterwards)
			wantEntries(t, entriesOf(second(f.crash().open())), before, during, also, afterwards)
			if told.Load() != 1 || j.Stats().Failures == 0 {
				t.Errorf("OnFailure was called %d times: %+v", told.Load(), j.Stats())
			}
			j.Release(at, 4)
			j.Release(1, 1)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if files := f.files(); len(files) != 0 {
				t.Errorf("files are left: %v: %+v", files, j.Stats())
			}
		})
	}
}

func second[A, B any](_ A, b B) B { return b }

// Promises that reach the store while the disk fails need not be written.
func TestJournal_ReleaseWhileTheDiskFails(t *testing.T) {
	f, d := newFolder(t), &disk{}
	j, _ := f.open(func(o *JournalOptions) { o.create, o.MaxBytes = d.create, 64<<10 })
	d.full.Store(true)
	for n := range 20 {
		e := entry(40, uint64(n))
		at := j.Append(&e)
		_ = sync1(j)
		j.Release(at, 40)
	}
	d.full.Store(false)
	eventually(t, "the journal is ready again", j.Ready)
	kept := entry(1, 1<<20)
	keep(t, j, kept)
	loaded := entriesOf(second(f.crash().open()))
	if len(loaded) == 0 || !same(loaded[len(loaded)-1], kept) {
		t.Errorf("%d entries are in the files", len(loaded))
	}
}

func TestOpen_RefusesAJournalOfAnotherStore(t *testing.T) {
	f := newFolder(t)
	j, _ := f.open()
	keep(t, j, entry(1, 1))
	j.Close()
	_, _, err := OpenJournal(JournalOptions{Dir: f.dir, Store: "store-2", Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, ErrOtherStore) || !strings.Contains(err.Error(), "data_dir") {
		t.Errorf("%v", err)
	}
	_, loaded := f.open() // nothing was changed
	wantEntries(t, entriesOf(loaded), entry(1, 1))
}

func TestOpen_RefusesANewerFormat(t *testing.T) {
	f := newFolder(t)
	header := appendHeader(nil, testStore)
	header[len(magic)] = formatVersion + 1
	write(t, filepath.Join(f.dir, fileName(1, 0)), resum(header))
	if _, _, err := OpenJournal(JournalOptions{Dir: f.dir, Store: testStore, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, errVersion) {
		t.Errorf("%v", err)
	}
}

// holdEnv makes the test binary hold the lock of a folder until its input ends.
const holdEnv = "SECKILL_TEST_HOLD_JOURNAL"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		if _, _, err := OpenJournal(JournalOptions{Dir: dir, Store: testStore, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("held\n")
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestOpen_RefusesAFolderThatAnotherProcessHas(t *testing.T) {
	f := newFolder(t)
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holdEnv+"="+f.dir)
	input, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	_, _, err = OpenJournal(JournalOptions{Dir: f.dir, Store: testStore, Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, datadir.ErrHeld) || !strings.Contains(err.Error(), "data_dir of its own") {
		t.Errorf("%v", err)
	}
	input.Close()
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	f.open() // the lock is free
}

// budgetAppend bounds the allocations of a promise on its way to the disk: the
// buffer is reused.
const budgetAppend = 0.1

func TestAppend_AllocationsPerOrder(t *testing.T) {
	f := newFolder(t)
	j, _ := f.open()
	const claims = 32
	e := entry(claims, 1)
	var last JournalPlace
	perBatch := testing.AllocsPerRun(200, func() {
		if last != 0 {
			j.Release(last, claims)
		}
		last = j.Append(&e)
		if err := sync1(j); err != nil {
			t.Fatal(err)
		}
	})
	if perOrder := perBatch / claims; perOrder > budgetAppend {
		t.Errorf("%.2f allocations an order, the budget is %.2f", perOrder, budgetAppend)
	}
}

// BenchmarkAppend measures the lane's part of a batch; BenchmarkSync includes
// the disk.
func BenchmarkAppend(b *testing.B) {
	e := entry(32, 1)
	var buffer []byte
	for b.Loop() {
		buffer = appendRecord(buffer[:0], &e)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*32), "ns/order")
}

func BenchmarkSync(b *testing.B) {
	j, _, err := OpenJournal(JournalOptions{Dir: b.TempDir(), Store: testStore, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	e := entry(32, 1)
	for b.Loop() {
		at := j.Append(&e)
		if err := sync1(j); err != nil {
			b.Fatal(err)
		}
		j.Release(at, len(e.Claims))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*32), "ns/order")
}
