package contract

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
)

// What a longer run by hand changes; see `make contract`.
const (
	examplesEnv = "SECKILL_CONTRACT_EXAMPLES"
	seedEnv     = "SECKILL_CONTRACT_SEED"
)

const (
	examples = "3" // random requests to each operation, beside those made of its every bound
	seed     = "1"
	// runWithin is above what any number of examples takes that one waits for.
	runWithin = time.Hour
	// reportTail is enough for the failures of every operation.
	reportTail = 64 << 10
)

//go:embed schemathesis/schemathesis.toml
var config string

//go:embed schemathesis/hook.py
var hook string

// Files of a run; the configuration names the last two.
const (
	configFile      = "schemathesis.toml"
	descriptionFile = "openapi.yaml"
	hookFile        = "hook.py"
	ordersFile      = "orders.dict"
)

// run is one run of the tool over a part of the description.
type run struct {
	url    string   // where the API is
	paths  string   // which operations, as a regular expression
	auth   string   // who asks, as a part of the configuration; "" for strangers
	orders []string // order numbers to be found
}

// hold has the tool hold the engine to the description; its complaints fail the
// test.
func hold(t *testing.T, r run) {
	t.Helper()
	with := theTool(t)
	dir := r.prepare(t)
	ctx, cancel := context.WithTimeout(context.Background(), runWithin)
	defer cancel()
	args := []string{
		"-m", "schemathesis.cli", "--config-file", configFile, "run", descriptionFile, "--url", r.url, "--include-path-regex", r.paths, "--no-color",
		"--max-examples", or(os.Getenv(examplesEnv), examples), "--seed", or(os.Getenv(seedEnv), seed),
	}
	st := exec.CommandContext(ctx, with.python, args...)
	st.Dir = dir
	// Nothing of the machine's own Python, and the same order of everything.
	st.Env = []string{
		"PYTHONPATH=" + with.site, "PYTHONNOUSERSITE=1", "PYTHONHASHSEED=0", "PYTHONUTF8=1", "COLUMNS=120",
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SANDBOX_SECRET=" + engine.SandboxSecret,
	}
	var report bytes.Buffer
	st.Stdout, st.Stderr = &report, &report
	// It must not outlive a test that is killed itself.
	st.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := st.Run(); err != nil {
		t.Errorf("schemathesis %s: %v\n%s", strings.Join(args[2:], " "), err, tail(report.String(), reportTail))
		return
	}
	t.Log(summary(report.String()))
}

// prepare makes the directory in which the tool runs, for it leaves files there,
// and writes what it reads.
func (r run) prepare(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var orders strings.Builder
	for _, no := range r.orders {
		fmt.Fprintf(&orders, "%q\n", no)
	}
	for name, text := range map[string]string{
		configFile: config + r.auth, descriptionFile: string(seckill.OpenAPI), hookFile: hook, ordersFile: orders.String(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// summary is the end of a report, which counts.
func summary(report string) string {
	if at := strings.LastIndex(report, " SUMMARY "); at >= 0 {
		return report[at:]
	}
	return report
}

func tail(text string, most int) string { return text[max(0, len(text)-most):] }

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
