package seckill_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var (
	noticePattern  = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\S+) \\| ([^|]+) \\|")
	licencePattern = regexp.MustCompile(`(?m)^## (\S+)$`)
)

// TestNotices_NameEveryLinkedModule holds THIRD_PARTY.md to what the binary is
// built of: every module in its version and no other, each under licences that
// the page gives.
func TestNotices_NameEveryLinkedModule(t *testing.T) {
	text := readText(t, "THIRD_PARTY.md")
	given := map[string]bool{}
	for _, heading := range licencePattern.FindAllStringSubmatch(text, -1) {
		given[heading[1]] = true
	}
	named := map[string]string{}
	for _, row := range noticePattern.FindAllStringSubmatch(text, -1) {
		named[row[1]] = row[2]
		for licence := range strings.SplitSeq(row[3], ", ") {
			if !given[licence] {
				t.Errorf("%s is under %s, which the page does not give", row[1], licence)
			}
		}
	}
	const each = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}"
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", each, "./cmd/seckill")
	list.Env = append(os.Environ(), "GOOS=linux") // other systems link a little more or less
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	linked := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, version, found := strings.Cut(strings.TrimSpace(line), " "); found {
			linked[module] = version
		}
	}
	if len(linked) < 10 {
		t.Fatalf("go list names %d modules", len(linked))
	}
	for module, version := range linked {
		if named[module] != version {
			t.Errorf("%s %s is linked, and the page names %q of it", module, version, named[module])
		}
	}
	for module := range named {
		if linked[module] == "" {
			t.Errorf("%s is named, and not linked", module)
		}
	}
}
