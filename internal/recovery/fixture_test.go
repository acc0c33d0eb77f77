package recovery

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill"
)

const testStore = "store-1"

// entry makes an entry of n claims. Each call makes different orders.
func entry(n int, seed uint64) seckill.Entry {
	e := seckill.Entry{
		ProductID: 7, Group: 3, Shard: 2, Epoch: 5, At: time.Unix(1_800_000_000, 123_456_789).UTC(),
		PriceCents: 129_900, Currency: "CNY", Name: "手机 Pro", Limit: 2,
	}
	for i := range n {
		e.Claims = append(e.Claims, seckill.Claim{
			OrderNo: seckill.NewOrderNo(e.At, e.ProductID, seed<<16|uint64(i)), Buyer: fmt.Sprintf("buyer-%d-%d", seed, i), Quantity: 1 + i%2,
			Key: fmt.Sprint("key-", i), Ref: "cart",
		})
	}
	return e
}

// folder is the folder of a journal over several starts.
type folder struct {
	t   *testing.T
	dir string
	log bytes.Buffer
	mu  sync.Mutex // guards the log
}

func newFolder(t *testing.T) *folder { return &folder{t: t, dir: t.TempDir()} }

func (f *folder) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(p)
}

func (f *folder) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

// open opens the journal until it is closed or the test ends.
func (f *folder) open(changes ...func(*JournalOptions)) (*Journal, []LoadedEntry) {
	f.t.Helper()
	opt := JournalOptions{Dir: f.dir, Store: testStore, Logger: slog.New(slog.NewTextHandler(f, nil))}
	for _, change := range changes {
		change(&opt)
	}
	j, loaded, err := OpenJournal(opt)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { j.Close() })
	return j, loaded
}

// files returns the files of the journal, oldest first.
func (f *folder) files() (paths []string) {
	f.t.Helper()
	found, err := list(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, one := range found {
		paths = append(paths, one.path)
	}
	return paths
}

// crash copies the folder as a kill at this instant would leave it.
func (f *folder) crash() *folder {
	f.t.Helper()
	for {
		after := &folder{t: f.t, dir: filepath.Join(f.t.TempDir(), "after")}
		err := os.CopyFS(after.dir, os.DirFS(f.dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the writer was deleting a segment
		}
		if err != nil {
			f.t.Fatal(err)
		}
		return after
	}
}

// sync1 waits for one sync.
func sync1(j *Journal) error {
	done := make(chan error, 1)
	j.Sync(func(err error) { done <- err })
	return <-done
}

// keep appends entries and waits for the sync.
func keep(t *testing.T, j *Journal, entries ...seckill.Entry) (at []JournalPlace) {
	t.Helper()
	for i := range entries {
		at = append(at, j.Append(&entries[i]))
	}
	if err := sync1(j); err != nil {
		t.Fatal(err)
	}
	return at
}

func entriesOf(loaded []LoadedEntry) (all []seckill.Entry) {
	for i := range loaded {
		all = append(all, loaded[i].Entry)
	}
	return all
}

func same(a, b seckill.Entry) bool {
	claims := slices.Equal(a.Claims, b.Claims)
	a.Claims, b.Claims = nil, nil
	return claims && fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
}

func wantEntries(t *testing.T, got []seckill.Entry, want ...seckill.Entry) {
	t.Helper()
	if !slices.EqualFunc(got, want, same) {
		t.Fatalf("read %d entries, want %d: %+v", len(got), len(want), got)
	}
}

// eventually waits for the writer.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timeout, want: " + what)
		}
	}
}
