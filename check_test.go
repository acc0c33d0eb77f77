package seckill_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCheck_GoesOnAfterAFailure runs test/check with a fake make. One step fails, one skips a
// test, and one finds no test.
func TestCheck_GoesOnAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	fake := filepath.Join(dir, "make")
	script := `#!/bin/sh
echo "$*" >>` + dir + `/asked
case "$2" in
  test) exit 3 ;;
  torture) echo "    x_test.go:1: MISSING: redis-server" ;;
  soak) echo "testing: warning: no tests to run" ;;
esac
`
	if err := os.WriteFile(fake, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "test/check")
	check.Env = append(os.Environ(), "MAKE="+fake, "LOGS="+dir, "NO_SKIP=1", "TORTURE=1m", "FUZZTIME=2s", "SOAK=3m", "STEPS=")
	out, err := check.CombinedOutput()
	if err == nil {
		t.Errorf("it succeeded:\n%s", out)
	}
	if !strings.HasSuffix(string(out), "failed: test torture soak (see "+dir+")\n") {
		t.Errorf("the last line does not say what failed:\n%s", out)
	}
	for _, step := range []string{"test", "model", "torture", "fuzz", "soak"} {
		for _, what := range []string{" begins\n", " ends: "} {
			if !strings.Contains(string(out), " "+step+what) {
				t.Errorf("nothing says that step %s%s:\n%s", step, what, out)
			}
		}
	}
	const want = "--no-print-directory test\n--no-print-directory model\n--no-print-directory torture DURATION=1m\n" +
		"--no-print-directory fuzz FUZZTIME=2s\n--no-print-directory soak DURATION=3m\n"
	if asked := readText(t, filepath.Join(dir, "asked")); asked != want {
		t.Errorf("make was asked for\n%s, want\n%s", asked, want)
	}
}

// go test succeeds if a pattern matches no test, so this test checks the patterns.
func TestMakefile_RunsTestsThatExist(t *testing.T) {
	all := sources(t, ".")
	found := regexp.MustCompile(`-run '?\^?(Test\w+)`).FindAllStringSubmatch(readText(t, "Makefile")+readText(t, "test/run"), -1)
	if len(found) < 5 {
		t.Errorf("only %d patterns were found", len(found))
	}
	for _, pattern := range found {
		if !strings.Contains(all, "\nfunc "+pattern[1]) {
			t.Errorf("no test begins with %s", pattern[1])
		}
	}
}
