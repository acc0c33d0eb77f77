package engine

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// freeAddress is a loopback address that is this test's alone until it ends,
// also while the engine is down: packages are tested side by side, and a client
// that reached another test's engine would believe what it says. A lock on a
// file named after the port reserves it among all test processes.
//
// The port is below the range from which connections take theirs: a client that
// dials an engine which is down must not be given the engine's own port.
func freeAddress(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "seckill-test-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		port := strconv.Itoa(15000 + rand.IntN(15000))
		lock, err := os.OpenFile(filepath.Join(dir, port), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			lock.Close()
			continue
		}
		address := net.JoinHostPort("127.0.0.1", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			lock.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { lock.Close() })
		return address
	}
	t.Fatal("no free port")
	return ""
}
