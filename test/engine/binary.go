package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const (
	// BinaryEnv names a binary to test instead of building one.
	BinaryEnv = "SECKILL_TEST_BINARY"
	// RaceEnv, when set, has the binary built with the race detector.
	RaceEnv = "SECKILL_TEST_RACE"
)

// built is the binary of this test run.
var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// Main runs a package's tests and removes the binary that they built:
//
//	func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }
func Main(m *testing.M) int {
	defer func() {
		if built.dir != "" {
			os.RemoveAll(built.dir)
		}
	}()
	return m.Run()
}

// Binary is the path of cmd/seckill, built at its first use in this test run:
// normally, or with the race detector if RaceEnv is set.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(build)
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func build() {
	if built.path = os.Getenv(BinaryEnv); built.path != "" {
		return
	}
	if built.dir, built.err = os.MkdirTemp("", "seckill-binary-"); built.err != nil {
		return
	}
	if built.err = openSources(); built.err != nil {
		return
	}
	built.path = filepath.Join(built.dir, "seckill")
	args := []string{"build", "-o", built.path}
	if os.Getenv(RaceEnv) != "" {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "seckill/cmd/seckill")...).CombinedOutput()
	if err != nil {
		built.err = fmt.Errorf("build the binary: %w\n%s", err, out)
	}
}

// openSources opens the folders of the module, so that results are not taken from
// the cache of `go test` after the program has changed: it notes what a test
// opens, and does not see what a compiler that the test starts reads.
func openSources() error {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(string(out))
	return filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && path != root && entry.IsDir() && (entry.Name()[0] == '.' || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		return err
	})
}
