package crash

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"seckill"
	"seckill/test/engine"
)

const (
	diskSize = "size=16m"
	// enough claims in a row are refused when the disk is surely full: a log
	// that was copied into its file has room to be written over.
	enough = 50
)

// smallDisk mounts a disk that is easy to fill.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, diskSize); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
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
	for _, size := range []int{1 << 16, 1} {
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
	b := newBook(t, e, engine.Product{ID: 1, Stock: 400, PerUserLimit: 2})
	early := b.buy(1, 1)
	b.confirmed(early)

	for _, killed := range []bool{false, true} {
		free := fill(t, e.DataDir)
		b.buyUntilBusy()
		if _, err := b.read(t.Context(), early); err != nil {
			t.Errorf("an old order cannot be read on a full disk: %v", err)
		}
		if killed {
			e.Kill()
		}
		free()
		if killed {
			e.Start()
		}
		b.confirmed(b.buy(1, 1))
	}
	b.settle()
	b.sellOut()
	b.check()
}

// buyUntilBusy buys until the disk is surely full.
func (b *book) buyUntilBusy() {
	b.t.Helper()
	for refused, tried := 0, 0; refused < enough; tried++ {
		c := b.claim(b.buyer(), 1, engine.Purchase{Quantity: 1, Key: "k"})
		switch err := b.send(b.t.Context(), c); {
		case err == nil:
			refused = 0
		case engine.CodeOf(err) == seckill.CodeBusy:
			refused++
		default:
			b.t.Fatalf("on a full disk a claim is answered %v, not busy", err)
		}
		if tried > 300 {
			b.t.Fatalf("the disk is full, and %d of %d claims in a row were refused", refused, tried)
		}
	}
}
