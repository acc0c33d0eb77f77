package contract

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// requirements names schemathesis and all that it needs, by version and by
// checksum.
//
//go:embed schemathesis/requirements.txt
var requirements []byte

// Bounds of the download, some 20 MB: once on a machine, then it is kept.
const (
	installTries  = 3
	installWithin = 3 * time.Minute // each try
)

// tool is schemathesis, ready to run.
type tool struct {
	python string // the interpreter
	site   string // the directory of its packages
}

// theTool finds the tool, or the test is skipped.
func theTool(t *testing.T) tool {
	t.Helper()
	found, err := install()
	if err != nil {
		t.Skipf("MISSING: schemathesis, to hold the engine to openapi.yaml: %v", err)
	}
	return found
}

// install finds the tool in the user's cache directory, or installs it there.
// It installs into a temporary folder and renames that once, so that concurrent
// installs never show an incomplete tool.
var install = sync.OnceValues(func() (tool, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return tool{}, err
	}
	version, err := exec.Command(python, "-c", `import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 is needed"); print(sys.implementation.cache_tag)`).CombinedOutput()
	if err != nil {
		return tool{}, fmt.Errorf("%s: %w: %s", python, err, version)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return tool{}, err
	}
	name := fmt.Sprintf("schemathesis-%s-%.8x", strings.TrimSpace(string(version)), sha256.Sum256(requirements))
	ready := tool{python, filepath.Join(cache, "seckill", name)}
	if _, err := os.Stat(ready.site); err == nil {
		return ready, nil
	}
	for range installTries {
		if err = download(ready); err == nil {
			return ready, nil
		}
	}
	return tool{}, err
})

func download(to tool) error {
	parent := filepath.Dir(to.site)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(parent, "schemathesis-new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside)
	list := filepath.Join(aside, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o644); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installWithin)
	defer cancel()
	pip := exec.CommandContext(ctx, to.python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
		"--require-hashes", "--only-binary=:all:", "--no-deps", "--target", filepath.Join(aside, "site"), "-r", list)
	if out, err := pip.CombinedOutput(); err != nil {
		return fmt.Errorf("pip install: %w: %s", err, out)
	}
	err = os.Rename(filepath.Join(aside, "site"), to.site)
	if errors.Is(err, fs.ErrExist) { // another test run was first
		return nil
	}
	return err
}
