package server

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"seckill/test/loopback"
)

// need returns the path of a program. Without the program it skips the test.
func need(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil { // Debian keeps servers where an ordinary user's PATH does not look
		path, err = exec.LookPath(filepath.Join("/usr/sbin", program))
	}
	if err != nil {
		t.Skip("MISSING: " + program)
	}
	return path
}

// place is a server's directory and address. The directory has a short path,
// because the path of a unix socket has 107 bytes at most.
type place struct {
	dir     string
	address string
	leave   func()
}

// newPlace reserves an address, and makes a directory unless one is given.
// leave releases the address and removes a directory that newPlace made.
func newPlace(kind, dir string) (place, error) {
	address, release, err := loopback.Reserve()
	if err != nil {
		return place{}, err
	}
	if dir != "" {
		return place{dir, address, release}, nil
	}
	dir, err = os.MkdirTemp("", "sk-"+kind+"-")
	if err != nil {
		release()
		return place{}, err
	}
	return place{dir, address, func() { release(); os.RemoveAll(dir) }}, nil
}

// removeAtExit removes a directory when this process ends, also after a kill. A
// shell waits on a pipe whose other end only this process holds. It repeats the
// removal, because the server may still write while it dies.
func removeAtExit(dir string) error {
	cmd := exec.Command("sh", "-c", `cat; until rm -rf "$0"; do :; done`, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("have %s removed at exit: %w", dir, err)
	}
	untilExit.Lock()
	defer untilExit.Unlock()
	untilExit.pipes = append(untilExit.pipes, pipe)
	return nil
}

// untilExit keeps the pipes referenced, so that the garbage collector does not
// close them.
var untilExit struct {
	sync.Mutex
	pipes []io.Closer
}
