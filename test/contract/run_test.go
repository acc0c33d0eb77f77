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

// Settings for longer runs; see `make contract`.
const (
	examplesEnv = "SECKILL_CONTRACT_EXAMPLES"
	seedEnv     = "SECKILL_CONTRACT_SEED"
)

const (
	examples = "3" // random requests to each operation, in addition to one for each bound
	seed     = "1"
	// runWithin is longer than any run by hand.
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

// hold runs the tool against the engine. The tool's findings fail the test.
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
	// Do not use the machine's own Python packages, and make the order
	// repeatable.
	st.Env = []string{
		"PYTHONPATH=" + with.site, "PYTHONNOUSERSITE=1", "PYTHONHASHSEED=0", "PYTHONUTF8=1", "COLUMNS=120",
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SANDBOX_SECRET=" + engine.SandboxSecret,
	}
	var report bytes.Buffer
	st.Stdout, st.Stderr = &report, &report
	// The tool must end if the test process is killed.
	st.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := st.Run(); err != nil {
		t.Errorf("schemathesis %s: %v\n%s", strings.Join(args[2:], " "), err, tail(report.String(), reportTail))
		return
	}
	t.Log(summary(report.String()))
}

// prepare makes the tool's working directory, because the tool leaves files
// there, and writes the files that the tool reads.
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

// summary is the end of a report, with its counts.
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
