package outage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

// journaling is one instance with a journal of promises, on a directory that
// the test chooses.
func journaling(t *testing.T, dir string) (*engine.Engine, *market.Book) {
	t.Helper()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "everysec"})
	e := engine.Start(t, engine.Options{DataDir: dir, Settings: engine.Join(
		engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)),
		map[string]string{"promise.journal": "true", "worker.batch_wait": "1ms"},
	)})
	return e, market.NewBook(t, e, engine.Product{ID: asyncOne, Stock: 10_000, PerUserLimit: 1})
}

// The disk is full: claims are busy and the ledger sells nothing, and the sale
// goes on by itself when there is room.
func TestJournal_FullDiskIsBusyAndHeals(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("MISSING: a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	e, b := journaling(t, dir)
	b.Confirmed(b.Buy(asyncOne, 1))
	for range 2 {
		free := fillDisk(t, dir)
		under := untilBusy(t, b)
		sold := soldUnits(t, b)
		if accepted := untilBusy(t, b); len(accepted) != 0 || soldUnits(t, b) > sold+busyCrowd {
			t.Errorf("on a full disk %d claims were accepted and %d units sold", len(accepted), soldUnits(t, b)-sold)
		}
		failures, err := e.Metric(t.Context(), "seckill_promise_journal_failures_total")
		if err != nil || failures == 0 {
			t.Errorf("failures: %v, %v", failures, err)
		}
		free()
		b.Confirmed(b.Buy(asyncOne, 1))
		for _, claim := range under {
			b.Confirmed(claim)
		}
	}
	b.Settle()
	b.CheckReport(asyncOne)
}

// busyCrowd is how many ask at once.
const busyCrowd = 16

// untilBusy buys until a whole crowd is refused, and returns who was promised
// something before.
func untilBusy(t *testing.T, b *market.Book) (accepted []*market.Claim) {
	t.Helper()
	for range 100 {
		var crowd sync.WaitGroup
		var mu sync.Mutex
		var sold atomic.Int32
		for range busyCrowd {
			crowd.Go(func() {
				claim := b.NewClaim(b.NewBuyer(), asyncOne, engine.Purchase{Quantity: 1, Key: "k"})
				switch err := b.Send(t.Context(), claim); {
				case err == nil:
					sold.Add(1)
					mu.Lock()
					accepted = append(accepted, claim)
					mu.Unlock()
				case engine.CodeOf(err) != seckill.CodeBusy:
					t.Errorf("on a full disk a claim is answered %v, not busy", err)
				}
			})
		}
		crowd.Wait()
		if sold.Load() == 0 {
			return accepted
		}
	}
	t.Fatal("the disk is full, and claims are still accepted")
	return nil
}

// fillDisk takes all the space that is left, and returns how to give it back.
func fillDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, size := range []int{64 << 10, 1 << 10, 1} {
		chunk := make([]byte, size)
		for err = nil; err == nil; {
			_, err = file.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Two instances that share a directory would each take the other's promises for
// its own.
func TestJournal_SecondInstanceOnOneFolderIsRefused(t *testing.T) {
	t.Parallel()
	e, b := journaling(t, t.TempDir())
	redis := server.Redis(t, server.RedisOptions{})
	second := engine.New(t, engine.Options{DataDir: e.DataDir, Settings: engine.Join(
		engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)), map[string]string{"promise.journal": "true"},
	)})
	if err := second.TryStart(); err == nil || !strings.Contains(second.Log(), "give each instance on this machine a data_dir of its own") {
		t.Errorf("the second instance: %v; its log:\n%s", err, second.Log())
	}
	b.Confirmed(b.Buy(asyncOne, 1))
	if left, err := os.ReadDir(filepath.Join(e.DataDir, "promises")); err != nil || len(left) < 2 {
		t.Errorf("the journal has %v: %v", left, err)
	}
}

// soldUnits is what the ledger has sold.
func soldUnits(t *testing.T, b *market.Book) int64 {
	t.Helper()
	stats, err := b.Operator().Stats(t.Context(), asyncOne)
	if err != nil {
		t.Fatal(err)
	}
	return stats.Ledger.Reserved
}
