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
	BinaryEnv = "TEST_SECKILL_BINARY"
	// RaceEnv, when set, has the binary built with the race detector.
	RaceEnv = "TEST_SECKILL_RACE"
)

// built are the binaries of this test run, by their build tags.
var built struct {
	sync.Mutex
	dir   string
	paths map[string]string
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
	return tagged(t, "")
}

// tagged is Binary, built with tags.
func tagged(t testing.TB, tags string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	path, err := built.paths[tags], error(nil)
	if path == "" {
		path, err = build(tags)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(tags string) (path string, err error) {
	if path = os.Getenv(BinaryEnv); path != "" && tags == "" {
		_, err = os.Stat(path) // so that the cache of `go test` notices another binary
		return path, err
	}
	if built.dir == "" {
		if built.dir, err = os.MkdirTemp("", "seckill-binary-"); err != nil {
			return "", err
		}
		built.paths = make(map[string]string)
	}
	if err := openSources(); err != nil {
		return "", err
	}
	path = filepath.Join(built.dir, "seckill"+tags)
	args := []string{"build", "-tags", tags, "-o", path}
	if os.Getenv(RaceEnv) != "" {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "seckill/cmd/seckill")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	built.paths[tags] = path
	return path, nil
}

// openSources opens the folders of the module, so that `go test` does not use
// cached results after the program has changed. The cache records the files
// that a test opens, but not those that a compiler started by the test reads.
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
