package crash

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"seckill"
	"seckill/test/engine"
)

const (
	// The logs of store and journal may grow to some 32 MiB each before they are
	// copied into their files.
	diskSize = "size=128m"
	// When so many claims at once are all refused, the disk is surely full: a
	// log that was copied into its file has room to be written over.
	diskCrowd = 16
	diskTries = 20
)

// smallDisk mounts a disk that is easy to fill.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, diskSize); err != nil {
		t.Skipf("MISSING: a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill takes all the space that is left, and returns how to give it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, size := range []int{1 << 20, 1 << 10, 1} {
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

// TestAFullDiskIsBusyAndHealsWithoutARestart fills the disk under a running
// sale: claims are answered busy, nothing is promised that is not written, and
// the sale goes on by itself when there is space again; also when the engine
// is killed while the disk is full.
func TestAFullDiskIsBusyAndHealsWithoutARestart(t *testing.T) {
	e := engine.Start(t, engine.Options{DataDir: smallDisk(t), Settings: map[string]string{"worker.batch_wait": "1ms"}})
	b := newBook(t, e, engine.Product{ID: 1, Stock: 300, PerUserLimit: 2})
	early := b.Buy(1, 1)
	b.Confirmed(early)

	for _, killed := range []bool{false, true} {
		free := fill(t, e.DataDir)
		b.buyUntilBusy()
		if _, err := b.Read(t.Context(), early); err != nil {
			t.Errorf("an old order cannot be read on a full disk: %v", err)
		}
		if killed {
			e.Kill()
		}
		free()
		if killed {
			e.Start()
		}
		b.Confirmed(b.Buy(1, 1))
	}
	b.Settle()
	b.SellOut()
	b.Check()
}

// buyUntilBusy buys until the disk is surely full.
func (b *book) buyUntilBusy() {
	b.T.Helper()
	for range diskTries {
		var accepted atomic.Int64
		var crowd sync.WaitGroup
		for range diskCrowd {
			crowd.Go(func() {
				c := b.NewClaim(b.NewBuyer(), 1, engine.Purchase{Quantity: 1, Key: "k"})
				err := b.Send(b.T.Context(), c)
				switch {
				case err == nil:
					accepted.Add(1)
				case engine.CodeOf(err) != seckill.CodeBusy:
					b.T.Errorf("on a full disk a claim is answered %v, not busy", err)
				}
			})
		}
		crowd.Wait()
		if accepted.Load() == 0 {
			return
		}
	}
	b.T.Fatal("the disk is full, and claims are still accepted")
}
