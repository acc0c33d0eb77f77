package server

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

const (
	clockLibrary = "clock.so"
	clockFile    = "clock"
	// clockEnv names the file that tells testdata/clock.c the offset of the
	// clock.
	clockEnv = "SECKILL_TEST_CLOCK"
)

// movableClock compiles a wall clock that the test can set, and returns the
// environment variables that load it. Redis gets the time from the C library
// and has no setting for it.
func movableClock(t testing.TB, dir string) (env []string) {
	t.Helper()
	compiler := need(t, "cc")
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, clockLibrary)
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(compiler, "-shared", "-fPIC", "-O2", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("compile the clock: %v\n%s", err, said)
	}
	file := filepath.Join(dir, clockFile)
	if err := moveClock(file, 0); err != nil {
		t.Fatal(err)
	}
	return []string{"LD_PRELOAD=" + library, clockEnv + "=" + file}
}

// moveClock writes without truncating: a process that maps the file would die
// if it read beyond the end.
func moveClock(file string, by time.Duration) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by.Microseconds())), 0)
	return err
}

// MoveClock sets the offset of the server's wall clock from the machine's, at
// once and for later starts. It needs RedisOptions.Clock.
func (r *RedisServer) MoveClock(by time.Duration) {
	r.t.Helper()
	if err := moveClock(filepath.Join(r.Dir(), clockFile), by); err != nil {
		r.t.Fatalf("move the clock of %s: %v", r.child.name, err)
	}
}
