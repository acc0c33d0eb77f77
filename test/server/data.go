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

// need is the path of a program; without it the test is skipped.
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

// place is where a server lives: a directory with a short path, because the
// path of a unix socket has 107 bytes at most, and an address.
type place struct {
	dir     string
	address string
	leave   func()
}

// newPlace reserves an address, and makes a directory unless one is given.
// Leaving gives back the address and removes a directory that was made.
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

// removeAtExit has a directory removed when this process ends, however it ends.
// A shell waits for that on a pipe whose other end only this process holds; it
// repeats while the server, dying at the same instant, still writes.
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

// untilExit keeps pipes from being closed by the garbage collector.
var untilExit struct {
	sync.Mutex
	pipes []io.Closer
}
